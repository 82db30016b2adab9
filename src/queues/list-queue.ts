import type { Codec } from '../codecs/codec.js'
import { InvalidArgumentError } from '../errors.js'
import { boolean, integer, onlyKnown } from '../options.js'
import { LIST_PAGE } from '../store/list-store.js'
import { listKeys } from '../store/object-store.js'
import type { Duration } from '../duration.js'
import type { TimeUnit } from '../timing/units.js'
import type { QueueContext, QueueIdentity } from './context.js'
import type { KeyedObject } from './keyed-object.js'
import { ListElements } from './list-elements.js'
import { ObjectOperations } from './object-operations.js'
import { namesOperations } from './operations.js'
import { MAX_RETAINED, pages } from './paging.js'
import type { QuarantinedEntry } from './quarantine.js'

/** The elements that a queue moves to the end of another. */
export interface QueueMove {
  /** The name of the other queue. */
  readonly to: string
  /** The most elements to move, from the first on. 1 to 1,000; default 1. */
  readonly count?: number | undefined
  /** Move none when there are fewer than `count`. Default false. */
  readonly exactly?: boolean | undefined
}

/** The operations that all queues and deques share: a Redis LIST, elements pushed right and taken left. */
export abstract class ListQueue<T> implements KeyedObject<T> {
  readonly name: string
  readonly codec: Codec<T>
  /** @internal */
  readonly list: ListElements<T>
  readonly #object: ObjectOperations

  static {
    namesOperations(this, { queueOf: ({ name }) => name })
  }

  /** @internal */
  constructor(context: QueueContext, identity: QueueIdentity<T>) {
    this.name = identity.name
    this.codec = identity.codec
    this.list = new ListElements(context, identity)
    this.#object = new ObjectOperations(this.list.handle, identity.keys, listKeys)
  }

  /**
   * Appends a value. Always true, as in Java.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws WrongTypeError `ERR_WRONG_TYPE`: the key holds another type of value
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.offer('to ada')
   * ```
   */
  async offer(value: T): Promise<boolean> {
    const { handle, store } = this.list
    await store.push('RPUSH', [handle.encode(value)])
    return true
  }

  /**
   * The same as `offer`.
   *
   * @throws as `offer`
   *
   * @example
   * ```ts
   * await queue.add('to ada')
   * ```
   */
  add(value: T): Promise<boolean> {
    return this.offer(value)
  }

  /**
   * Appends values in order; all are encoded before the first is sent. Resolves with whether there were any.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.addAll(['to ada', 'to bob'])
   * ```
   */
  async addAll(values: Iterable<T>): Promise<boolean> {
    const { handle, store } = this.list
    const encoded = Array.from(values, (value, index) => handle.encode(value, `values[${index}]`))
    for (let i = 0; i < encoded.length; i += LIST_PAGE) await store.push('RPUSH', encoded.slice(i, i + LIST_PAGE))
    return encoded.length > 0
  }

  /**
   * The first element without taking it, or `null`. Throws a `DecodeError` when its bytes cannot be read.
   *
   * @throws DecodeError `ERR_DECODE`: the element's bytes cannot be read; it stays where it is
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.peek()) // 'to ada', or null
   * ```
   */
  async peek(): Promise<T | null> {
    const bytes = await this.list.store.at(0)
    return bytes === null ? null : this.list.handle.decode(bytes)
  }

  /**
   * How many elements the list holds.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.size())
   * ```
   */
  async size(): Promise<number> {
    return this.list.store.size()
  }

  /**
   * Whether the list holds no element.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * if (await queue.isEmpty()) console.log('nothing is there')
   * ```
   */
  async isEmpty(): Promise<boolean> {
    return (await this.size()) === 0
  }

  /**
   * As `peek`, but rejects with `NoSuchElementError` when there is none.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws DecodeError `ERR_DECODE`: the element's bytes cannot be read; it stays where it is
   *
   * @example
   * ```ts
   * console.log(await queue.element())
   * ```
   */
  async element(): Promise<T> {
    return this.list.handle.orThrow(await this.peek())
  }

  /**
   * Whether an element has the same encoded bytes as `value`. Walks the list, page by page.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * if (await queue.contains('to ada')) console.log('it is there')
   * ```
   */
  async contains(value: T): Promise<boolean> {
    return (await this.indexOf(value)) >= 0
  }

  /**
   * How many elements are before the first with the same encoded bytes as `value`; -1 when there is none.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.indexOf('to ada')) // 0 is the first, -1 none
   * ```
   */
  async indexOf(value: T): Promise<number> {
    const { handle, store } = this.list
    return store.indexOf(handle.encode(value))
  }

  /**
   * Whether the list has an element of each of `values`. Equal values need only one element; for no values the answer is true.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.containsAll(['to ada', 'to bob']))
   * ```
   */
  async containsAll(values: Iterable<T>): Promise<boolean> {
    const { handle, store } = this.list
    return store.containsAll(handle.encodeDistinct(values))
  }

  /**
   * Removes every element that equals one of `values`, value by value; resolves with whether there was any.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.removeAll(['to ada', 'to bob'])
   * ```
   */
  async removeAll(values: Iterable<T>): Promise<boolean> {
    const { handle, store } = this.list
    const distinct = handle.encodeDistinct(values)
    return handle.trackOperation(async () => {
      let removed = 0
      for (const bytes of distinct) removed += await store.remove(bytes, 0)
      return removed > 0
    })
  }

  /**
   * Removes every element that equals none of `values` (at most 10,000 different ones), page by page; resolves with whether
   * there was any. Elements appended meanwhile stay.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: there are more than 10,000 different values
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await queue.retainAll(['to ada'])
   * ```
   */
  async retainAll(values: Iterable<T>): Promise<boolean> {
    const { handle, store } = this.list
    const distinct = handle.encodeDistinct(values, MAX_RETAINED)
    if (distinct.length === 0) return this.delete()
    return handle.trackOperation(async () => (await store.retainAll(distinct)) > 0)
  }

