import type { Duration } from '../duration.js'
import type { TimeUnit } from '../timing/units.js'
import { INTEGER_MAX, type BlockingQueue } from './blocking-queue.js'
import type { QueueContext, QueueIdentity } from './context.js'
import { DequeEnds, type DequeMove } from './deque-ends.js'
import type { Deque } from './deque.js'
import { ListQueue, type QueueMove } from './list-queue.js'
import { namesOperations } from './operations.js'
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
 * Redisson's `RBlockingDeque`: a deque whose consumers can wait at both ends. `Deque` and
 * `BlockingQueue` document the methods that have no comment here.
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

  static {
    namesOperations(this, { queueOf: ({ name }) => name })
  }

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

  async put(value: T): Promise<void> {
    await this.offer(value)
  }

  /**
   * Puts a value in front.
   *
   * @throws as `addFirst`
   *
   * @example
   * ```ts
   * await blockingDeque.putFirst('to ada')
   * ```
   */
  putFirst(value: T): Promise<void> {
    return this.addFirst(value)
  }

  /**
   * Appends a value.
   *
   * @throws as `addLast`
   *
   * @example
   * ```ts
   * await blockingDeque.putLast('to ada')
   * ```
   */
  putLast(value: T): Promise<void> {
    return this.addLast(value)
  }

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
   * console.log(await blockingDeque.takeFirst())
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
   * console.log(await blockingDeque.takeLast())
   * ```
   */
  takeLast(options: TakeOptions = {}): Promise<T> {
    return this.waits.take('right', options)
  }

  /**
   * Takes the first element if there is one, without waiting; else `null`.
   *
   * @throws as `pollFirst`
   *
   * @example
   * ```ts
   * console.log(await blockingDeque.poll(5, 'seconds'))
   * ```
   */
  poll(): Promise<T | null>
  /**
   * Takes the first element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. `0` returns at
   * once.
   */
  poll(timeout: Duration, options?: TakeOptions): Promise<T | null>
  poll(timeout: Duration, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
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
   * console.log(await blockingDeque.pollFirst(5, 'seconds'))
   * ```
   */
  pollFirst(): Promise<T | null>
  /** Takes the first element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. */
  pollFirst(timeout: Duration, options?: TakeOptions): Promise<T | null>
  pollFirst(timeout: Duration, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
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
   * console.log(await blockingDeque.pollLast(5, 'seconds'))
   * ```
   */
  pollLast(): Promise<T | null>
  /** Takes the last element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. */
  pollLast(timeout: Duration, options?: TakeOptions): Promise<T | null>
  pollLast(timeout: Duration, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
  pollLast(...args: PollArguments): Promise<T | null> {
    return this.waits.poll('right', args)
  }

  takeMany(max: number, options: TakeManyOptions = {}): Promise<T[]> {
    return this.waits.takeMany(max, options)
  }

  /**
   * Takes elements for ever; takes the next one when the loop's body has ended.
   *
   * @throws as `take`
   *
   * @example
   * ```ts
   * for await (const mail of blockingDeque) console.log(mail)
   * ```
   */
  [Symbol.asyncIterator](): AsyncGenerator<T, void> {
    return this.elements()
  }

  async *elements(options: TakeOptions = {}): AsyncGenerator<T, void> {
    for (;;) yield await this.waits.take('left', options)
  }

  async pollFromAny(timeout: Duration, unit: TimeUnit | undefined, ...names: FurtherQueues): Promise<T | null> {
    return (await this.waits.takeFromAny('left', timeout, unit, names))?.value ?? null
  }

  pollFromAnyWithName(
    timeout: Duration,
    unit: TimeUnit | undefined,
    ...names: FurtherQueues
  ): Promise<NamedElement<T> | null> {
    return this.waits.takeFromAny('left', timeout, unit, names)
  }

  pollLastFromAnyWithName(
    timeout: Duration,
    unit: TimeUnit | undefined,
    ...names: FurtherQueues
  ): Promise<NamedElement<T> | null> {
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
   * const one = await blockingDeque.pollFirstFromAny(5, 'seconds', 'mails:late')
   * const some = await blockingDeque.pollFirstFromAny(5, 'seconds', 10, 'mails:late')
   * console.log(one, some)
   * ```
   */
  pollFirstFromAny(timeout: Duration, unit: TimeUnit | undefined, ...names: FurtherQueues): Promise<T | null>
  /** Takes up to `count` elements from the front of the first of the deques that has any. */
  pollFirstFromAny(
    timeout: Duration,
    unit: TimeUnit | undefined,
    count: number,
    ...names: FurtherQueues
  ): Promise<Map<string, T[]> | null>
  async pollFirstFromAny(
    timeout: Duration,
    unit: TimeUnit | undefined,
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
   * console.log(await blockingDeque.pollLastFromAny(5, 'seconds', 'mails:late'))
   * ```
   */
  pollLastFromAny(timeout: Duration, unit: TimeUnit | undefined, ...names: FurtherQueues): Promise<T | null>
  /** Takes up to `count` elements from the end of the first of the deques that has any, the last one first. */
  pollLastFromAny(
    timeout: Duration,
    unit: TimeUnit | undefined,
    count: number,
    ...names: FurtherQueues
  ): Promise<Map<string, T[]> | null>
  async pollLastFromAny(
    timeout: Duration,
    unit: TimeUnit | undefined,
    ...rest: FurtherQueues | [number, ...FurtherQueues]
  ): Promise<T | null | Map<string, T[]>> {
    if (isCounted(rest)) return this.waits.takeManyFromAny('right', timeout, unit, rest[0], namesAfter(rest))
    return (await this.waits.takeFromAny('right', timeout, unit, rest))?.value ?? null
  }

  /**
   * Moves the last element to the front of the queue `name` without waiting; `null` when there is none.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * console.log(await blockingDeque.pollLastAndOfferFirstTo('mails:late', 5, 'seconds'))
   * ```
   */
  override pollLastAndOfferFirstTo(name: string): Promise<T | null>
  /** The same, waiting at most `timeout`. An element that was moved before an abort is returned. */
  override pollLastAndOfferFirstTo(
    name: string,
    timeout: Duration,
    unit?: TimeUnit,
    options?: TakeOptions,
  ): Promise<T | null>
  override async pollLastAndOfferFirstTo(
    name: string,
    timeout?: Duration,
    unit?: TimeUnit,
    options: TakeOptions = {},
  ): Promise<T | null> {
    const millis = timeout === undefined ? 0 : this.waits.millis(timeout, unit)
    if (millis === 0) return super.pollLastAndOfferFirstTo(name)
    return this.waits.move({ from: 'right', to: 'left', name }, millis, options)
  }

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
   * const moved = await blockingDeque.move(5, 'seconds', { from: 'first', to: 'mails:late', at: 'last' })
   * console.log(moved)
   * ```
   */
  override move(options: QueueMove): Promise<T[]>
  /** Moves one element from an end to an end of another deque, in one step at the server; `null` when there is none. */
  override move(options: DequeMove): Promise<T | null>
  /** The same, waiting at most `timeout`. An element that was moved before an abort is returned. */
  override move(
    timeout: Duration,
    unit: TimeUnit | undefined,
    move: DequeMove,
    options?: TakeOptions,
  ): Promise<T | null>
  override async move(
    ...args:
      [QueueMove | DequeMove] | [timeout: Duration, unit: TimeUnit | undefined, move: DequeMove, options?: TakeOptions]
  ): Promise<T[] | T | null> {
    if (args.length === 1) return 'from' in args[0] ? this.ends.move(args[0]) : super.move(args[0])
    const [timeout, unit, move, options = {}] = args
    const timeoutMs = this.waits.millis(timeout, unit)
    const parsed = this.ends.parseMove(move)
    return timeoutMs === 0 ? this.ends.move(move) : this.waits.move(parsed, timeoutMs, options)
  }

  remainingCapacity(): number {
    return INTEGER_MAX
  }

  subscribeOnElements(consumer: (value: T) => unknown): number {
    return this.subscriptions.add('left', consumer)
  }

  /**
   * As `subscribeOnElements`.
   *
   * @throws as `subscribeOnElements`
   *
   * @example
   * ```ts
   * blockingDeque.subscribeOnFirstElements((mail) => console.log(mail))
   * ```
   */
  subscribeOnFirstElements(consumer: (value: T) => unknown): number {
    return this.subscriptions.add('left', consumer)
  }

  /**
   * As `subscribeOnElements`, from the end of the deque.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: not a function, or one that is subscribed already
   *
   * @example
   * ```ts
   * blockingDeque.subscribeOnLastElements((mail) => console.log(mail))
   * ```
   */
  subscribeOnLastElements(consumer: (value: T) => unknown): number {
    return this.subscriptions.add('right', consumer)
  }

  unsubscribe(id: number): boolean {
    return this.subscriptions.remove(id)
  }

  async addFirst(...values: [T, ...T[]]): Promise<void> {
    await this.ends.push('LPUSH', values)
  }

  async addLast(...values: [T, ...T[]]): Promise<void> {
    await this.ends.push('RPUSH', values)
  }

  addFirstIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.ends.push('LPUSHX', values)
  }

  addLastIfExists(...values: [T, ...T[]]): Promise<number> {
    return this.ends.push('RPUSHX', values)
  }

  offerFirst(value: T): Promise<boolean> {
    return this.ends.offer('LPUSH', value)
  }

  offerLast(value: T): Promise<boolean> {
    return this.ends.offer('RPUSH', value)
  }

  push(value: T): Promise<void> {
    return this.addFirst(value)
  }

  pop(): Promise<T> {
    return this.ends.remove('left')
  }

  removeFirst(): Promise<T> {
    return this.ends.remove('left')
  }

  removeLast(): Promise<T> {
    return this.ends.remove('right')
  }

  peekFirst(): Promise<T | null> {
    return this.peek()
  }

  peekLast(): Promise<T | null> {
    return this.ends.peekLast()
  }

  getFirst(): Promise<T> {
    return this.element()
  }

  getLast(): Promise<T> {
    return this.ends.getLast()
  }

  removeFirstOccurrence(value: T): Promise<boolean> {
    return this.remove(value)
  }

  removeLastOccurrence(value: T): Promise<boolean> {
    return this.ends.removeLastOccurrence(value)
  }

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
