import { plantSection, table, totals, wrongSection, type Origin } from '../pages.js'
import { WRONGS, type Wrong } from './books.js'
import type { Plant } from './plants.js'
import type { Outcome, Search } from './run.js'
import { versionOf } from './sql.js'

const TITLES: Readonly<Record<Wrong, string>> = {
  lost: 'lost',
  early: 'early',
  cancelled: 'handled after cancel',
  twice: 'twice, outside of the window',
  refused: 'refused and delivered',
  changed: 'changed',
  verify: 'differences',
  other: 'other',
}
const COUNTS = [
  'accepted',
  'journalled',
  'refused',
  'unknown',
  'cancelled',
  'revised',
  'reused',
  'redriven',
  'delivered',
  'twice',
] as const

/** The page with the findings of a run. */
export function report({
  origin,
  planned,
  outcomes,
  searches,
}: {
  origin: Origin
  planned: number
  outcomes: readonly Outcome[]
  searches: readonly (Search & { readonly plant: Plant })[]
}): string {
  const kinds = [...new Set([...outcomes.map(({ kind }) => kind), ...searches.map(({ plant }) => plant.on)])]
  const failed = outcomes.filter(({ problems }) => problems.length > 0)
  const heads = ['fault', 'times', ...COUNTS, ...WRONGS.map((wrong) => TITLES[wrong])]
  const cellsOf = (some: readonly Outcome[]): number[] => [
    ...COUNTS.map((name) => some.reduce((all, { result }) => all + (result?.[name] ?? 0), 0)),
    ...WRONGS.map((wrong) => some.flatMap(({ problems }) => problems.filter((each) => each.wrong === wrong)).length),
  ]
  const lines = [
    '# Faults of the journal',
    '',
    origin.sentence(...kinds.map(versionOf)),
    '',
    `${outcomes.length} of ${planned} faults, ${failed.length} of them with something wrong. After each one everything is handled to the end, each message is judged, and`,
    '`verify` compares SQL and Redis; [the journal](../../docs/journal.md#the-fault-bench) says how. "journalled" to "twice" are counts of messages:',
    'accepted while Redis did not answer; refused; without an answer for their producer; cancelled; handled more than once, inside of the documented window.',
    'The columns after "twice" must be 0.',
    '',
    ...table(heads, totals(outcomes, cellsOf)),
    ...wrongSection(
      failed.map(({ kind, name, problems }) => ({
        what: `${kind}: ${name}`,
        problems: problems.map(({ wrong, text }) => `${wrong}: ${text}`),
      })),
    ),
    ...plantSection(
      searches.map(({ plant, found, rounds }) => ({
        ...{ what: plant.what, on: plant.on, rounds },
        found: found.map((wrong) => TITLES[wrong]).join(', '),
      })),
    ),
  ]
  return `${lines.join('\n')}\n`
}
