import type { DelayedQueueStats } from '../../index.js'
import { printable } from '../../text.js'
import type { RawOptions } from '../input.js'
import { isoTime, moment, table } from '../output.js'
import { inLargestUnit } from '../../duration.js'
import { reliableLine } from '../reliable.js'
import { withSession } from '../session.js'

const HEADINGS = ['QUEUE', 'PENDING', 'OVERDUE', 'NEXT DUE', 'DELIVERED', 'QUARANTINED', 'SUBSCRIBERS']

export async function stats(queues: readonly string[], options: RawOptions): Promise<void> {
  await withSession(options, async ({ delayed, reliable, print }) => {
    const found = await Promise.all(
      queues.map(async (queue) => {
        const [stats, counts] = await Promise.all([delayed(queue).stats(), reliable(queue)])
        return { queue, stats, counts }
      }),
    )
    print(
      found.map(({ queue, stats, counts }) => ({
        queue,
        ...stats,
        nextDueAt: isoTime(stats.nextDue),
        reliable: counts,
      })),
      () => [
        ...table([HEADINGS, ...found.map(({ queue, stats }) => row(queue, stats))]),
        ...found.flatMap(advice),
        ...found.flatMap(({ queue, counts }) => (counts === null ? [] : [reliableLine(queue, counts)])),
      ],
    )
  })
}

function row(queue: string, stats: DelayedQueueStats): string[] {
  const { pending, overdue, oldestOverdueMs, nextDue, now, delivered, quarantined, subscribers } = stats
  return [
    printable(queue),
    String(pending),
    overdue === 0 ? '0' : `${overdue} (by up to ${inLargestUnit(oldestOverdueMs)})`,
    nextDue === null ? '-' : moment(nextDue, now),
    String(delivered),
    String(quarantined),
    String(subscribers),
  ]
}

/** The most common trap: messages are pending and no process delivers them. */
function advice({ queue, stats }: { queue: string; stats: DelayedQueueStats }): string[] {
  if (stats.pending === 0 || stats.subscribers > 0) return []
  return [
    `${printable(queue)}: no client delivers this queue now; one that consumes it, or calls getDelayedQueue on it, does.`,
  ]
}
