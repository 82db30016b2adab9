// The live display: a few lines that are drawn over themselves on a terminal, and one line a second elsewhere.
import { percentile, type Tally } from './tally.js'

const BAR_WIDTH = 40
const LINE_EVERY_MS = 1_000
const LAST_CLOSINGS = 3

interface View {
  tally: Tally
  pending: number
  overdue: number
  recordedMs: number
  endMs: number
}

export class Display {
  #out: NodeJS.WriteStream
  #drawn = 0
  #lastLineAt = -Infinity

  constructor(out: NodeJS.WriteStream = process.stdout) {
    this.#out = out
  }

  show(view: View, { last = false }: { last?: boolean } = {}) {
    if (this.#out.isTTY) this.#draw(lines(view))
    else if (last || performance.now() - this.#lastLineAt >= LINE_EVERY_MS) {
      this.#lastLineAt = performance.now()
      this.#out.write(`${oneLine(view)}\n`)
    }
  }

  #draw(text: string[]) {
    const width = Math.max(20, this.#out.columns - 1)
    const up = this.#drawn > 0 ? `\x1b[${this.#drawn}A` : ''
    // clear to the end of each line, because the new one may be shorter
    this.#out.write(up + text.map((line) => `${line.slice(0, width)}\x1b[K\n`).join(''))
    this.#drawn = text.length
  }
}

function lines(view: View) {
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

function oneLine({ tally, pending, recordedMs }: View) {
  const { offered, cancelled, rescheduled } = tally.totals()
  return (
    `${clock(recordedMs)}  offered ${offered}  pending ${pending}  cancelled ${cancelled}  rescheduled ${rescheduled}  ` +
    `delivered ${tally.takenCount}  lateness ${latenessText(tally)}`
  )
}

export function latenessText(tally: Tally) {
  const late = tally.closings().map(({ lateMs }) => lateMs)
  if (late.length === 0) return '-'
  const [p50, p99, max] = [0.5, 0.99, 1].map((fraction) => `${percentile(late, fraction).toFixed(1)} ms`)
  return `p50 ${p50}  p99 ${p99}  max ${max}`
}

/** The recorded time. */
function clock(ms: number) {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const pad = (number: number) => String(number).padStart(2, '0')
  return `${Math.floor(seconds / 3600)}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}`
}

function cell(count: number) {
  return String(count).padStart(5)
}

function money({ total, currency }: { total: number; currency: string }) {
  return `${(total / 100).toFixed(2).padStart(9)} ${currency}`
}
