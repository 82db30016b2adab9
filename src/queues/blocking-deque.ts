import type { TimeUnit } from '../timing/units.js'
import { INTEGER_MAX, type BlockingQueue } from './blocking-queue.js'
import type { QueueContext, QueueIdentity } from './context.js'
import { DequeEnds, type DequeMove } from './deque-ends.js'
import type { Deque } from './deque.js'
import { ListQueue, type QueueMove } from './list-queue.js'
import { Subscriptions } from './subscriptions.js'
import {
  Waits,
  type FurtherQueues,
  type NamedElement,
  type PollArguments,
  type TakeManyOptions,
  type TakeOptions,
} from './waits.js'

/**
 * Redisson's `RBlockingDeque`: a deque whose consumers can wait at both ends. In everything else as `BlockingQueue`.
 */
export class BlockingDeque<T = unknown>
  extends ListQueue<T>
  implements BlockingQueue<T>, Omit<Deque<T>, 'poll' | 'pollFirst' | 'pollLast'>
{
  /** @internal */
  readonly ends: DequeEnds<T>
  /** @internal */
  readonly waits: Waits<T>
  /** @internal */
  readonly subscriptions: Subscriptions<T>

  /** @internal */
  constructor(
    context: QueueContext,
    identity: QueueIdentity<T>,
    options: { consumersDeliver?: boolean | undefined } = {},
  ) {
    super(context, identity)
    this.ends = new DequeEnds(this.list)
    this.waits = new Waits(this.list, options)
    this.subscriptions = new Subscriptions(this.waits, this.name, context.hub.emit)
  }

  /** Appends a value. */
  async put(value: T): Promise<void> {
    await this.offer(value)
  }

  /** Puts a value in front. */
  putFirst(value: T): Promise<void> {
    return this.addFirst(value)
  }

  /** Appends a value. */
  putLast(value: T): Promise<void> {
    return this.addLast(value)
  }

  /** Takes the first element, waiting for one as long as it takes. */
  take(options: TakeOptions = {}): Promise<T> {
    return this.waits.take('left', options)
  }

  /**
   * Takes the first element, waiting for one as long as it takes.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const deque = client.getBlockingDeque<string>('mails')
   * console.log(await deque.takeFirst())
   * ```
   */
  takeFirst(options: TakeOptions = {}): Promise<T> {
    return this.waits.take('left', options)
  }

  /**
   * Takes the last element, waiting for one as long as it takes.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const deque = client.getBlockingDeque<string>('mails')
   * console.log(await deque.takeLast())
   * ```
   */
  takeLast(options: TakeOptions = {}): Promise<T> {
    return this.waits.take('right', options)
  }

  /** Takes the first element if there is one, without waiting; else `null`. */
  poll(): Promise<T | null>
  /** Takes the first element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. `0` returns at once. */
  poll(timeout: number, options?: TakeOptions): Promise<T | null>
  poll(timeout: number, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
  poll(...args: PollArguments): Promise<T | null> {
    return this.waits.poll('left', args)
  }

  /**
   * Takes the first element if there is one, without waiting; else `null`. For several there is `drainTo`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const deque = client.getBlockingDeque<string>('mails')
   * console.log(await deque.pollFirst(5, 'seconds'))
   * ```
   */
  pollFirst(): Promise<T | null>
  /** Takes the first element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. */
  pollFirst(timeout: number, options?: TakeOptions): Promise<T | null>
  pollFirst(timeout: number, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
  pollFirst(...args: PollArguments): Promise<T | null> {
    return this.waits.poll('left', args)
  }

  /**
   * Takes the last element if there is one, without waiting; else `null`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const deque = client.getBlockingDeque<string>('mails')
   * console.log(await deque.pollLast(5, 'seconds'))
   * ```
   */
  pollLast(): Promise<T | null>
  /** Takes the last element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. */
  pollLast(timeout: number, options?: TakeOptions): Promise<T | null>
  pollLast(timeout: number, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
  pollLast(...args: PollArguments): Promise<T | null> {
    return this.waits.poll('right', args)
  }

  /** As `BlockingQueue.takeMany`. */
  takeMany(max: number, options: TakeManyOptions = {}): Promise<T[]> {
    return this.waits.takeMany(max, options)
  }

  /** Takes elements for ever; the loop's body is done with one before the next is taken. */
  [Symbol.asyncIterator](): AsyncGenerator<T, void> {
    return this.elements()
  }

  /** The same with a signal; after its abort the iteration throws the signal's reason. */
  async *elements(options: TakeOptions = {}): AsyncGenerator<T, void> {
    for (;;) yield await this.waits.take('left', options)
  }

  /** As `BlockingQueue.pollFromAny`. */
  async pollFromAny(timeout: number, unit: TimeUnit, ...names: FurtherQueues): Promise<T | null> {
    return (await this.waits.takeFromAny('left', timeout, unit, names))?.value ?? null
  }

  /** As `pollFromAny`; also returns the name of the queue that the element came from. */
  pollFromAnyWithName(timeout: number, unit: TimeUnit, ...names: FurtherQueues): Promise<NamedElement<T> | null> {
    return this.waits.takeFromAny('left', timeout, unit, names)
  }

  /** As `pollFromAnyWithName` for the last element. */
  pollLastFromAnyWithName(timeout: number, unit: TimeUnit, ...names: FurtherQueues): Promise<NamedElement<T> | null> {
    return this.waits.takeFromAny('right', timeout, unit, names)
  }

  /**
   * Takes the first element of this deque or of those named, as `pollFromAny`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const deque = client.getBlockingDeque<string>('mails')
   * const one = await deque.pollFirstFromAny(5, 'seconds', 'mails:late')
   * const some = await deque.pollFirstFromAny(5, 'seconds', 10, 'mails:late')
   * console.log(one, some)
   * ```
   */
  pollFirstFromAny(timeout: number, unit: TimeUnit, ...names: FurtherQueues): Promise<T | null>
  /** Takes up to `count` elements from the front of the first of the deques that has any. */
  pollFirstFromAny(
    timeout: number,
    unit: TimeUnit,
    count: number,
    ...names: FurtherQueues
  ): Promise<Map<string, T[]> | null>
  async pollFirstFromAny(
    timeout: number,
    unit: TimeUnit,
    ...rest: FurtherQueues | [number, ...FurtherQueues]
  ): Promise<T | null | Map<string, T[]>> {
    if (isCounted(rest)) return this.waits.takeManyFromAny('left', timeout, unit, rest[0], namesAfter(rest))
    return this.pollFromAny(timeout, unit, ...rest)
  }

  /**
   * Takes the last element of this deque or of those named.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const deque = client.getBlockingDeque<string>('mails')
   * console.log(await deque.pollLastFromAny(5, 'seconds', 'mails:late'))
   * ```
   */
  pollLastFromAny(timeout: number, unit: TimeUnit, ...names: FurtherQueues): Promise<T | null>
  /** Takes up to `count` elements from the end of the first of the deques that has any, the last one first. */
  pollLastFromAny(
    timeout: number,
    unit: TimeUnit,
    count: number,
    ...names: FurtherQueues
  ): Promise<Map<string, T[]> | null>
  async pollLastFromAny(
    timeout: number,
    unit: TimeUnit,
    ...rest: FurtherQueues | [number, ...FurtherQueues]
  ): Promise<T | null | Map<string, T[]>> {
    if (isCounted(rest)) return this.waits.takeManyFromAny('right', timeout, unit, rest[0], namesAfter(rest))
    return (await this.waits.takeFromAny('right', timeout, unit, rest))?.value ?? null
  }

  /** Moves the last element to the front of the queue `name` without waiting; `null` when there is none. */
  override pollLastAndOfferFirstTo(name: string): Promise<T | null>
  /** The same, waiting at most `timeout`. An element that was moved before an abort is returned. */
  override pollLastAndOfferFirstTo(
    name: string,
    timeout: number,
    unit?: TimeUnit,
    options?: TakeOptions,
  ): Promise<T | null>
  override async pollLastAndOfferFirstTo(
    name: string,
    timeout?: number,
    unit?: TimeUnit,
    options: TakeOptions = {},
  ): Promise<T | null> {
    const millis = timeout === undefined ? 0 : this.waits.millis(timeout, unit)
    if (millis === 0) return super.pollLastAndOfferFirstTo(name)
    return this.waits.move({ from: 'right', to: 'left', name }, millis, options)
  }

  /** Moves the last element to the front of the queue `name`, waiting for one as long as it takes. */
  takeLastAndOfferFirstTo(name: string, options: TakeOptions = {}): Promise<T> {
    return this.waits.takeAndMove({ from: 'right', to: 'left', name }, options)
  }

  /**
   * Moves the first elements to the end of another queue; resolves with those that were moved.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const deque = client.getBlockingDeque<string>('mails')
   * const moved = await deque.move(5, 'seconds', { from: 'first', to: 'mails:late', at: 'last' })
   * console.log(moved)
   * ```
   */
  override move(options: QueueMove): Promise<T[]>
  /** Moves one element from an end to an end of another deque, in one step at the server; `null` when there is none. */
  override move(options: DequeMove): Promise<T | null>
  /** The same, waiting at most `timeout`. An element that was moved before an abort is returned. */
  override move(timeout: number, unit: TimeUnit, move: DequeMove, options?: TakeOptions): Promise<T | null>
  override async move(
    ...args: [QueueMove | DequeMove] | [timeout: number, unit: TimeUnit, move: DequeMove, options?: TakeOptions]
  ): Promise<T[] | T | null> {
    if (args.length === 1) return 'from' in args[0] ? this.ends.move(args[0]) : super.move(args[0])
    const [timeout, unit, move, options = {}] = args
    const timeoutMs = this.waits.millis(timeout, unit)
    const parsed = this.ends.parseMove(move)
    return timeoutMs === 0 ? this.ends.move(move) : this.waits.move(parsed, timeoutMs, options)
  }

  /** How many more elements fit: there is no limit, so this is Java's `Integer.MAX_VALUE`. */
  remainingCapacity(): number {
    return INTEGER_MAX
  }

  /** As `BlockingQueue.subscribeOnElements`. */
  subscribeOnElements(consumer: (value: T) => unknown): number {
    return this.subscriptions.add('left', consumer)
  }

  /** As `subscribeOnElements`. */
  subscribeOnFirstElements(consumer: (value: T) => unknown): number {
    return this.subscriptions.add('left', consumer)
  }

  /**
   * As `subscribeOnElements`, from the end of the deque.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: no function, or one that is subscribed already
   *
   * @example
   * ```ts
   * const deque = client.getBlockingDeque<string>('mails')
   * deque.subscribeOnLastElements((mail) => console.log(mail))
   * ```
   */
  subscribeOnLastElements(consumer: (value: T) => unknown): number {
    return this.subscriptions.add('right', consumer)
  }

  /** Ends a subscription; an element popped already still reaches the consumer. False when there is none of this id. */
  unsubscribe(id: number): boolean {
    return this.subscriptions.remove(id)
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
}

function isCounted(rest: FurtherQueues | [number, ...FurtherQueues]): rest is [number, ...FurtherQueues] {
  return typeof rest[0] === 'number'
}

function namesAfter([, ...names]: [number, ...FurtherQueues]): FurtherQueues {
  return names
}
