// Keeps count of what the processes report, and holds it against what the file says.
import { isDeepStrictEqual } from 'node:util'
import { blankFate } from './expectation.mjs'

/**
 * @typedef {import('./child.mjs').Order} Order
 * @typedef {import('./expectation.mjs').Fate} Fate
 * @typedef {import('./generate-orders.mjs').OrderEvent} OrderEvent
 * @typedef {{ type: 'ready' }
 *   | { type: 'offered', order: string, due: number }
 *   | { type: 'rescheduled', order: string, due: number | null }
 *   | { type: 'paid', order: string, cancelled: boolean }
 *   | { type: 'taken', consumer: number, orders: Order[], at: number }
 *   | { type: 'done', behindMs: number }
 *   | { type: 'problem', text: string }} Report times are milliseconds by the Redis clock
 * @typedef {{ order: Order, at: number, lateMs: number }} Closing
 */

export class Tally {
  /** @type {Map<string, Fate & { due?: number, taken: number }>} */
  #orders = new Map()
  /** @type {{ order: Order, at: number, id: string }[]} */
  #taken = []
  /** @type {Map<number, number>} */
  takenBy = new Map()
  /** How far the producer was behind the recorded times, at worst. @type {number | undefined} */
  behindMs
  /** @type {string[]} */
  problems = []

  /** @param {Report} report */
  add(report) {
    if (report.type === 'problem') this.problems.push(report.text)
    else if (report.type === 'done') this.behindMs = report.behindMs
    else if (report.type === 'taken') this.#addTaken(report)
    else if (report.type !== 'ready') this.#addEvent(report)
  }

  /** @param {Report & { type: 'taken' }} report */
  #addTaken({ consumer, orders, at }) {
    this.takenBy.set(consumer, (this.takenBy.get(consumer) ?? 0) + orders.length)
    for (const order of orders) {
      this.#taken.push({ order, at, id: order.order })
      const known = this.#order(order.order)
      known.closed = true
      known.taken++
    }
  }

  /** @param {Report & { type: 'offered' | 'rescheduled' | 'paid' }} report */
  #addEvent(report) {
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

  /** @param {string} id */
  #order(id) {
    let order = this.#orders.get(id)
    if (order === undefined) this.#orders.set(id, (order = { ...blankFate(), taken: 0 }))
    return order
  }

  get takenCount() {
    return this.#taken.length
  }

  /** In the order of arrival. @returns {Closing[]} */
  closings() {
    return this.#taken.map(({ order, at, id }) => ({ order, at, lateMs: at - (this.#orders.get(id)?.due ?? NaN) }))
  }

  totals() {
    return totalsOf([...this.#orders.values()])
  }

  /**
   * @param {Map<string, Fate>} expected
   * @param {OrderEvent[]} events whose orders must arrive unchanged
   */
  check(expected, events) {
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

/** @param {Iterable<Fate>} fates */
export function totalsOf(fates) {
  const list = [...fates]
  const sum = (/** @type {(fate: Fate) => number | boolean} */ of) =>
    list.reduce((total, fate) => total + Number(of(fate)), 0)
  return {
    offered: sum((fate) => fate.placed),
    cancelled: sum((fate) => fate.cancelled),
    rescheduled: sum((fate) => fate.rescheduled),
    'paid too late': sum((fate) => fate.refusedPayments),
    'extended too late': sum((fate) => fate.refusedExtensions),
    delivered: sum((fate) => fate.closed),
  }
}

/** @param {Fate} fate */
function sentence(fate) {
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

/** @param {number[]} values @param {number} fraction */
export function percentile(values, fraction) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? NaN
}
