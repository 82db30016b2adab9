import type { ReliableQueueCounts } from '../index.js'
import { quoted, printable } from '../text.js'

/** For people, of a queue that these commands know by its name and counts only. */
export function reliableLine(queue: string, counts: ReliableQueueCounts): string {
  const { visible, delayed, inFlight, dead } = counts
  return (
    `${printable(queue)} is a reliable queue: ${visible} visible, ${delayed} delayed, ${inFlight} in flight, ${dead} dead letters. ` +
    `offer, peek and cancel are for delayed queues and do not see these messages; ` +
    `redelayed doctor ${quoted(queue)} examines the queue.`
  )
}
