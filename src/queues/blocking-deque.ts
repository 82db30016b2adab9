import type { TimeUnit } from '../timing/units.js'
import { BlockingQueue } from './blocking-queue.js'
import type { QueueContext, QueueIdentity } from './context.js'
import { Deque, parseMove, type DequeMove } from './deque.js'
import type { QueueMove } from './list-queue.js'
import type { FurtherQueues, TakeOptions } from './waiting-queue.js'

/**
 * Redisson's `RBlockingDeque`: a deque whose consumers can wait at both ends. In everything else as `BlockingQueue`.
 */
export class BlockingDeque<T = unknown>
  extends BlockingQueue<T>
  // what a deque does without waiting is all here, whatever is added to it
  implements Omit<Deque<T>, keyof BlockingQueue<T> | 'pollFirst' | 'pollLast'>
{
  readonly #deque: Deque<T>

  /** @internal */
  constructor(
    context: QueueContext,
    identity: QueueIdentity<T>,
    options: { consumersDeliver?: boolean | undefined } = {},
  ) {
    super(context, identity, options)
    this.#deque = new Deque(context, identity)
  }

  /** Puts a value in front. */
  async putFirst(value: T): Promise<void> {
    await this.#deque.addFirst(value)
  }

  /** Appends a value. */
  async putLast(value: T): Promise<void> {
    await this.#deque.addLast(value)
  }

  /** Takes the first element, waiting for one as long as it takes. */
  async takeFirst(options: TakeOptions = {}): Promise<T> {
    return this.takeAt('left', options)
  }

  /** Takes the last element, waiting for one as long as it takes. */
  async takeLast(options: TakeOptions = {}): Promise<T> {
    return this.takeAt('right', options)
  }

  /** Takes the first element if there is one, without waiting; else `null`. For several there is `drainTo`. */
  pollFirst(): Promise<T | null>
  /** Takes the first element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. */
  pollFirst(timeout: number, options?: TakeOptions): Promise<T | null>
  pollFirst(timeout: number, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
  async pollFirst(timeout?: number, unit?: TimeUnit | TakeOptions, options?: TakeOptions): Promise<T | null> {
    return this.pollAt('left', timeout, unit, options)
  }

  /** Takes the last element if there is one, without waiting; else `null`. */
  pollLast(): Promise<T | null>
  /** Takes the last element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. */
  pollLast(timeout: number, options?: TakeOptions): Promise<T | null>
  pollLast(timeout: number, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
  async pollLast(timeout?: number, unit?: TimeUnit | TakeOptions, options?: TakeOptions): Promise<T | null> {
    return this.pollAt('right', timeout, unit, options)
  }

  /** Takes the first element of this deque or of those named, as `pollFromAny`. */
  override pollFirstFromAny(timeout: number, unit: TimeUnit, ...names: FurtherQueues): Promise<T | null>
  /** Takes up to `count` elements from the front of the first of the deques that has any. */
  override pollFirstFromAny(
    timeout: number,
    unit: TimeUnit,
    count: number,
    ...names: FurtherQueues
  ): Promise<Map<string, T[]> | null>
  override async pollFirstFromAny(
    timeout: number,
    unit: TimeUnit,
    ...rest: FurtherQueues | [number, ...FurtherQueues]
  ): Promise<T | null | Map<string, T[]>> {
    if (isCounted(rest)) return this.anyMany('left', timeout, unit, rest[0], namesAfter(rest))
    return this.pollFromAny(timeout, unit, ...rest)
  }

  /** Takes the last element of this deque or of those named. */
  override pollLastFromAny(timeout: number, unit: TimeUnit, ...names: FurtherQueues): Promise<T | null>
  /** Takes up to `count` elements from the end of the first of the deques that has any, the last one first. */
  override pollLastFromAny(
    timeout: number,
    unit: TimeUnit,
    count: number,
    ...names: FurtherQueues
  ): Promise<Map<string, T[]> | null>
  override async pollLastFromAny(
    timeout: number,
    unit: TimeUnit,
    ...rest: FurtherQueues | [number, ...FurtherQueues]
  ): Promise<T | null | Map<string, T[]>> {
    if (isCounted(rest)) return this.anyMany('right', timeout, unit, rest[0], namesAfter(rest))
    return (await this.anyOne('right', timeout, unit, rest))?.value ?? null
  }

  /** Moves the first elements to the end of another queue; resolves with those that were moved. */
  override move(options: QueueMove): Promise<T[]>
  /** Moves one element from an end to an end of another deque, in one step at the server; `null` when there is none. */
  override move(options: DequeMove): Promise<T | null>
  /** The same, waiting at most `timeout`. An element that was moved before an abort is returned. */
  override move(timeout: number, unit: TimeUnit, move: DequeMove, options?: TakeOptions): Promise<T | null>
  override async move(
    ...args: [QueueMove | DequeMove] | [timeout: number, unit: TimeUnit, move: DequeMove, options?: TakeOptions]
  ): Promise<T[] | T | null> {
    if (args.length === 1) return this.#deque.move(args[0] as DequeMove)
    const [timeout, unit, move, options = {}] = args
    const timeoutMs = this.millis(timeout, unit)
    const parsed = this.handle.checked(() => parseMove(move))
    return timeoutMs === 0 ? this.#deque.move(move) : this.waitAndMove(parsed, timeoutMs, options)
  }

  /** As `subscribeOnElements`. */
  subscribeOnFirstElements(consumer: (value: T) => unknown): number {
    return this.subscribe('left', consumer)
  }

  /** As `subscribeOnElements`, from the end of the deque. */
  subscribeOnLastElements(consumer: (value: T) => unknown): number {
    return this.subscribe('right', consumer)
  }

  addFirst(...values: [T, ...T[]]): Promise<void> {
    return this.#deque.addFirst(...values)
  }

  addLast(...values: [T, ...T[]]): Promise<void> {
    return this.#deque.addLast(...values)
  }

  addFirstIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.#deque.addFirstIfExists(...values)
  }

  addLastIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.#deque.addLastIfExists(...values)
  }

  offerFirst(value: T): Promise<boolean> {
    return this.#deque.offerFirst(value)
  }

  offerLast(value: T): Promise<boolean> {
    return this.#deque.offerLast(value)
  }

  push(value: T): Promise<void> {
    return this.#deque.push(value)
  }

  pop(): Promise<T> {
    return this.#deque.pop()
  }

  removeFirst(): Promise<T> {
    return this.#deque.removeFirst()
  }

  removeLast(): Promise<T> {
    return this.#deque.removeLast()
  }

  peekFirst(): Promise<T | null> {
    return this.#deque.peekFirst()
  }

  peekLast(): Promise<T | null> {
    return this.#deque.peekLast()
  }

  getFirst(): Promise<T> {
    return this.#deque.getFirst()
  }

  getLast(): Promise<T> {
    return this.#deque.getLast()
  }

  removeFirstOccurrence(value: T): Promise<boolean> {
    return this.#deque.removeFirstOccurrence(value)
  }

  removeLastOccurrence(value: T): Promise<boolean> {
    return this.#deque.removeLastOccurrence(value)
  }

  descendingIterator(options: { pageSize?: number } = {}): AsyncGenerator<T, void> {
    return this.#deque.descendingIterator(options)
  }

  protected override sibling(identity: QueueIdentity<T>, consumersDeliver: boolean): BlockingDeque<T> {
    return new BlockingDeque(this.context, identity, { consumersDeliver })
  }
}

function isCounted(rest: FurtherQueues | [number, ...FurtherQueues]): rest is [number, ...FurtherQueues] {
  return typeof rest[0] === 'number'
}

function namesAfter([, ...names]: [number, ...FurtherQueues]): FurtherQueues {
  return names
}
