// An order that is not paid in time is cancelled. A payment takes the message back by its id, and more time moves it.
import assert from 'node:assert/strict'
import { createClient } from 'redelayed'
import { log, uniqueName, until, url } from './support.js'

type State = 'open' | 'paid' | 'cancelled'

const TIME_TO_PAY_MS = 500 // in earnest 15 * 60_000

const orders = new Map<string, State>() // stands for a table

const client = createClient({ url })
const timeouts = client.getReliableQueue<{ order: string }>(uniqueName('order-timeout'))

const worker = client.createWorker(timeouts, ({ order }) => {
  if (change(order, 'open', 'cancelled')) log(`${order}: not paid in time, cancelled`)
})

async function place(order: string): Promise<void> {
  // first the message: without an order it does no harm, but an order without it would stay open for ever
  await timeouts.add({ order }, { id: order, delay: TIME_TO_PAY_MS })
  orders.set(order, 'open')
  log(`${order}: placed`)
}

/** False when it comes too late. */
async function pay(order: string): Promise<boolean> {
  const paid = change(order, 'open', 'paid')
  if (paid) await timeouts.cancel(order) // only saves the worker the message: the state decides
  log(`${order}: ${paid ? 'paid' : 'the payment is too late'}`)
  return paid
}

/** As `UPDATE ... SET state = $to WHERE id = $order AND state = $from`: of a payment and a timeout that meet, one wins. */
function change(order: string, from: State, to: State): boolean {
  if (orders.get(order) !== from) return false
  orders.set(order, to)
  return true
}

try {
  await place('order-1')
  assert.equal(await pay('order-1'), true)

  await place('order-2')
  assert.equal(await timeouts.reschedule('order-2', 60_000), true)
  log('order-2: gets a minute more')

  const placedAt = performance.now()
  const timedOut = until(worker, ({ id }) => id === 'order-3')
  await place('order-3')
  await timedOut
  const waited = performance.now() - placedAt
  assert.ok(waited > TIME_TO_PAY_MS - 5, `after ${waited} ms it is too early; 5 ms are for two clocks`)

  assert.equal(await pay('order-3'), false)
  assert.equal(await pay('order-2'), true)
  assert.deepEqual(Object.fromEntries(orders), { 'order-1': 'paid', 'order-2': 'paid', 'order-3': 'cancelled' })
  assert.equal(worker.counts.completed, 1, 'the other two messages were taken back')
  assert.equal(await timeouts.size(), 0)
} finally {
  await timeouts.clear()
  await client.shutdown() // closes the worker too
}
