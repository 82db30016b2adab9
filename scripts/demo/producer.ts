// The shop: replays the recorded events at their times. Every order offers a message "close it if it is unpaid"; a payment
// cancels that message by its ticket, an extension of the deadline moves it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { BlockingQueue } from '../../src/index.js'
import { client, report, runChild, settings, started, stopped, type Order } from './child.js'
import { readEvents } from './expectation.js'
import type { OrderEvent } from './generate-orders.js'
import { dueOf } from './library.js'

const scale = settings.minuteMs / 60_000
const events = readEvents(settings.file)
const orders = client.getBlockingQueue(settings.queue) as BlockingQueue<Order>
const unpaid = client.getDelayedQueue(orders, { layout: settings.layout })

/** The ticket of each order's message, as a promise: a payment can come before Redis has answered the offer. */
const tickets = new Map<string, Promise<string>>()
let startedAt = 0

const untilMoment = (moment: number) => startedAt + moment * scale - performance.now()
const delayUntil = (moment: number) => Math.max(0, Math.round(untilMoment(moment)))

function remember(order: string, ticket: Promise<string>) {
  ticket.catch(() => {}) // the caller gets the rejection; perhaps no later event asks for the ticket
  tickets.set(order, ticket)
}

async function handle(event: OrderEvent) {
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
  const underWay: Promise<void>[] = []
  let behindMs = 0
  let failure: Error | undefined
  for (const event of events) {
    const wait = untilMoment(event.at)
    if (wait > 0) await sleep(wait, undefined, { signal: stopped })
    behindMs = Math.max(behindMs, -untilMoment(event.at))
    if (failure !== undefined) break
    underWay.push(handle(event).catch((error: unknown) => void (failure ??= error as Error)))
  }
  await Promise.all(underWay)
  if (failure !== undefined) throw failure
  report({ type: 'done', behindMs })
  await once(stopped)
})

function once(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
