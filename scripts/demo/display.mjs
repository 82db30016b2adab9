// The live display: a few lines that are drawn over themselves on a terminal, and one line a second elsewhere.
import { percentile } from './tally.mjs'

const BAR_WIDTH = 40
const LINE_EVERY_MS = 1_000
const LAST_CLOSINGS = 3

/**
 * @typedef {{
 *   tally: import('./tally.mjs').Tally, pending: number, overdue: number, recordedMs: number, endMs: number
 * }} View
 */

export class Display {
  /** @type {NodeJS.WriteStream} */
  #out
  #drawn = 0
  #lastLineAt = -Infinity

  /** @param {NodeJS.WriteStream} out */
  constructor(out = process.stdout) {
    this.#out = out
  }

  /** @param {View} view @param {{ last?: boolean }} [options] */
  show(view, { last = false } = {}) {
    if (this.#out.isTTY) this.#draw(lines(view))
    else if (last || performance.now() - this.#lastLineAt >= LINE_EVERY_MS) {
      this.#lastLineAt = performance.now()
      this.#out.write(`${oneLine(view)}\n`)
    }
  }

  /** @param {string[]} text */
  #draw(text) {
    const width = Math.max(20, this.#out.columns - 1)
    const up = this.#drawn > 0 ? `\x1b[${this.#drawn}A` : ''
    // clear to the end of each line, because the new one may be shorter
    this.#out.write(up + text.map((line) => `${line.slice(0, width)}\x1b[K\n`).join(''))
    this.#drawn = text.length
  }
}

/** @param {View} view */
function lines(view) {
  const { tally, pending, overdue, recordedMs, endMs } = view
  const totals = tally.totals()
  const done = Math.min(1, recordedMs / endMs)
  const bar = '█'.repeat(Math.round(done * BAR_WIDTH)).padEnd(BAR_WIDTH, '░')
  const by = [...tally.takenBy].sort().map(([consumer, count]) => `consumer ${consumer}: ${count}`)
  const closings = tally.closings().slice(-LAST_CLOSINGS)
  return [
    `${clock(recordedMs)} ${bar} ${clock(endMs)}`,
    `  pending      ${cell(pending)}   of ${totals.offered} offered${overdue > 0 ? `, ${overdue} due right now` : ''}`,
    `  cancelled    ${cell(totals.cancelled)}   paid in time`,
    `  rescheduled  ${cell(totals.rescheduled)}   got more time`,
    `  delivered    ${cell(tally.takenCount)}   unpaid, closed${by.length > 0 ? ` (${by.join(', ')})` : ''}`,
    `  lateness     ${latenessText(tally)}`,
    ...Array.from({ length: LAST_CLOSINGS }, (_, i) => {
      const closing = closings[i]
      return closing ? `  closed ${closing.order.order}  ${money(closing.order)}  ${closing.order.customer.name}` : ''
    }),
  ]
}

/** @param {View} view */
function oneLine({ tally, pending, recordedMs }) {
  const { offered, cancelled, rescheduled } = tally.totals()
  return (
    `${clock(recordedMs)}  offered ${offered}  pending ${pending}  cancelled ${cancelled}  rescheduled ${rescheduled}  ` +
    `delivered ${tally.takenCount}  lateness ${latenessText(tally)}`
  )
}

/** @param {import('./tally.mjs').Tally} tally */
export function latenessText(tally) {
  const late = tally.closings().map(({ lateMs }) => lateMs)
  if (late.length === 0) return '-'
  const [p50, p99, max] = [0.5, 0.99, 1].map((fraction) => `${percentile(late, fraction).toFixed(1)} ms`)
  return `p50 ${p50}  p99 ${p99}  max ${max}`
}

/** The recorded time. @param {number} ms */
function clock(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const pad = (/** @type {number} */ number) => String(number).padStart(2, '0')
  return `${Math.floor(seconds / 3600)}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}`
}

/** @param {number} count */
function cell(count) {
  return String(count).padStart(5)
}

/** @param {{ total: number, currency: string }} order */
function money({ total, currency }) {
  return `${(total / 100).toFixed(2).padStart(9)} ${currency}`
}
