// Keeps count of what the processes report, and holds it against what the file says.
import { isDeepStrictEqual } from 'node:util'
import type { Order } from './child.js'
import { blankFate, type Fate } from './expectation.js'
import type { OrderEvent } from './generate-orders.js'

/** Times are milliseconds by the Redis clock. */
export type Report =
  | { type: 'ready' }
  | { type: 'offered'; order: string; due: number }
  | { type: 'rescheduled'; order: string; due: number | null }
  | { type: 'paid'; order: string; cancelled: boolean }
  | { type: 'taken'; consumer: number; orders: Order[]; at: number }
  | { type: 'done'; behindMs: number }
  | { type: 'problem'; text: string }

export interface Closing {
  order: Order
  at: number
  lateMs: number
}

export class Tally {
  #orders = new Map<string, Fate & { due?: number; taken: number }>()
  #taken: { order: Order; at: number; id: string }[] = []
  takenBy = new Map<number, number>()
  /** How far the producer was behind the recorded times, at worst. */
  behindMs: number | undefined
  problems: string[] = []

  add(report: Report) {
    if (report.type === 'problem') this.problems.push(report.text)
    else if (report.type === 'done') this.behindMs = report.behindMs
    else if (report.type === 'taken') this.#addTaken(report)
    else if (report.type !== 'ready') this.#addEvent(report)
  }

  #addTaken({ consumer, orders, at }: Report & { type: 'taken' }) {
    this.takenBy.set(consumer, (this.takenBy.get(consumer) ?? 0) + orders.length)
    for (const order of orders) {
      this.#taken.push({ order, at, id: order.order })
      const known = this.#order(order.order)
      known.closed = true
      known.taken++
    }
  }

  #addEvent(report: Report & { type: 'offered' | 'rescheduled' | 'paid' }) {
    const order = this.#order(report.order)
    if (report.type === 'paid') {
      if (report.cancelled) order.cancelled = true
      else order.refusedPayments++
    } else if (report.due === null) order.refusedExtensions++
    else {
      if (report.type === 'offered') order.placed++
      else order.rescheduled++
      order.due = report.due
    }
  }

  #order(id: string) {
    let order = this.#orders.get(id)
    if (order === undefined) this.#orders.set(id, (order = { ...blankFate(), taken: 0 }))
    return order
  }

  get takenCount() {
    return this.#taken.length
  }

  /** In the order of arrival. */
  closings(): Closing[] {
    return this.#taken.map(({ order, at, id }) => ({ order, at, lateMs: at - (this.#orders.get(id)?.due ?? NaN) }))
  }

  totals() {
    return totalsOf([...this.#orders.values()])
  }

  /** @param events whose orders must arrive unchanged */
  check(expected: Map<string, Fate>, events: OrderEvent[]) {
    const sent = new Map(events.flatMap((event) => (event.type === 'placed' ? [[event.order, event]] : [])))
    const altered = this.#taken.flatMap(({ order, id }) => {
      const { at: _at, type: _type, ...original } = sent.get(id) ?? {}
      return isDeepStrictEqual(order, original) ? [] : [id]
    })
    const early = this.closings().flatMap(({ order, lateMs }) => (lateMs >= 0 ? [] : [order.order]))
    const lost = [...expected].flatMap(([id, { closed }]) => (closed && !this.#orders.get(id)?.taken ? [id] : []))
    const duplicated = [...this.#orders].flatMap(([id, { taken }]) => (taken > 1 ? [id] : []))
    const different = [...new Set([...expected.keys(), ...this.#orders.keys()])].flatMap((id) => {
      const { due: _due, taken: _taken, ...actual } = this.#orders.get(id) ?? { ...blankFate(), taken: 0 }
      const wanted = expected.get(id) ?? blankFate()
      return isDeepStrictEqual(actual, wanted) ? [] : [`${id}: ${sentence(actual)}; by the file ${sentence(wanted)}`]
    })
    return { early, lost, duplicated, altered, different }
  }
}

export function totalsOf(fates: Iterable<Fate>) {
  const list = [...fates]
  const sum = (of: (fate: Fate) => number | boolean) => list.reduce((total, fate) => total + Number(of(fate)), 0)
  return {
    offered: sum((fate) => fate.placed),
    cancelled: sum((fate) => fate.cancelled),
    rescheduled: sum((fate) => fate.rescheduled),
    'paid too late': sum((fate) => fate.refusedPayments),
    'extended too late': sum((fate) => fate.refusedExtensions),
    delivered: sum((fate) => fate.closed),
  }
}

function sentence(fate: Fate) {
  const parts = [
    fate.placed === 1 ? 'offered' : `offered ${fate.placed} times`,
    fate.rescheduled > 0 && `rescheduled ${fate.rescheduled} times`,
    fate.refusedExtensions > 0 && 'extended too late',
    fate.cancelled && 'cancelled by its payment',
    fate.refusedPayments > 0 && 'paid too late',
    fate.closed && 'delivered',
  ]
  return parts.filter(Boolean).join(', ')
}

export function percentile(values: number[], fraction: number) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? NaN
}
