import { versionOf, type Kind } from '../journal/sql.js'
import { plantSection, table, totals, wrongSection, type Origin } from '../pages.js'
import { WRONGS, type Wrong } from './books.js'
import type { HttpOutcome, HttpSearch } from './run.js'

const TITLES: Readonly<Record<Wrong, string>> = {
  lost: 'lost',
  early: 'early',
  late: 'late',
  cancelled: 'handled after removal',
  twice: 'twice, outside of the window',
  changed: 'changed',
  verify: 'differences',
  other: 'other',
}
const COUNTS = ['accepted', 'journalled', 'removed', 'delivered', 'twice', 'failures'] as const

/** The page with the findings of a run. */
export function httpReport({
  origin,
  kinds,
  planned,
  outcomes,
  searches,
}: {
  origin: Origin
  kinds: readonly Kind[]
  planned: number
  outcomes: readonly HttpOutcome[]
  searches: readonly HttpSearch[]
}): string {
  const faults = outcomes.filter(({ isEnd }) => !isEnd)
  const ends = outcomes.filter(({ isEnd }) => isEnd)
  const wrong = outcomes.filter(({ problems }) => problems.length > 0)
  const heads = [
    ...['fault', 'times', 'accepted', 'journalled', 'removed', 'deliveries', 'twice', 'failed requests'],
    ...['latest, ms', ...WRONGS.map((each) => TITLES[each])],
  ]
  const cellsOf = (some: readonly HttpOutcome[]): number[] => [
    ...COUNTS.map((name) => some.reduce((all, { round }) => all + (round?.[name] ?? 0), 0)),
    Math.max(0, ...some.map(({ round }) => round?.worstLateMs ?? 0)),
    ...WRONGS.map((which) => some.flatMap(({ problems }) => problems.filter((each) => each.wrong === which)).length),
  ]
  const lines = [
    '# Faults of the service over HTTP',
    '',
    origin.sentence(...kinds.map(versionOf)),
    '',
    `${faults.length} of ${planned} faults and ${ends.length} comparisons of SQL and Redis at the end, ${wrong.length} of them with something wrong. After each fault everything is handled to the end,`,
    'and each message is judged; [the journal](../../docs/journal.md#the-same-over-http) says how. "accepted" to "twice" are counts of messages and of their deliveries: answered with 200 or 201; of these while Redis did not answer ("journalled"); removed;',
    'acknowledged more than once, inside of the documented window. "failed requests" had no answer, or one that refused them; clients repeat pushes. "latest": after a message was due and accepted, only of faults in which Redis is well (else 0).',
    'The columns after it must be 0.',
    '',
    ...table(heads, totals(outcomes, cellsOf)),
    ...wrongSection(
      wrong.map(({ kind, name, problems }) => ({
        what: `${kind}: ${name}`,
        problems: problems.map((each) => `${each.wrong}: ${each.text}`),
      })),
    ),
    ...plantSection(
      searches.map(({ plant, kind, rounds, found }) => ({
        ...{ what: plant.what, on: kind, rounds },
        found: found === undefined ? '' : TITLES[found.wrong],
      })),
    ),
  ]
  return `${lines.join('\n')}\n`
}
