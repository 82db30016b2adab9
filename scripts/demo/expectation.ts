// Replays the events on paper: what has to become of every order, worked out from the file alone, without Redis.
import { readFileSync } from 'node:fs'
import type { OrderEvent } from './generate-orders.js'

/** `closed`: its message was delivered, because it was not paid in time. */
export interface Fate {
  placed: number
  rescheduled: number
  cancelled: boolean
  refusedPayments: number
  refusedExtensions: number
  closed: boolean
}

/** `end`: when the last event or deadline is; `closestMs`: the shortest distance between an event and a deadline. */
export interface Expectation {
  fates: Map<string, Fate>
  end: number
  closestMs: number
}

/** Of an order that nothing is known of. */
export function blankFate(): Fate {
  return { placed: 0, rescheduled: 0, cancelled: false, refusedPayments: 0, refusedExtensions: 0, closed: false }
}

export function readEvents(file: string | URL): OrderEvent[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line, index) => {
    if (line === '') return []
    try {
      return [JSON.parse(line) as OrderEvent]
    } catch {
      throw new Error(`${String(file)}, line ${index + 1}: this is not JSON`)
    }
  })
}

/** @param events in the order of time */
export function expectationOf(events: OrderEvent[]): Expectation {
  const orders = new Map<string, Fate & { payBy: number }>()
  let end = 0
  let closestMs = Infinity
  for (const event of events) {
    end = Math.max(end, event.at)
    if (event.type === 'placed') {
      orders.set(event.order, { ...blankFate(), placed: 1, payBy: event.payBy })
      continue
    }
    const order = orders.get(event.order)
    if (order === undefined) throw new Error(`${event.order} is ${event.type} before it is placed`)
    closestMs = Math.min(closestMs, Math.abs(event.at - order.payBy))
    const open = !order.cancelled && event.at < order.payBy
    if (event.type === 'extended') {
      if (open) Object.assign(order, { payBy: event.payBy, rescheduled: order.rescheduled + 1 })
      else order.refusedExtensions++
    } else if (open) order.cancelled = true
    else order.refusedPayments++
  }
  const fates = new Map<string, Fate>()
  for (const [id, { payBy, ...fate }] of orders) {
    end = Math.max(end, payBy)
    fates.set(id, { ...fate, closed: !fate.cancelled })
  }
  return { fates, end, closestMs }
}
