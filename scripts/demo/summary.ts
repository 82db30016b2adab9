// The end of the demo: a table of what happened beside what the file says, and where the two differ.
import { latenessText } from './display.js'
import type { Expectation } from './expectation.js'
import type { OrderEvent } from './generate-orders.js'
import { totalsOf, type Tally } from './tally.js'

const SHOWN = 20
/** The file keeps events away from deadlines; a replay that is late by more than a part of that proves nothing. */
const CLOSE_PART = 0.5

/** `too slow`: it differs, and the machine was later than the file allows for. */
export type Outcome = 'as in the file' | 'different' | 'too slow'

export function summarize({
  tally,
  expected,
  events,
  quarantined,
  left,
  scale,
}: {
  tally: Tally
  expected: Expectation
  events: OrderEvent[]
  quarantined: number
  /** messages that no consumer took */
  left: number
  /** milliseconds of the replay per recorded one */
  scale: number
}): { text: string; outcome: Outcome } {
  const totals = tally.totals()
  const wanted = totalsOf(expected.fates.values())
  const { early, lost, duplicated, altered, different } = tally.check(expected.fates, events)
  const never = { early, lost, duplicated, altered }

  const rows: [string, number, number][] = [
    ...Object.keys(totals).map((key) => {
      const name = key as keyof typeof totals
      return [name, totals[name], wanted[name]] as [string, number, number]
    }),
    ...Object.entries(never).map(([name, ids]) => [name, ids.length, 0] as [string, number, number]),
    ['quarantined', quarantined, 0],
    ['not taken', left, 0],
    ['problems', tally.problems.length, 0],
  ]
  const ok = different.length === 0 && rows.every(([, happened, file]) => happened === file)
  const details = [
    ...different,
    ...Object.entries(never).flatMap(([name, ids]) => ids.map((id) => `${id}: ${name}`)),
    ...tally.problems,
  ]
  const closest = expected.closestMs * scale * CLOSE_PART
  const latestMs = Math.max(tally.behindMs ?? Infinity, ...tally.closings().map(({ lateMs }) => lateMs))
  const slow = !ok && latestMs > closest
  return {
    outcome: ok ? 'as in the file' : slow ? 'too slow' : 'different',
    text: [
      '',
      `${''.padEnd(20)}${'happened'.padStart(10)}${'by the file'.padStart(14)}`,
      ...rows.map(([name, happened, file]) => {
        const mark = happened === file ? '' : '   <-- differs'
        return `${name.padEnd(20)}${String(happened).padStart(10)}${String(file).padStart(14)}${mark}`
      }),
      `${'lateness'.padEnd(20)}  ${latenessText(tally)}  (by the Redis clock, until the consumer had the message)`,
      '',
      ok
        ? 'OK: exactly the unpaid orders were closed, each once and none early.'
        : 'DIFFERENT: what happened is not what the file says.',
      ...details.slice(0, SHOWN).map((line) => `  ${line}`),
      ...(details.length > SHOWN ? [`  … and ${details.length - SHOWN} more`] : []),
      ...(slow
        ? [
            `  The producer or a message was ${Math.round(latestMs)} ms late, and a payment may be ${Math.round(closest)} ms from a deadline: the machine is busy.`,
          ]
        : []),
    ].join('\n'),
  }
}
