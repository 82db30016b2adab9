import { AddManyError, type AddItem, type Added, type RedelayedError } from 'redelayed'
import type { AcceptItem } from './accept-item.js'

type Existing = 'keep' | 'replace' | 'postpone'
/** Of each message in order. */
type Results = readonly (Added | RedelayedError)[]

/** What of a queue adds messages. */
export interface Adding<T, E extends Existing = 'keep'> {
  addMany(items: Iterable<AddItem<T>>, options?: { readonly existing?: E }): Promise<Added[]>
}

interface Call<T> {
  readonly items: readonly AddItem<T>[]
  readonly resolve: (results: Results) => void
  readonly reject: (error: unknown) => void
}

/** A script takes so many; a call with as many needs no company. */
const MOST = 250

/**
 * Adds messages to a queue: the calls of one turn of the event loop go to Redis together, because a script and a write to the socket cost more than
 * the messages of small calls do. Each call has the results of its own messages, as if it were alone.
 */
export class JoinedAdds<T, E extends Existing = 'keep'> {
  readonly #queue: Adding<T, E>
  readonly #waiting = new Map<E, Call<T>[]>()

  constructor(queue: Adding<T, E>) {
    this.#queue = queue
  }

  /** What Redis said to each message. @throws RedelayedError none has an answer of its own */
  async add(items: readonly AddItem<T>[], existing: E): Promise<Results> {
    if (items.length >= MOST) return this.#send(items, existing)
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(existing) ?? []
      waiting.push({ items, resolve, reject })
      if (waiting.length > 1) return
      this.#waiting.set(existing, waiting)
      setImmediate(() => this.#flush(existing))
    })
  }

  #flush(existing: E): void {
    const waiting = this.#waiting.get(existing) ?? []
    this.#waiting.delete(existing)
    for (let from = 0; from < waiting.length;) {
      let [to, count] = [from, 0]
      while (to < waiting.length && (count += waiting[to]?.items.length ?? 0) <= MOST) to++
      void this.#answer(waiting.slice(from, to), existing)
      from = to
    }
  }

  async #answer(calls: readonly Call<T>[], existing: E): Promise<void> {
    try {
      const results = await this.#send(
        calls.flatMap(({ items }) => items),
        existing,
      )
      let at = 0
      for (const { items, resolve } of calls) resolve(results.slice(at, (at += items.length)))
    } catch (thrown) {
      // nothing was sent: a message of one call must not fail the others
      for (const { items, resolve, reject } of calls)
        if (calls.length === 1) reject(thrown)
        else this.#send(items, existing).then(resolve, reject)
    }
  }

  async #send(items: readonly AddItem<T>[], existing: E): Promise<Results> {
    try {
      return await this.#queue.addMany(items, { existing })
    } catch (thrown) {
      if (!(thrown instanceof AddManyError)) throw thrown
      const failed = new Map(thrown.failures.map(({ index, error }) => [index, error]))
      return items.map((_, at) => failed.get(at) ?? (thrown.results[at] as Added))
    }
  }
}

/** Redis remembers the id of a message that is to be added once, whichever call or instance brings it. */
export function markedOnce<T>({ onceForMs, isDrawn: _, ...item }: AcceptItem<T>): AddItem<T> {
  return onceForMs === undefined ? item : { ...item, deduplicate: { by: 'id', forMs: onceForMs } }
}
