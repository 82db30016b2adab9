import type { Duration } from '../duration.js'
import type { TimeUnit } from '../timing/units.js'
import type { QueueContext, QueueIdentity } from './context.js'
import { ListQueue } from './list-queue.js'
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

/** Java's value for "no limit". */
export const INTEGER_MAX = 2_147_483_647

/**
 * Redisson's `RBlockingQueue`: a queue whose consumers can wait. Taking is at most once, as in Redisson: an element whose
 * consumer dies is gone. While it waits, this client also transfers the due messages of the delayed queue on it.
 */
export class BlockingQueue<T = unknown> extends ListQueue<T> {
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
    this.waits = new Waits(this.list, options)
    this.subscriptions = new Subscriptions(this.waits, this.name, context.hub.emit)
  }

  /**
   * Appends a value.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await blockingQueue.put('to ada')
   * ```
   */
  async put(value: T): Promise<void> {
    await this.offer(value)
  }

  /**
   * Takes the first element, waiting for one as long as it takes.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws WrongTypeError `ERR_WRONG_TYPE`: the key holds another type of value
   * @throws the reason of the signal, after its abort
   *
   * @example
   * ```ts
   * const mail = await blockingQueue.take({ signal: AbortSignal.timeout(60_000) })
   * console.log(mail)
   * ```
   */
  take(options: TakeOptions = {}): Promise<T> {
    return this.waits.take('left', options)
  }

  /**
   * Takes the first element if there is one, without waiting; else `null`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws ConnectionError `ERR_CONNECTION`: until the time was over there was no connection
   *
   * @example
   * ```ts
   * const now = await blockingQueue.poll()
   * const soon = await blockingQueue.poll(5, 'seconds')
   * console.log(now, soon)
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
   * Takes between 1 and `max` (1 to 10,000) elements, waiting for the first; an empty array when the timeout is over.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const mails = await blockingQueue.takeMany(100, { timeout: 5_000 })
   * console.log(mails.length)
   * ```
   */
  takeMany(max: number, options: TakeManyOptions = {}): Promise<T[]> {
    return this.waits.takeMany(max, options)
  }

  /**
   * Takes elements for ever; takes the next one when the loop's body has ended.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * for await (const mail of blockingQueue) console.log(mail)
   * ```
   */
  [Symbol.asyncIterator](): AsyncGenerator<T, void> {
    return this.elements()
  }

  /**
   * The same with a signal; after its abort the iteration throws the signal's reason.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws the reason of the signal, after its abort
   *
   * @example
   * ```ts
   * const stop = new AbortController()
   * for await (const mail of blockingQueue.elements({ signal: stop.signal })) console.log(mail)
   * ```
   */
  async *elements(options: TakeOptions = {}): AsyncGenerator<T, void> {
    for (;;) yield await this.waits.take('left', options)
  }

  /**
   * Takes the first element of this queue or of those named, waiting at most `timeout`; `null` when the time is over. If
   * several have elements, this queue comes first, then the others as named. All must use the same codec.
   * With the names in an array, options with a signal can follow.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const mail = await blockingQueue.pollFromAny(5, 'seconds', 'mails:late', 'mails:bulk')
   * console.log(mail)
   * ```
   */
  async pollFromAny(timeout: Duration, unit: TimeUnit | undefined, ...names: FurtherQueues): Promise<T | null> {
    return (await this.waits.takeFromAny('left', timeout, unit, names))?.value ?? null
  }

  /**
   * As `pollFromAny`; also returns the name of the queue that the element came from.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const found = await blockingQueue.pollFromAnyWithName(5, 'seconds', 'mails:late')
   * if (found !== null) console.log(found.name, found.value)
   * ```
   */
  pollFromAnyWithName(
    timeout: Duration,
    unit: TimeUnit | undefined,
    ...names: FurtherQueues
  ): Promise<NamedElement<T> | null> {
    return this.waits.takeFromAny('left', timeout, unit, names)
  }

  /**
   * As `pollFromAnyWithName` for the last element.
   *
   * @throws as `pollFromAnyWithName`
   *
   * @example
   * ```ts
   * const found = await blockingQueue.pollLastFromAnyWithName(5, 'seconds', 'mails:late')
   * console.log(found?.name, found?.value)
   * ```
   */
  pollLastFromAnyWithName(
    timeout: Duration,
    unit: TimeUnit | undefined,
    ...names: FurtherQueues
  ): Promise<NamedElement<T> | null> {
    return this.waits.takeFromAny('right', timeout, unit, names)
  }

  /**
   * Takes between 1 and `count` (1 to 10,000) elements from the front of the first of the queues that has any, waiting at most
   * `timeout`; a map with that queue's name, or `null` when the time is over.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * const found = await blockingQueue.pollFirstFromAny(5, 'seconds', 10, 'mails:late')
   * for (const [name, mails] of found ?? []) console.log(name, mails.length)
   * ```
   */
  pollFirstFromAny(
    timeout: Duration,
    unit: TimeUnit | undefined,
    count: number,
    ...names: FurtherQueues
  ): Promise<Map<string, T[]> | null> {
    return this.waits.takeManyFromAny('left', timeout, unit, count, names)
  }

  /**
   * As `pollFirstFromAny` from the end of the queue, the last element first.
   *
   * @throws as `pollFirstFromAny`
   *
   * @example
   * ```ts
   * const found = await blockingQueue.pollLastFromAny(5, 'seconds', 10, 'mails:late')
   * for (const [name, mails] of found ?? []) console.log(name, mails.length)
   * ```
   */
  pollLastFromAny(
    timeout: Duration,
    unit: TimeUnit | undefined,
    count: number,
    ...names: FurtherQueues
  ): Promise<Map<string, T[]> | null> {
    return this.waits.takeManyFromAny('right', timeout, unit, count, names)
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
   * console.log(await blockingQueue.pollLastAndOfferFirstTo('mails:late', 5, 'seconds'))
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

  /**
   * Moves the last element to the front of the queue `name`, waiting for one as long as it takes.
   *
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * console.log(await blockingQueue.takeLastAndOfferFirstTo('mails:late'))
   * ```
   */
  takeLastAndOfferFirstTo(name: string, options: TakeOptions = {}): Promise<T> {
    return this.waits.takeAndMove({ from: 'right', to: 'left', name }, options)
  }

  /**
   * How many more elements fit: there is no limit, so this is Java's `Integer.MAX_VALUE`.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * console.log(blockingQueue.remainingCapacity()) // 2147483647
   * ```
   */
  remainingCapacity(): number {
    return INTEGER_MAX
  }

  /**
   * Calls `consumer` with each element, and takes the next one when the consumer's promise has settled. If the consumer throws, an
   * `error` event reports it, and the element is gone, as in Redisson. Returns the id for
   * `unsubscribe`, at once.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: not a function, or one that is subscribed already
   *
   * @example
   * ```ts
   * const id = blockingQueue.subscribeOnElements(async (mail) => console.log(mail))
   * blockingQueue.unsubscribe(id)
   * ```
   */
  subscribeOnElements(consumer: (value: T) => unknown): number {
    return this.subscriptions.add('left', consumer)
  }

  /**
   * Ends a subscription; an element popped already still reaches the consumer. False when there is no subscription of this id.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * const id = blockingQueue.subscribeOnElements((mail) => console.log(mail))
   * console.log(blockingQueue.unsubscribe(id)) // true
   * ```
   */
  unsubscribe(id: number): boolean {
    return this.subscriptions.remove(id)
  }
}
