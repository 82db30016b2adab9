import { run } from '../store/run.js'
import { randomBytes } from 'node:crypto'
import { InvalidArgumentError } from '../errors.js'
import type { End } from '../redis/blocking/blocking-commands.js'
import type { QueueKeys } from '../keys.js'
import { asBytesArray, asBytesOrNull, asInteger } from '../store/replies.js'
import { contains, drain, move, filterList, type IndexReply, type FilterListReply } from '../store/scripts.js'
import { boolean, integer, onlyKnown } from '../options.js'
import { KeyedObject } from './keyed-object.js'
import { MAX_RETAINED } from './queue-object.js'

/** How many elements one command or script moves or looks at, so that none of them holds up the server. */
const PAGE = 1_000
/** After how many bytes of elements a script that looks at them or takes them ends, too. */
const PAGE_BYTES = 2 ** 20
/** Bytes that no element consists of, drawn for each call. */
const MARK_BYTES = 20

/** What a queue moves to the end of another. */
export interface QueueMove {
  /** The name of the other queue. */
  readonly to: string
  /** At most so many elements, from the first on. 1 to 1,000; default 1. */
  readonly count?: number | undefined
  /** Move none when there are fewer than `count`. Default false. */
  readonly exactly?: boolean | undefined
}

/** The operations that all queues and deques share: a Redis LIST, elements pushed right and taken left. */
export abstract class ListQueue<T> extends KeyedObject<T> {
  /** @internal */
  get key(): string {
    return this.identity.keys.destination
  }

  /** Appends a value. Always true, as in Java. */
  async offer(value: T): Promise<boolean> {
    const bytes = this.handle.encode(value)
    await this.handle.call('RPUSH', [this.key, bytes])
    return true
  }

  /** The same as `offer`. */
  add(value: T): Promise<boolean> {
    return this.offer(value)
  }

  /** Appends values in order; all are encoded before the first is sent. Resolves with whether there were any. */
  async addAll(values: Iterable<T>): Promise<boolean> {
    const encoded = Array.from(values, (value, index) => this.handle.encode(value, `values[${index}]`))
    for (let i = 0; i < encoded.length; i += PAGE) {
      await this.handle.call('RPUSH', [this.key, ...encoded.slice(i, i + PAGE)])
    }
    return encoded.length > 0
  }

  /** The first element without taking it, or `null`. Throws a `DecodeError` when its bytes cannot be read. */
  async peek(): Promise<T | null> {
    const bytes = asBytesOrNull(await this.handle.call('LINDEX', [this.key, '0'], { idempotent: true }))
    return bytes === null ? null : this.handle.decode(bytes)
  }

  /** How many elements the list holds. */
  async size(): Promise<number> {
    return asInteger(await this.handle.call('LLEN', [this.key], { idempotent: true }))
  }

  async isEmpty(): Promise<boolean> {
    return (await this.size()) === 0
  }

  /** As `peek`, but rejects with `NoSuchElementError` when there is none. */
  async element(): Promise<T> {
    return this.handle.orThrow(await this.peek())
  }

  /** Whether an element has the same encoded bytes as `value`. Walks the list, page by page. */
  async contains(value: T): Promise<boolean> {
    return (await this.indexOf(value)) >= 0
  }

  /** How many elements stand before the first with the same encoded bytes as `value`; -1 when there is none. */
  async indexOf(value: T): Promise<number> {
    const element = this.handle.encode(value)
    let from: number | null = 0
    while (from !== null) {
      const args = { element, from, page: PAGE, bytes: PAGE_BYTES }
      const reply: IndexReply = await run(this.handle, contains, { destination: this.key }, args, { idempotent: true })
      if (reply.index !== null) return reply.index
      from = reply.next
    }
    return -1
  }

