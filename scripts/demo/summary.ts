// The end of the demo: a table of what happened beside what the file says, and where the two differ.
import { latenessText } from './display.js'
import type { Expectation } from './expectation.js'
import type { OrderEvent } from './generate-orders.js'
import { totalsOf, type Tally } from './tally.js'

const SHOWN = 20
/** The file keeps events away from deadlines; a replay that lags behind by more than a part of that proves nothing. */
const CLOSE_PART = 0.5

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
  /** messages that nobody took */
  left: number
  /** milliseconds of the replay per recorded one */
  scale: number
}): { text: string; ok: boolean } {
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
  const lagged = tally.behindMs === undefined || tally.behindMs > closest
  return {
    ok,
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
      ...(!ok && lagged
        ? [`  The producer was up to ${Math.round(tally.behindMs ?? NaN)} ms behind: the machine is busy.`]
        : []),
    ].join('\n'),
  }
}
