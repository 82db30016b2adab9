import { AddManyError, type AddItem, type Added, type RedelayedError } from 'redelayed'
import type { AcceptItem } from './accept-item.js'

/** What of a queue adds messages. */
interface Adding<T, E extends string> {
  addMany(items: Iterable<AddItem<T>>, options?: { readonly existing?: E }): Promise<Added[]>
}

/**
 * Adds messages to a queue, which sends those of all calls of one turn of the event loop together. What Redis said to each message, in order.
 *
 * @throws RedelayedError none has an answer of its own
 */
export async function addEach<T, E extends string>(
  queue: Adding<T, E>,
  items: readonly AddItem<T>[],
  existing: E,
): Promise<readonly (Added | RedelayedError)[]> {
  try {
    return await queue.addMany(items, { existing })
  } catch (thrown) {
    if (!(thrown instanceof AddManyError)) throw thrown
    const failed = new Map(thrown.failures.map(({ index, error }) => [index, error]))
    return items.map((_, at) => failed.get(at) ?? (thrown.results[at] as Added))
  }
}

/** Redis remembers the id of a message that is to be added once, whichever call or instance brings it. */
export function markedOnce<T>({ onceForMs, isDrawn: _, ...item }: AcceptItem<T>): AddItem<T> {
  return onceForMs === undefined ? item : { ...item, deduplicate: { by: 'id', forMs: onceForMs } }
}
