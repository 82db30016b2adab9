import { InvalidArgumentError, NoSuchElementError } from '../errors.js'
import { asBytesArray, asBytesOrNull, asInteger } from '../lua/replies.js'
import { contains, drain, type PageReply } from '../lua/scripts.js'
import { integer } from '../options.js'
import { QueueObject } from './queue-object.js'

/** How many elements one command or script moves or looks at, so that none of them holds up the server. */
const PAGE = 1_000

/** The operations that queue and blocking queue share: a Redis LIST, elements pushed right and taken left. */
export abstract class ListQueue<T> extends QueueObject<T> {
  protected get key(): string {
    return this.identity.keys.destination
  }

  /** Appends a value. Always true, as in Java. */
  async offer(value: T): Promise<boolean> {
    const bytes = this.encode(value)
    await this.send('RPUSH', [this.key, bytes])
    return true
  }

  /** The same as `offer`. */
  add(value: T): Promise<boolean> {
    return this.offer(value)
  }

  /** Appends values in order; all are encoded before the first is sent. Resolves with whether there were any. */
  async addAll(values: Iterable<T>): Promise<boolean> {
    const encoded = Array.from(values, (value, index) => this.encode(value, `values[${index}]`))
    for (let i = 0; i < encoded.length; i += PAGE) {
      await this.send('RPUSH', [this.key, ...encoded.slice(i, i + PAGE)])
    }
    return encoded.length > 0
  }

  /** The first element without taking it, or `null`. Throws a `DecodeError` when its bytes cannot be read. */
  async peek(): Promise<T | null> {
    const bytes = asBytesOrNull(await this.read('LINDEX', [this.key, '0']))
    return bytes === null ? null : this.decode(bytes)
  }

  /** How many elements the list holds. */
  async size(): Promise<number> {
    return asInteger(await this.read('LLEN', [this.key]))
  }

  async isEmpty(): Promise<boolean> {
    return (await this.size()) === 0
  }

  /** Whether an element has the same encoded bytes as `value`. Walks the list, page by page. */
  async contains(value: T): Promise<boolean> {
    const element = this.encode(value)
    let from: number | null = 0
    while (from !== null) {
      const reply: PageReply = await this.script(
        contains,
        { destination: this.key },
        { element, from, page: PAGE },
        { idempotent: true },
      )
      if (reply.found) return true
      from = reply.next
    }
    return false
  }

  /** Takes the first element; rejects with `NoSuchElementError` when there is none. */
  remove(): Promise<T>
  /** Removes the first element with the same encoded bytes as `value`; resolves with whether there was one. O(N) at the server. */
  remove(value: T): Promise<boolean>
  async remove(...args: [] | [T]): Promise<T | boolean> {
    if (args.length === 0) {
      const [value] = await this.drainTo(1)
      if (value === undefined) throw this.named(new NoSuchElementError())
      return value
    }
    const bytes = this.encode(args[0])
    return asInteger(await this.send('LREM', [this.key, '1', bytes])) > 0
  }

  /** Takes up to `max` elements without waiting, at most all that are there. `max` is at least 0; without it, all. */
  async drainTo(max = Infinity): Promise<T[]> {
    if (max !== Infinity) this.checked(() => integer('max', max, 0, Number.MAX_SAFE_INTEGER))
    return this.whole(async () => {
      const values: T[] = []
      while (values.length < max) {
        const count = Math.min(PAGE, max - values.length)
        const elements = await this.script(drain, { destination: this.key }, { count }).catch((error: unknown) => {
          if (values.length === 0) throw error
          return [] // what was taken before must reach the caller
        })
        values.push(...(await this.accept(elements)))
        if (elements.length < count) break
      }
      return values
    })
  }

  /** All elements in order, in one reply; use `iterate` for long lists. Unreadable ones are left out and reported by an `error` event. */
  async readAll(): Promise<T[]> {
    return this.decodeAll(asBytesArray(await this.read('LRANGE', [this.key, '0', '-1'])))
  }

  /**
   * Walks the elements without taking them, in pages of `pageSize` (1 to 10,000). While others take and add, elements can be
   * missed or seen twice.
   */
  async *iterate({ pageSize = 100 }: { pageSize?: number } = {}): AsyncGenerator<T, void> {
    const fetch = (first: number, last: number): Promise<unknown> =>
      this.read('LRANGE', [this.key, String(first), String(last)])
    for await (const page of this.pages(pageSize, fetch)) yield* this.decodeAll(page)
  }

  /** Deletes all elements. Pending entries of a delayed queue on it stay. */
  async clear(): Promise<void> {
    await this.delete()
  }

  /** As `clear`; resolves with whether the list existed. */
  async delete(): Promise<boolean> {
    return (await this.send('UNLINK', [this.key])) === 1
  }

  /** Takes the first readable element, without waiting. */
  protected async pollNow(): Promise<T | null> {
    for (;;) {
      const bytes = asBytesOrNull(await this.send('LPOP', [this.key]))
      if (bytes === null) return null
      const [value] = await this.accept([bytes])
      if (value !== undefined) return value
    }
  }
}

/** For callers that give something else than one of our queues. */
export function assertQueue(queue: unknown): asserts queue is ListQueue<unknown> {
  if (!(queue instanceof ListQueue)) {
    throw new InvalidArgumentError('destination', 'a queue from getQueue or getBlockingQueue of this client', queue)
  }
}
