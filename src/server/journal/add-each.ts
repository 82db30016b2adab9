import { AddManyError, type AddItem, type Added, type RedelayedError } from 'redelayed'
import type { AcceptItem } from './accept-item.js'

/** The part of a queue that adds messages. */
interface Adding<T, E extends string> {
  addMany(items: Iterable<AddItem<T>>, options?: { readonly existing?: E }): Promise<Added[]>
}

/**
 * Adds messages to a queue, which sends those of all calls of one turn of the event loop together. Resolves with the answer of Redis to
 * each, in order.
 *
 * @throws RedelayedError the whole call failed: no message has an answer of its own
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

type Exact = Pick<AddItem<never>, 'id' | 'date' | 'delay' | 'timeToLive'>

/**
 * The item as the queue takes it: with `onceForMs`, Redis remembers the id, whichever call or instance brings the message. `exact` replaces
 * the values of the item.
 */
export function markedOnce<T>(item: AcceptItem<T>, exact: Exact = item): AddItem<T> {
  // part by part: a rest pattern takes several times as long
  const { payload, priority, group, headers, deliveryLimit, onceForMs } = item
  const { id, date, delay, timeToLive } = exact
  const marked = { payload, id, date, delay, timeToLive, priority, group, headers, deliveryLimit }
  return onceForMs === undefined ? marked : { ...marked, deduplicate: { by: 'id', forMs: onceForMs } }
}
