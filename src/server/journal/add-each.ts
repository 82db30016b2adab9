import { AddManyError, type AddItem, type Added, type RedelayedError } from 'redelayed'
import type { AcceptItem } from './accept-item.js'
import type { JournalledQueue } from './journalled-queue.js'

/** What Redis said to each message. @throws RedelayedError none has an answer of its own */
export async function addEach<T>(
  queue: JournalledQueue<T>,
  items: readonly AddItem<T>[],
): Promise<(Added | RedelayedError)[]> {
  try {
    return await queue.addMany(items, { existing: 'keep' })
  } catch (error) {
    if (!(error instanceof AddManyError)) throw error
    const failed = new Map(error.failures.map((failure) => [failure.index, failure.error]))
    return items.map((_, at) => failed.get(at) ?? (error.results[at] as Added))
  }
}

/** Redis remembers the id of a message that is to be added once, whichever call or instance brings it. */
export function markedOnce<T>({ onceForMs, ...item }: AcceptItem<T>): AddItem<T> {
  return onceForMs === undefined ? item : { ...item, deduplicate: { by: 'id', forMs: onceForMs } }
}