  /** Whether each of `values` is there; one element is enough for equal ones, and of no values all are there. */
  async containsAll(values: Iterable<T>): Promise<boolean> {
    const distinct = this.handle.encodeDistinct(values)
    for (let i = 0; i < distinct.length; i += PAGE) {
      if ((await this.#filterList(distinct.slice(i, i + PAGE), false)).missing > 0) return false
    }
    return true
  }

  /** Removes every element that equals one of `values`, value by value; resolves with whether there was any. */
  async removeAll(values: Iterable<T>): Promise<boolean> {
    const distinct = this.handle.encodeDistinct(values)
    return this.handle.trackOperation(async () => {
      let removed = 0
      for (const bytes of distinct) removed += asInteger(await this.handle.call('LREM', [this.key, '0', bytes]))
      return removed > 0
    })
  }

  /**
   * Removes every element that equals none of `values` (at most 10,000 different ones), page by page; resolves with whether
   * there was any. What is appended meanwhile stays.
   */
  async retainAll(values: Iterable<T>): Promise<boolean> {
    const distinct = this.handle.encodeDistinct(values, MAX_RETAINED)
    if (distinct.length === 0) return this.delete()
    return this.handle.trackOperation(async () => (await this.#filterList(distinct, true)).removed > 0)
  }

  /** Takes the first element; rejects with `NoSuchElementError` when there is none. */
  remove(): Promise<T>
  /** Removes the first element with the same encoded bytes as `value`; resolves with whether there was one. O(N) at the server. */
  remove(value: T): Promise<boolean>
  async remove(...args: [] | [T]): Promise<T | boolean> {
    if (args.length === 0) {
      const [value = null] = await this.takeNow('left', 1)
      return this.handle.orThrow(value)
    }
    const bytes = this.handle.encode(args[0])
    return asInteger(await this.handle.call('LREM', [this.key, '1', bytes])) > 0
  }

  /** Takes up to `max` elements without waiting, at most all that are there. `max` is at least 0; without it, all. */
  async drainTo(max = Infinity): Promise<T[]> {
    if (max !== Infinity) this.handle.checked(() => integer('max', max, 0, Number.MAX_SAFE_INTEGER))
    return this.takeNow('left', max)
  }

  /**
   * Moves the last element to the front of the queue `name`, in one step at the server; resolves with it, or with `null` when
   * there is none. Throws a `DecodeError` when its bytes cannot be read; then it is in the other queue.
   */
  async pollLastAndOfferFirstTo(name: string): Promise<T | null> {
    const target = this.handle.checked(() => this.context.keysOf(name).destination)
    const bytes = asBytesOrNull(await this.handle.call('RPOPLPUSH', [this.key, target]))
    return bytes === null ? null : this.handle.decode(bytes)
  }

  /**
   * Moves the first elements to the end of another queue, in their order and in one step at the server; resolves with those
   * that were moved. One whose bytes cannot be read is moved too, but left out and reported by an `error` event.
   */
  async move(options: QueueMove): Promise<T[]> {
    const { keys, args } = this.handle.checked(() => {
      onlyKnown('options', options, ['to', 'count', 'exactly'])
      const count = integer('count', options.count ?? 1, 1, PAGE)
      const exactly = boolean('exactly', options.exactly ?? false)
      const target = this.context.keysOf(options.to).destination
      return { keys: { source: this.key, target }, args: { count, exactly } }
    })
    return this.handle.decodeAll(await run(this.handle, move, keys, args))
  }

  /** All elements in order, in one reply; use `iterate` for long lists. Unreadable ones are left out and reported by an `error` event. */
  async readAll(): Promise<T[]> {
    return this.handle.decodeAll(
      asBytesArray(await this.handle.call('LRANGE', [this.key, '0', '-1'], { idempotent: true })),
    )
  }

  /** The same as `readAll`. */
  toArray(): Promise<T[]> {
    return this.readAll()
  }

  /**
   * Walks the elements without taking them, in pages of `pageSize` (1 to 10,000). While others take and add, elements can be
   * missed or seen twice.
   */
  async *iterate({ pageSize = 100 }: { pageSize?: number } = {}): AsyncGenerator<T, void> {
    const fetch = (first: number, last: number): Promise<unknown> =>
      this.handle.call('LRANGE', [this.key, String(first), String(last)], { idempotent: true })
    for await (const page of this.pages(pageSize, fetch)) yield* this.handle.decodeAll(page)
  }

  protected keysOf({ destination }: QueueKeys): readonly [string, string] {
    return [destination, destination]
  }

  protected channelOf(): string {
    return ''
  }

  /** Takes the first readable element at an end, without waiting. */
  protected async pollNow(end: End = 'left'): Promise<T | null> {
    for (;;) {
      const bytes = asBytesOrNull(await this.handle.call(end === 'left' ? 'LPOP' : 'RPOP', [this.key]))
      if (bytes === null) return null
      const [value] = await this.accept([bytes])
      if (value !== undefined) return value
    }
  }

  /** Takes up to `max` elements at an end, the nearest to it first, without waiting. */
  protected takeNow(end: End, max: number): Promise<T[]> {
    return this.handle.trackOperation(async () => {
      const values: T[] = []
      while (values.length < max) {
        const count = Math.min(PAGE, max - values.length)
        const args = { count, bytes: PAGE_BYTES, right: end === 'right' }
        const elements = await run(this.handle, drain, { destination: this.key }, args).catch((error: unknown) => {
          if (values.length === 0) throw error
          return [] // what was taken before must reach the caller
        })
        values.push(...(await this.accept(elements)))
        if (elements.length < count && bytesOf(elements) < PAGE_BYTES) break
      }
      return values
    })
  }

  /** How many of the elements are not in the list, and how many others were removed. */
  async #filterList(elements: readonly Buffer[], retain: boolean): Promise<{ missing: number; removed: number }> {
    const mark = randomBytes(MARK_BYTES)
    const missing = new Set(elements.keys())
    let removed = 0
    let skip: number | null = 0
    while (skip !== null && (retain || missing.size > 0)) {
      const args = { skip, page: PAGE, bytes: PAGE_BYTES, retain, mark, elements }
      const reply: FilterListReply = await run(this.handle, filterList, { destination: this.key }, args, {
        idempotent: !retain,
      })
      for (const position of reply.found) missing.delete(position)
      removed += reply.removed
      skip = reply.next
    }
    return { missing: missing.size, removed }
  }
}

function bytesOf(elements: readonly Buffer[]): number {
  return elements.reduce((sum, element) => sum + element.length, 0)
}

/** For callers that give something else than one of our queues. */
export function assertQueue(queue: unknown): asserts queue is ListQueue<unknown> {
  if (!(queue instanceof ListQueue)) {
    throw new InvalidArgumentError('destination', 'a queue or deque of this client', queue)
  }
}
