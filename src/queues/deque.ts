import type { QueueContext, QueueIdentity } from './context.js'
import { DequeEnds, type DequeMove } from './deque-ends.js'
import { ListQueue, type QueueMove } from './list-queue.js'
import { namesOperations } from './operations.js'
import type { Queue } from './queue.js'

/** Redisson's `RDeque`: a queue that can be used at both ends. */
export class Deque<T = unknown> extends ListQueue<T> implements Queue<T> {
  /** @internal */
  readonly ends: DequeEnds<T>

  static {
    namesOperations(this, { queueOf: ({ name }) => name })
  }

  /** @internal */
  constructor(context: QueueContext, identity: QueueIdentity<T>) {
    super(context, identity)
    this.ends = new DequeEnds(this.list)
  }

  /**
   * Takes the first element, or `null` when the queue is empty.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const first = await deque.poll()
   * const more = await deque.poll(10)
   * console.log(first, more.length)
   * ```
   */
  poll(): Promise<T | null>
  /** Takes up to `limit` elements. */
  poll(limit: number): Promise<T[]>
  async poll(limit?: number): Promise<T | null | T[]> {
    return this.ends.poll('left', limit)
  }

  /**
   * Puts values in front, one after the other: the last one given is the first element.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await deque.addFirst('second', 'first')
   * ```
   */
  async addFirst(...values: [T, ...T[]]): Promise<void> {
    await this.ends.push('LPUSH', values)
  }

  /**
   * Appends values, in their order.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await deque.addLast('to ada', 'to bob')
   * ```
   */
  async addLast(...values: [T, ...T[]]): Promise<void> {
    await this.ends.push('RPUSH', values)
  }

  /**
   * As `addFirst`, if the deque is not empty; resolves with its new size, 0 when it was empty.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const size = await deque.addFirstIfExists('to ada')
   * console.log(size) // 0: the deque is empty
   * ```
   */
  addFirstIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.ends.push('LPUSHX', values)
  }

  /**
   * As `addLast`, if the deque is not empty; resolves with its new size, 0 when it was empty.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await deque.addLastIfExists('to ada'))
   * ```
   */
  addLastIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.ends.push('RPUSHX', values)
  }

  /**
   * Puts a value in front. Always true, as in Java.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await deque.offerFirst('to ada')
   * ```
   */
  offerFirst(value: T): Promise<boolean> {
    return this.ends.offer('LPUSH', value)
  }

  /**
   * Appends a value. Always true, as in Java.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await deque.offerLast('to ada')
   * ```
   */
  offerLast(value: T): Promise<boolean> {
    return this.ends.offer('RPUSH', value)
  }

  /**
   * Puts a value in front, as onto a stack.
   *
   * @throws as `addFirst`
   *
   * @example
   * ```ts
   * await deque.push('to ada')
   * ```
   */
  push(value: T): Promise<void> {
    return this.addFirst(value)
  }

  /**
   * Takes the first element, as from a stack; rejects with `NoSuchElementError` when there is none.
   *
   * @throws as `removeFirst`
   *
   * @example
   * ```ts
   * console.log(await deque.pop())
   * ```
   */
  pop(): Promise<T> {
    return this.ends.remove('left')
  }

  /**
   * Takes the first element; rejects with `NoSuchElementError` when there is none.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await deque.removeFirst())
   * ```
   */
  removeFirst(): Promise<T> {
    return this.ends.remove('left')
  }

  /**
   * Takes the last element; rejects with `NoSuchElementError` when there is none.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await deque.removeLast())
   * ```
   */
  removeLast(): Promise<T> {
    return this.ends.remove('right')
  }

  /**
   * Takes the first element, or `null` when there is none.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const first = await deque.pollFirst()
   * const next = await deque.pollFirst(10)
   * console.log(first, next)
   * ```
   */
  pollFirst(): Promise<T | null>
  /** Takes up to `limit` elements from the front. */
  pollFirst(limit: number): Promise<T[]>
  async pollFirst(limit?: number): Promise<T | null | T[]> {
    return this.ends.poll('left', limit)
  }

  /**
   * Takes the last element, or `null` when there is none.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const last = await deque.pollLast()
   * console.log(last)
   * ```
   */
  pollLast(): Promise<T | null>
  /** Takes up to `limit` elements from the end, the last one first. */
  pollLast(limit: number): Promise<T[]>
  async pollLast(limit?: number): Promise<T | null | T[]> {
    return this.ends.poll('right', limit)
  }

  /**
   * The first element without taking it, or `null`.
   *
   * @throws DecodeError `ERR_DECODE`: the element's bytes cannot be read; it stays where it is
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await deque.peekFirst())
   * ```
   */
  peekFirst(): Promise<T | null> {
    return this.peek()
  }

  /**
   * The last element without taking it, or `null`.
   *
   * @throws DecodeError `ERR_DECODE`: the element's bytes cannot be read; it stays where it is
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await deque.peekLast())
   * ```
   */
  peekLast(): Promise<T | null> {
    return this.ends.peekLast()
  }

  /**
   * As `peekFirst`, but rejects with `NoSuchElementError` when there is none.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws DecodeError `ERR_DECODE`: the element's bytes cannot be read; it stays where it is
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await deque.getFirst())
   * ```
   */
  getFirst(): Promise<T> {
    return this.element()
  }

  /**
   * As `peekLast`, but rejects with `NoSuchElementError` when there is none.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws DecodeError `ERR_DECODE`: the element's bytes cannot be read; it stays where it is
   *
   * @example
   * ```ts
   * console.log(await deque.getLast())
   * ```
   */
  getLast(): Promise<T> {
    return this.ends.getLast()
  }

  /**
   * Removes the first element with the same encoded bytes as `value`; resolves with whether there was one.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await deque.removeFirstOccurrence('to ada'))
   * ```
   */
  removeFirstOccurrence(value: T): Promise<boolean> {
    return this.remove(value)
  }

  /**
   * Removes the last element with the same encoded bytes as `value`; resolves with whether there was one.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await deque.removeLastOccurrence('to ada'))
   * ```
   */
  removeLastOccurrence(value: T): Promise<boolean> {
    return this.ends.removeLastOccurrence(value)
  }

  /**
   * As `iterate`, from the last element to the first.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * for await (const mail of deque.descendingIterator()) console.log(mail)
   * ```
   */
  descendingIterator(options: { pageSize?: number } = {}): AsyncGenerator<T, void> {
    return this.ends.descending(options)
  }

  /**
   * Moves the first elements to the end of another queue; resolves with those that were moved.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws UnsupportedServerError `ERR_UNSUPPORTED_SERVER`: before Redis 6.2 only the move from the last to the first place is possible
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const moved = await deque.move({ from: 'first', to: 'mails:late', at: 'last' })
   * console.log(moved)
   * ```
   */
  override move(options: QueueMove): Promise<T[]>
  /** Moves one element from an end to an end of another deque, in one step at the server; `null` when there is none. */
  override move(options: DequeMove): Promise<T | null>
  override async move(options: QueueMove | DequeMove): Promise<T[] | T | null> {
    return 'from' in options ? this.ends.move(options) : super.move(options)
  }
}
