// The end of the demo: a table of what happened beside what the file says, and where the two differ.
import { latenessText } from './display.mjs'
import { totalsOf } from './tally.mjs'

const SHOWN = 20
/** The file keeps events away from deadlines; a replay that lags behind by more than a part of that proves nothing. */
const CLOSE_PART = 0.5

/**
 * @param {object} run
 * @param {import('./tally.mjs').Tally} run.tally
 * @param {import('./expectation.mjs').Expectation} run.expected
 * @param {import('./generate-orders.mjs').OrderEvent[]} run.events
 * @param {number} run.quarantined
 * @param {number} run.left messages that nobody took
 * @param {number} run.scale milliseconds of the replay per recorded one
 * @returns {{ text: string, ok: boolean }}
 */
export function summarize({ tally, expected, events, quarantined, left, scale }) {
  const totals = tally.totals()
  const wanted = totalsOf(expected.fates.values())
  const { early, lost, duplicated, altered, different } = tally.check(expected.fates, events)
  const never = { early, lost, duplicated, altered }

  /** @type {[string, number, number][]} */
  const rows = [
    ...Object.keys(totals).map((key) => {
      const name = /** @type {keyof typeof totals} */ (key)
      return /** @type {[string, number, number]} */ ([name, totals[name], wanted[name]])
    }),
    ...Object.entries(never).map(([name, ids]) => /** @type {[string, number, number]} */ ([name, ids.length, 0])),
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
