import type { QueueContext, QueueIdentity } from './context.js'
import { DequeEnds, type DequeMove } from './deque-ends.js'
import { ListQueue, type QueueMove } from './list-queue.js'
import type { Queue } from './queue.js'

/** Redisson's `RDeque`: a queue that can be used at both ends. */
export class Deque<T = unknown> extends ListQueue<T> implements Queue<T> {
  /** @internal */
  readonly ends: DequeEnds<T>

  /** @internal */
  constructor(context: QueueContext, identity: QueueIdentity<T>) {
    super(context, identity)
    this.ends = new DequeEnds(this.list)
  }

  /** Takes the first element, or `null` when the queue is empty. */
  poll(): Promise<T | null>
  /** Takes up to `limit` elements. */
  poll(limit: number): Promise<T[]>
  async poll(limit?: number): Promise<T | null | T[]> {
    return this.ends.poll('left', limit)
  }

  /** Puts values in front, one after the other: the last one given comes to stand first. */
  async addFirst(...values: [T, ...T[]]): Promise<void> {
    await this.ends.push('LPUSH', values)
  }

  /** Appends values, in their order. */
  async addLast(...values: [T, ...T[]]): Promise<void> {
    await this.ends.push('RPUSH', values)
  }

  /** As `addFirst`, if the deque is not empty; resolves with its new size, 0 when it was empty. */
  addFirstIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.ends.push('LPUSHX', values)
  }

  /** As `addLast`, if the deque is not empty; resolves with its new size, 0 when it was empty. */
  addLastIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.ends.push('RPUSHX', values)
  }

  /** Puts a value in front. Always true, as in Java. */
  offerFirst(value: T): Promise<boolean> {
    return this.ends.offer('LPUSH', value)
  }

  /** Appends a value. Always true, as in Java. */
  offerLast(value: T): Promise<boolean> {
    return this.ends.offer('RPUSH', value)
  }

  /** Puts a value in front, as onto a stack. */
  push(value: T): Promise<void> {
    return this.addFirst(value)
  }

  /** Takes the first element, as from a stack; rejects with `NoSuchElementError` when there is none. */
  pop(): Promise<T> {
    return this.ends.remove('left')
  }

  /** Takes the first element; rejects with `NoSuchElementError` when there is none. */
  removeFirst(): Promise<T> {
    return this.ends.remove('left')
  }

  /** Takes the last element; rejects with `NoSuchElementError` when there is none. */
  removeLast(): Promise<T> {
    return this.ends.remove('right')
  }

  /** Takes the first element, or `null` when there is none. */
  pollFirst(): Promise<T | null>
  /** Takes up to `limit` elements from the front. */
  pollFirst(limit: number): Promise<T[]>
  async pollFirst(limit?: number): Promise<T | null | T[]> {
    return this.ends.poll('left', limit)
  }

  /** Takes the last element, or `null` when there is none. */
  pollLast(): Promise<T | null>
  /** Takes up to `limit` elements from the end, the last one first. */
  pollLast(limit: number): Promise<T[]>
  async pollLast(limit?: number): Promise<T | null | T[]> {
    return this.ends.poll('right', limit)
  }

  /** The first element without taking it, or `null`. */
  peekFirst(): Promise<T | null> {
    return this.peek()
  }

  /** The last element without taking it, or `null`. */
  peekLast(): Promise<T | null> {
    return this.ends.peekLast()
  }

  /** As `peekFirst`, but rejects with `NoSuchElementError` when there is none. */
  getFirst(): Promise<T> {
    return this.element()
  }

  /** As `peekLast`, but rejects with `NoSuchElementError` when there is none. */
  getLast(): Promise<T> {
    return this.ends.getLast()
  }

  /** Removes the first element with the same encoded bytes as `value`; resolves with whether there was one. */
  removeFirstOccurrence(value: T): Promise<boolean> {
    return this.remove(value)
  }

  /** Removes the last element with the same encoded bytes as `value`; resolves with whether there was one. */
  removeLastOccurrence(value: T): Promise<boolean> {
    return this.ends.removeLastOccurrence(value)
  }

  /** As `iterate`, from the last element to the first. */
  descendingIterator(options: { pageSize?: number } = {}): AsyncGenerator<T, void> {
    return this.ends.descending(options)
  }

  /** Moves the first elements to the end of another queue; resolves with those that were moved. */
  override move(options: QueueMove): Promise<T[]>
  /** Moves one element from an end to an end of another deque, in one step at the server; `null` when there is none. */
  override move(options: DequeMove): Promise<T | null>
  override async move(options: QueueMove | DequeMove): Promise<T[] | T | null> {
    return 'from' in options ? this.ends.move(options) : super.move(options)
  }
}
