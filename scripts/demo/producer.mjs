// The shop: replays the recorded events at their times. Every order offers a message "close it if it is unpaid"; a payment
// cancels that message by its ticket, an extension of the deadline moves it.
import { setTimeout as sleep } from 'node:timers/promises'
import { client, report, runChild, settings, started, stopped } from './child.mjs'
import { readEvents } from './expectation.mjs'
import { dueOf } from './library.mjs'

/** @typedef {import('./generate-orders.mjs').OrderEvent} OrderEvent */

const scale = settings.minuteMs / 60_000
const events = readEvents(settings.file)
const orders = /** @type {import('../../src/index.js').BlockingQueue<import('./child.mjs').Order>} */ (
  client.getBlockingQueue(settings.queue)
)
const unpaid = client.getDelayedQueue(orders, { layout: settings.layout })

/** The ticket of each order's message, as a promise: a payment can come before Redis has answered the offer. */
/** @type {Map<string, Promise<string>>} */
const tickets = new Map()
let startedAt = 0

const untilMoment = (/** @type {number} */ moment) => startedAt + moment * scale - performance.now()
const delayUntil = (/** @type {number} */ moment) => Math.max(0, Math.round(untilMoment(moment)))

/** @param {string} order @param {Promise<string>} ticket */
function remember(order, ticket) {
  ticket.catch(() => {}) // the caller gets the rejection; perhaps no later event asks for the ticket
  tickets.set(order, ticket)
}

/** @param {OrderEvent} event */
async function handle(event) {
  const known = tickets.get(event.order)
  if (event.type === 'placed') {
    const { at: _at, type: _type, ...order } = event
    const ticket = unpaid.offer(order, delayUntil(event.payBy))
    remember(event.order, ticket)
    report({ type: 'offered', order: event.order, due: dueOf(await ticket) })
  } else if (known === undefined) throw new Error(`${event.order} is ${event.type} before it is placed`)
  else if (event.type === 'extended') {
    const moved = known.then((ticket) => unpaid.reschedule(ticket, delayUntil(event.payBy)))
    remember(
      event.order,
      moved.then((ticket) => ticket ?? known),
    )
    const ticket = await moved
    report({ type: 'rescheduled', order: event.order, due: ticket === null ? null : dueOf(ticket) })
  } else {
    report({ type: 'paid', order: event.order, cancelled: await unpaid.cancel(await known) })
  }
}

await runChild(async () => {
  await unpaid.size() // connected before the clock starts
  report({ type: 'ready' })
  await Promise.race([started, once(stopped)])
  startedAt = performance.now()
  /** @type {Promise<void>[]} */
  const underWay = []
  let behindMs = 0
  /** @type {Error | undefined} */
  let failure
  for (const event of events) {
    const wait = untilMoment(event.at)
    if (wait > 0) await sleep(wait, undefined, { signal: stopped })
    behindMs = Math.max(behindMs, -untilMoment(event.at))
    if (failure !== undefined) break
    underWay.push(handle(event).catch((error) => void (failure ??= error)))
  }
  await Promise.all(underWay)
  if (failure !== undefined) throw failure
  report({ type: 'done', behindMs })
  await once(stopped)
})

/** @param {AbortSignal} signal @returns {Promise<void>} */
function once(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
