// Writes orders.ndjson, the input of the demo: one morning of a web shop, an event per line, in the order of time.
//
//   {"at":412,"type":"placed","order":"R-000001","customer":{…},"items":[…],"total":12980,"currency":"EUR","payBy":600412}
//   {"at":95100,"type":"extended","order":"R-000001","payBy":1200412}
//   {"at":700350,"type":"paid","order":"R-000001","method":"card"}
//
// `at` and `payBy` are milliseconds since the start of the recording; prices are cents. An order that is not paid by its
// `payBy` has to be closed. The same seed gives the same file, byte for byte: `node scripts/run.mjs demo/generate-orders`.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pick, seededRandom, weighted } from './random.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** No payment or extension is this close to a deadline, so that a replay 300 times as fast is not a matter of luck. */
export const MARGIN_MS = 75 * SECOND
const MIN_GAP_MS = 20 * SECOND

const FIRST_NAMES =
  'Aylin Zoë José Małgorzata Søren Émile Chiara Owen 美咲 Ngozi Lars Ines Петър Hannah Jürgen Maeve'.split(' ')
const LAST_NAMES =
  'Demir Müller García Nowak Ørsted Dubois Rossi O’Brien 佐藤 Okafor Lindqvist Costa Иванов Weiß Smith'.split(' ')
const COUNTRIES = [
  ['DE', 'EUR'],
  ['FR', 'EUR'],
  ['ES', 'EUR'],
  ['IT', 'EUR'],
  ['IE', 'EUR'],
  ['GB', 'GBP'],
  ['US', 'USD'],
  ['PL', 'PLN'],
  ['SE', 'SEK'],
  ['CH', 'CHF'],
] as const
const PRODUCTS = [
  ['BK-0117', 'Field notebook, dotted', 1290],
  ['BK-0203', 'Fountain pen, medium', 4900],
  ['BK-0204', 'Ink, 50 ml, midnight', 1150],
  ['EL-1002', 'USB-C cable, 2 m', 990],
  ['EL-1044', 'Bicycle light set', 3495],
  ['EL-1180', 'Headphones, over-ear', 12900],
  ['HO-2001', 'Tea mug “Nordlicht”', 1650],
  ['HO-2009', 'Pour-over coffee set', 3990],
  ['HO-2077', 'Linen tablecloth 140×220', 6450],
  ['KI-3050', 'Wooden train, 32 pieces', 4299],
  ['KI-3061', 'Puzzle, 1000 pieces', 1799],
  ['SP-4005', 'Climbing chalk, 300 g', 850],
  ['SP-4410', 'Trail running shoes', 13995],
  ['SP-4431', 'Rain jacket, packable', 8900],
  ['GA-5002', 'Seeds, wild flowers', 395],
  ['GA-5120', 'Secateurs, forged', 5490],
] as const

/** What becomes of an order, and how often. */
const FATES = [
  ['paid', 58],
  ['never paid', 15],
  ['extended, paid', 9],
  ['extended, never paid', 5],
  ['extended twice, paid', 3],
  ['paid too late', 6],
  ['extended, paid too late', 3],
  ['extended too late', 1],
] as const

/** How one pays, and when an order has to be paid. A bank transfer is due at the next full five minutes, with others. */
const METHODS = [
  ['card', 50],
  ['wallet', 30],
  ['transfer', 20],
] as const

export interface Placed {
  at: number
  type: 'placed'
  order: string
  customer: { id: string; name: string; country: string }
  items: { sku: string; title: string; quantity: number; price: number }[]
  total: number
  currency: string
  payBy: number
}

export interface Extended {
  at: number
  type: 'extended'
  order: string
  payBy: number
}

export interface Paid {
  at: number
  type: 'paid'
  order: string
  method: string
}

export type OrderEvent = Placed | Extended | Paid

/** @param options `minutes`: during which orders are placed */
export function generateOrders({
  seed = 20_260_131,
  orders = 560,
  minutes = 50,
}: { seed?: number; orders?: number; minutes?: number } = {}): OrderEvent[] {
  const random = seededRandom(seed)
  const saleStart = (minutes * MINUTE) / 3
  const saleEnds = Math.round(saleStart / MINUTE) * MINUTE + 12 * MINUTE
  const events: OrderEvent[] = []
  // A flash sale: many orders within four minutes, all to be paid by the same moment.
  const arrivals = Array.from({ length: orders }, () => {
    const inSale = random() < 0.1
    return { inSale, at: Math.round(inSale ? saleStart + random() * 4 * MINUTE : random() * minutes * MINUTE) }
  }).sort((a, b) => a.at - b.at)
  arrivals.forEach(({ inSale, at }, index) => {
    const method = weighted(random, METHODS)
    const payBy = inSale ? saleEnds : at + paymentTime(random, method, at)
    const order = `R-${String(index + 1).padStart(6, '0')}`
    events.push(placed(random, { at, order, payBy }), ...laterEvents(random, { at, order, payBy, method }))
  })
  return events.sort((a, b) => a.at - b.at || a.order.localeCompare(b.order))
}

function paymentTime(random: () => number, method: string, at: number) {
  if (method === 'card') return pick(random, [8, 10]) * MINUTE
  if (method === 'wallet') return 15 * MINUTE
  const mark = 5 * MINUTE
  return Math.ceil((at + 10 * MINUTE) / mark) * mark - at
}

function placed(random: () => number, { at, order, payBy }: { at: number; order: string; payBy: number }): Placed {
  const [country, currency] = pick(random, COUNTRIES)
  const items = Array.from({ length: 1 + Math.floor(random() ** 2 * 4) }, () => {
    const [sku, title, price] = pick(random, PRODUCTS)
    return { sku, title, quantity: 1 + Math.floor(random() ** 3 * 4), price }
  })
  const total = items.reduce((sum, { quantity, price }) => sum + quantity * price, 0)
  const id = `C-${String(1000 + Math.floor(random() * 400))}`
  const name = `${pick(random, FIRST_NAMES)} ${pick(random, LAST_NAMES)}`
  return { at, type: 'placed', order, customer: { id, name, country }, items, total, currency, payBy }
}

function laterEvents(
  random: () => number,
  { at, order, payBy, method }: { at: number; order: string; payBy: number; method: string },
): OrderEvent[] {
  const fate = weighted(random, FATES)
  const events: OrderEvent[] = []
  let last = at
  let deadline = payBy
  const between = (from: number, to: number) => Math.round(from + random() * (to - from))
  const inTime = () => (last = between(last + MIN_GAP_MS, deadline - MARGIN_MS))
  const tooLate = () => (last = between(deadline + MARGIN_MS, deadline + MARGIN_MS + 6 * MINUTE))
  const extend = (when: number) => {
    const longer = deadline + pick(random, [5, 10]) * MINUTE
    events.push({ at: when, type: 'extended', order, payBy: longer })
    return longer
  }
  const pay = (when: number) => events.push({ at: when, type: 'paid', order, method })

  if (fate === 'extended too late') extend(tooLate())
  else {
    if (fate.startsWith('extended')) deadline = extend(inTime())
    if (fate.startsWith('extended twice')) deadline = extend(inTime())
    if (fate.endsWith('too late')) pay(tooLate())
    else if (!fate.endsWith('never paid')) pay(inTime())
  }
  return events
}

export function toNdjson(events: OrderEvent[]) {
  return events.map((event) => `${JSON.stringify(event)}\n`).join('')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = new URL('orders.ndjson', import.meta.url)
  const events = generateOrders()
  writeFileSync(file, toNdjson(events))
  console.log(`${fileURLToPath(file)}: ${events.length} events`)
}