  /**
   * Takes the first element; rejects with `NoSuchElementError` when there is none.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const first = await queue.remove()
   * const wasThere = await queue.remove('to ada')
   * console.log(first, wasThere)
   * ```
   */
  remove(): Promise<T>
  /** Removes the first element with the same encoded bytes as `value`; resolves with whether there was one. O(N) at the server. */
  remove(value: T): Promise<boolean>
  async remove(...args: [] | [T]): Promise<T | boolean> {
    const { handle, store } = this.list
    if (args.length > 0) return (await store.remove(handle.encode(args[0] as T), 1)) > 0
    const [value = null] = await this.list.drain('left', 1)
    return handle.orThrow(value)
  }

  /**
   * Takes up to `max` elements without waiting. `max` is at least 0; without it, all that the list has.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * for (const mail of await queue.drainTo(100)) console.log(mail)
   * ```
   */
  async drainTo(max = Infinity): Promise<T[]> {
    if (max !== Infinity) integer('max', max, 0, Number.MAX_SAFE_INTEGER)
    return this.list.drain('left', max)
  }

  /**
   * Moves the last element to the front of the queue `name`, in one step at the server; resolves with it, or with `null` when
   * there is none. Throws a `DecodeError` when its bytes cannot be read; the element is then in the other queue.
   *
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.pollLastAndOfferFirstTo('mails:late'))
   * ```
   */
  async pollLastAndOfferFirstTo(name: string): Promise<T | null> {
    const { handle, store } = this.list
    const bytes = await store.moveLastToFront(handle.context.keysOf(name).destination)
    return bytes === null ? null : handle.decode(bytes)
  }

  /**
   * Moves the first elements to the end of another queue, in their order and in one step at the server; resolves with those
   * that were moved. An element whose bytes cannot be read is moved too, but left out of the result and reported by an `error` event.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const moved = await queue.move({ to: 'mails:late', count: 10 })
   * console.log(moved.length)
   * ```
   */
  async move(options: QueueMove): Promise<T[]> {
    const { handle, store } = this.list
    onlyKnown('options', options, ['to', 'count', 'exactly'])
    const count = integer('count', options.count ?? 1, 1, LIST_PAGE)
    const exactly = boolean('exactly', options.exactly ?? false)
    const target = handle.context.keysOf(options.to).destination
    return handle.decodeAll(await store.move(target, { count, exactly }))
  }

  /**
   * All elements in order, in one reply; use `iterate` for long lists. Unreadable ones are left out and reported by an `error` event.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await queue.readAll())
   * ```
   */
  async readAll(): Promise<T[]> {
    return this.list.handle.decodeAll(await this.list.store.range(0, -1))
  }

  /**
   * The same as `readAll`.
   *
   * @throws as `readAll`
   *
   * @example
   * ```ts
   * console.log(await queue.toArray())
   * ```
   */
  toArray(): Promise<T[]> {
    return this.readAll()
  }

  /**
   * Walks the elements without taking them, in pages of `pageSize` (1 to 10,000). While consumers take and producers add, elements can be
   * missed or seen twice.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * for await (const mail of queue.iterate({ pageSize: 1_000 })) console.log(mail)
   * ```
   */
  async *iterate(options: { pageSize?: number } = {}): AsyncGenerator<T, void> {
    const { handle, store } = this.list
    for await (const page of pages(options, (first, last) => store.range(first, last))) {
      yield* await handle.decodeAll(page)
    }
  }

  readQuarantine(limit?: number): Promise<QuarantinedEntry[]> {
    return this.list.quarantine.read(limit)
  }

  clearQuarantine(): Promise<boolean> {
    return this.list.quarantine.clear()
  }

  getName(): string {
    return this.name
  }

  getCodec(): Codec<T> {
    return this.codec
  }

  isExists(): Promise<boolean> {
    return this.#object.exists()
  }

  delete(): Promise<boolean> {
    return this.#object.delete()
  }

  unlink(): Promise<boolean> {
    return this.#object.delete()
  }

  async clear(): Promise<void> {
    await this.#object.delete()
  }

  touch(): Promise<boolean> {
    return this.#object.touch()
  }

  sizeInMemory(): Promise<number> {
    return this.#object.sizeInMemory()
  }

  expire(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#object.expire('always', when, unit)
  }

  expireIfSet(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#object.expire('set', when, unit)
  }

  expireIfNotSet(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#object.expire('unset', when, unit)
  }

  expireIfGreater(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#object.expire('greater', when, unit)
  }

  expireIfLess(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#object.expire('less', when, unit)
  }

  clearExpire(): Promise<boolean> {
    return this.#object.clearExpire()
  }

  remainTimeToLive(): Promise<number> {
    return this.#object.timeToLive()
  }

  getExpireTime(): Promise<number> {
    return this.#object.expireTime()
  }

  async rename(newName: string): Promise<void> {
    await this.#object.rename(newName, true)
  }

  renamenx(newName: string): Promise<boolean> {
    return this.#object.rename(newName, false)
  }

  copy(newName: string): Promise<boolean> {
    return this.#object.copy(newName, false)
  }

  copyAndReplace(newName: string): Promise<boolean> {
    return this.#object.copy(newName, true)
  }
}

/** Throws unless `queue` is a queue or deque of this package. */
export function assertQueue(queue: unknown): asserts queue is ListQueue<unknown> {
  if (!(queue instanceof ListQueue)) {
    throw new InvalidArgumentError('destination', 'a queue or deque of this client', queue)
  }
}
