import { plantSection, table, totals, wrongSection } from '../pages.js'
import type { Findings } from './findings.js'

/** A line of the report of a run: of a fault, or of one that was planted. */
export type Line =
  | (Partial<Findings> & {
      readonly name: string
      readonly stage: string
      readonly problems: readonly string[]
      readonly takeovers?: number
    })
  | { readonly plant: string; readonly stage: string; readonly rounds: number; readonly found?: string }

const COUNTS = ['added', 'changed', 'delivered', 'acknowledged', 'dead'] as const
/** Of batches, waits and limits: the columns of a run without them would be empty. */
const PERHAPS = ['batches', 'waited'] as const
/** These must be 0 after every fault. */
const NEVER = [
  'lost',
  'dropped',
  'stray',
  'buried',
  'spoilt',
  'unused',
  'unfinished',
  'miscounted',
  'hung',
  'missed',
  'outrun',
] as const
/** These can be wrong after a failover, in which Redis loses writes; each scenario says how often. */
const LIMITED = [
  'early',
  'cancelled',
  'unremoved',
  'unrestored',
  'revived',
  'merged',
  'unfound',
  'overlapping',
  'late',
  'again',
  'denied',
  'excess',
  'crowded',
  'rushed',
  'reopened',
  'unlike',
  'premature',
  'skipped',
  'doubled',
] as const
/** How often the sentinels chose another master. */
const TAKEOVERS = 'takeovers' as const

/** The findings of a run with faults of reliable queues. */
export function pageOf(lines: readonly Line[], origin: string): string {
  const faults = lines.flatMap((line) =>
    'name' in line && 'dead' in line ? [{ ...line, kind: line.stage, name: `${line.stage}: ${line.name}` }] : [],
  )
  const failed = lines.flatMap((line) => ('name' in line && line.problems.length > 0 ? [line] : []))
  const isSome = (what: keyof Findings | typeof TAKEOVERS): boolean =>
    faults.some((line) => Number(line[what] ?? 0) > 0)
  const limited = LIMITED.filter(isSome)
  const none = LIMITED.filter((what) => !limited.includes(what))
  const columns = [...COUNTS, ...PERHAPS.filter(isSome), ...NEVER, ...limited, TAKEOVERS] as const
  const heads = ['fault', 'times', ...columns, 'latest, ms']
  const cellsOf = (some: readonly (typeof faults)[number][]): number[] => [
    ...columns.map((what) => some.reduce((all, line) => all + (line[what] ?? 0), 0)),
    Math.max(0, ...some.map(({ latestMs = 0 }) => latestMs)),
  ]
  const text = [
    '# Faults of reliable queues',
    '',
    origin,
    '',
    `${faults.length} faults, ${failed.length} with something wrong. After each one everything is handled to the end and each message is judged; [reliability](../../docs/reliability.md#the-fault-bench)`,
    `says how. The columns from "${NEVER[0]}" to "${NEVER.at(-1)}" must be 0. Those behind them, to "takeovers", are what Redis may forget where a replica takes over that did not have`,
    'the last writes, and ticks of schedules that moved to another shard; each fault has its limits, for each takeover of the sentinels, in `test/faults/reliable/scenarios.ts`.',
    `${none.length > 0 ? `These are 0 after every fault here: ${none.join(', ')}. ` : ''}"latest": from the healing, or when a message became visible, until it was claimed.`,
    '',
    ...table(heads, totals(faults, cellsOf)),
    ...wrongSection(failed.map(({ name, problems }) => ({ what: name, problems: [problems.join('; ')] }))),
    ...plantSection(
      lines.flatMap((line) =>
        'plant' in line ? [{ ...line, what: line.plant, on: line.stage, found: shortened(line.found ?? '') }] : [],
      ),
    ),
  ]
  return `${text.join('\n')}\n`
}

/** Without names that another run has not. */
function shortened(found: string): string {
  const line = (found.split('\n', 1)[0] ?? '').replace(/^(Error: )+/, '').replace(/^\S+\/\w+-\d+: Error: /, '')
  return line.length <= 120 ? line : `${line.slice(0, 120)}...`
}
