import { RedelayedError } from '../index.js'
import type { ReliableFigures } from '../doctor/measure-reliable.js'
import { inLargestUnit } from '../duration.js'
import { printable, quoted } from '../text.js'
import type { Measured, MeasuredFamily } from './measured.js'
import { isoTime, moment, table } from './output.js'

type Families = readonly MeasuredFamily<ReliableFigures>[]

const HEADINGS = ['RELIABLE QUEUE', 'VISIBLE', 'DELAYED', 'NEXT DUE', 'IN FLIGHT', 'DEAD', 'REPEATS', 'CHANGES']
const GROUP_HEADINGS = ['CHANGES OF', 'GROUP', 'TO READ', 'TO ACKNOWLEDGE', 'READERS', 'LAST ASKED']
const UNKNOWN = '?'
/** The most paused tasks to name in a line. */
const MOST_TASKS = 10

/** A table with a row for each queue and each shard; empty without queues. */
export function reliableTable(families: Families): string[] {
  if (families.length === 0) return []
  const rows = families.flatMap(({ queue, figures, shards }) => {
    const own = (shards ?? []).map((shard) => row(`  ${printable(shard.queue)}`, shard.figures))
    return [row(shards === null ? printable(queue) : `${printable(queue)} (${own.length} shards)`, figures), ...own]
  })
  return table([HEADINGS, ...rows])
}

function row(name: string, figures: ReliableFigures | RedelayedError): string[] {
  if (figures instanceof RedelayedError) return [name, printable(figures.message)]
  const { now, visible, oldestMs, delayed, nextAt, inFlight, dead, repeats, changes } = figures
  return [
    name,
    visible === 0 ? '0' : `${visible} (for up to ${inLargestUnit(oldestMs)})`,
    String(delayed),
    nextAt === null ? '-' : moment(nextAt, now),
    String(inFlight),
    String(dead),
    repeats.stuck === 0 ? String(repeats.stored) : `${repeats.stored} (${repeats.stuck} stuck)`,
    changes === null ? '-' : String(changes.length),
  ]
}

/** A table of the groups that read change streams; empty without groups. */
export function groupTable(families: Families): string[] {
  const rows = queuesOf(families).flatMap(({ queue, figures }) =>
    figures instanceof RedelayedError
      ? []
      : (figures.changes?.groups ?? []).map(({ name, lag, pending, consumers, idleMs }) => [
          printable(queue),
          printable(name),
          lag === null ? UNKNOWN : String(lag),
          String(pending),
          String(consumers),
          idleMs === null ? '-' : `${inLargestUnit(idleMs)} ago`,
        ]),
  )
  return rows.length === 0 ? [] : table([GROUP_HEADINGS, ...rows])
}

/** One line for each disabled operation. */
export function pausedLines(families: Families): string[] {
  return families.flatMap(({ queue, figures, shards }) => {
    if (figures instanceof RedelayedError) return []
    const own = (shards ?? []).flatMap((shard) => (shard.figures instanceof RedelayedError ? [] : [shard.figures]))
    const line = (does: string, isPaused: (one: ReliableFigures) => boolean, operation: string): string[] => {
      if (!isPaused(figures)) return []
      const paused = own.filter(isPaused).length
      const where = own.length > paused ? ` in ${paused} of ${own.length} shards` : ''
      return [`${printable(queue)}: paused${where}: ${does}; redelayed resume ${quoted(queue)}${operation} ends it.`]
    }
    return [
      ...line('no consumer gets a message', ({ pollPaused }) => pollPaused, ''),
      ...line('adding is refused', ({ addPaused }) => addPaused, ' --operation add'),
    ]
  })
}

/** One line for each queue with paused tasks. */
export function taskLines(families: Families): string[] {
  return families.flatMap(({ queue, figures }) =>
    figures instanceof RedelayedError ? [] : taskLine(figures.tasks, `${printable(queue)}: tasks`),
  )
}

/** The line about paused tasks; none without any. */
export function taskLine({ paused, names }: ReliableFigures['tasks'], what: string): string[] {
  if (paused === 0) return []
  const some = names.slice(0, MOST_TASKS).map((name) => quoted(name))
  const others = paused > some.length ? ` and ${paused - some.length} more` : ''
  return [`${what}: ${paused} paused in all processes: ${some.join(', ')}${others}.`]
}

/** One line for each queue with groups. */
export function groupLines(families: Families): string[] {
  return families.flatMap(({ queue, figures }) =>
    figures instanceof RedelayedError ? [] : groupLine(figures.groups, `${printable(queue)}: groups`),
  )
}

/** The line about groups; none without groups. */
export function groupLine({ ready, later, paused }: ReliableFigures['groups'], what: string): string[] {
  if (ready + later + paused === 0) return []
  return [`${what}: ${ready} with turns, ${later} that wait for a time, ${paused} paused.`]
}

export function reliableDocument({ queue, figures, shards }: MeasuredFamily<ReliableFigures>): object {
  return {
    queue,
    kind: 'reliable',
    ...figuresDocument(figures),
    shards: shards?.map((shard) => ({ queue: shard.queue, ...figuresDocument(shard.figures) })) ?? null,
  }
}

function figuresDocument(figures: ReliableFigures | RedelayedError): object {
  if (figures instanceof RedelayedError) return { error: { code: figures.code, message: figures.message } }
  return { ...figures, nextAtTime: isoTime(figures.nextAt) }
}

function queuesOf(families: Families): Measured<ReliableFigures>[] {
  return families.flatMap<Measured<ReliableFigures>>((family) => family.shards ?? [family])
}
