/** An order as shops have it: about 1 kB of JSON, with the kinds of value that cost time: text, numbers, nesting, lists. */
export const order = {
  id: 184_467_440,
  number: '2026-11-000184467',
  placedAt: 1_795_000_000_000,
  currency: 'EUR',
  total: 187.45,
  paid: false,
  customer: {
    id: 90_210,
    name: 'Zoë Müller-García',
    email: 'zoe.mueller@example.com',
    phone: '+49 30 901820',
    vip: true,
  },
  shipping: {
    street: 'Prenzlauer Allee 36, Hinterhaus, 2. Stock rechts',
    city: 'Berlin',
    zip: '10405',
    country: 'DE',
    note: 'Please ring at "Müller" twice; leave with the neighbour if nobody answers.',
  },
  items: [
    { sku: 'BK-0911-XL', title: 'Rain jacket, dark blue', quantity: 1, price: 129.95, tags: ['outdoor', 'sale'] },
    { sku: 'SO-3321-42', title: 'Wool socks, pack of three', quantity: 2, price: 14.5, tags: ['wool'] },
    { sku: 'BT-7788-00', title: 'Steel bottle 0.75 l', quantity: 1, price: 28.5, tags: ['outdoor', 'kitchen', 'gift'] },
  ],
  payment: { method: 'invoice', dueDays: 14, reference: 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6', attempts: 0 },
  trace: ['web-7f9c', 'checkout-5d2a', 'order-9b1e'],
}
