import { RedelayedError, type DelayedQueueStats } from '../../index.js'
import { findFamilies } from '../../doctor/families.js'
import type { ReliableFigures } from '../../doctor/measure-reliable.js'
import { inLargestUnit } from '../../duration.js'
import { printable } from '../../text.js'
import { failureLine, NegativeResult, notShown, UsageError } from '../failure.js'
import type { RawOptions } from '../input.js'
import { measured, measuredReliable, sumOfDelayed, type MeasuredFamily } from '../measured.js'
import { isoTime, moment, table } from '../output.js'
import { Progress } from '../progress.js'
import { groupLines, groupTable, pausedLines, reliableDocument, reliableTable, taskLines } from '../reliable.js'
import { withSession } from '../session.js'

const HEADINGS = ['QUEUE', 'PENDING', 'OVERDUE', 'NEXT DUE', 'DELIVERED', 'QUARANTINED', 'SUBSCRIBERS']

export async function stats(queues: readonly string[], options: RawOptions): Promise<void> {
  if (queues.includes('')) throw new UsageError('name: expected a non-empty string')
  await withSession(options, async ({ delayed: open, access: openAccess, print }) => {
    const progress = new Progress()
    const access = await openAccess()
    const families = await findFamilies(access, queues, progress.show)
    const [delayed, reliable] = await Promise.all([
      measured(families.delayed, (queue) => open(queue).stats(), sumOfDelayed),
      measuredReliable(access, families.reliable),
    ])
    progress.clear()
    if (families.left > 0) console.error(failureLine(notShown(families.left)))
    const failed = failuresIn(delayed, reliable)
    if (queues.length > 0 && failed[0] !== undefined) throw failed[0]
    print([...delayed.map(delayedDocument), ...reliable.map(reliableDocument)], () => lines(delayed, reliable))
    if (failed[0] !== undefined)
      throw new NegativeResult(`${failed.length} cannot be read; the first: ${failed[0].message}`)
  })
}

function lines(
  delayed: readonly MeasuredFamily<DelayedQueueStats>[],
  reliable: readonly MeasuredFamily<ReliableFigures>[],
): string[] {
  if (delayed.length + reliable.length === 0) return ['No queue was found.']
  const parts = [
    delayed.length === 0 ? [] : [...table([HEADINGS, ...delayed.flatMap(rows)]), ...delayed.flatMap(advice)],
    [...reliableTable(reliable), ...pausedLines(reliable), ...groupLines(reliable), ...taskLines(reliable)],
    groupTable(reliable),
  ]
  return parts.filter(({ length }) => length > 0).flatMap((part, at) => (at === 0 ? part : ['', ...part]))
}

function rows({ queue, figures, shards }: MeasuredFamily<DelayedQueueStats>): string[][] {
  const own = (shards ?? []).map((shard) => row(`  ${printable(shard.queue)}`, shard.figures))
  const name = shards === null ? printable(queue) : `${printable(queue)} (${own.length} shards)`
  return [row(name, figures), ...own]
}

function row(name: string, figures: DelayedQueueStats | RedelayedError): string[] {
  if (figures instanceof RedelayedError) return [name, printable(figures.message)]
  const { pending, overdue, oldestOverdueMs, nextDue, now, delivered, quarantined, subscribers } = figures
  return [
    name,
    String(pending),
    overdue === 0 ? '0' : `${overdue} (by up to ${inLargestUnit(oldestOverdueMs)})`,
    nextDue === null ? '-' : moment(nextDue, now),
    String(delivered),
    String(quarantined),
    String(subscribers),
  ]
}

/** Advice for the most common problem: messages are pending and no process delivers them. */
function advice({ queue, figures, shards }: MeasuredFamily<DelayedQueueStats>): string[] {
  const isLeft = ({ figures: one }: { figures: DelayedQueueStats | RedelayedError }): boolean =>
    !(one instanceof RedelayedError) && one.pending > 0 && one.subscribers === 0
  const left = (shards ?? [{ queue, figures }]).filter(isLeft)
  if (left.length === 0) return []
  const what =
    shards === null ? 'this queue' : left.length === shards.length ? 'its shards' : `${left.length} of its shards`
  return [
    `${printable(queue)}: no client delivers ${what} now; one that consumes it, or calls ${shards === null ? 'getDelayedQueue' : 'getShardedDelayedQueue'} on it, does.`,
  ]
}

function delayedDocument({ queue, figures, shards }: MeasuredFamily<DelayedQueueStats>): object {
  const of = (stats: DelayedQueueStats | RedelayedError): object =>
    stats instanceof RedelayedError
      ? { error: { code: stats.code, message: stats.message } }
      : { ...stats, nextDueAt: isoTime(stats.nextDue) }
  return {
    queue,
    kind: 'delayed',
    ...of(figures),
    shards: shards?.map((shard) => ({ queue: shard.queue, ...of(shard.figures) })) ?? null,
  }
}

function failuresIn(...families: readonly (readonly MeasuredFamily<unknown>[])[]): RedelayedError[] {
  return families
    .flat()
    .flatMap((family) => family.shards ?? [family])
    .flatMap(({ figures }) => (figures instanceof RedelayedError ? [figures] : []))
}
