import { RedelayedError, ShutdownError, toError } from '../errors.js'
import { integer, onlyKnown } from '../options.js'
import { systemClock } from '../timing/clock.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import type { QueueContext, QueueIdentity } from '../queues/context.js'
import { QueueObject } from '../queues/queue-object.js'
import type { TakeManyOptions, TakeOptions } from '../queues/waiting-queue.js'
import { sourceOf, type RawElement } from './held.js'
import { ShardedConsumer } from './sharded-consumer.js'

const MAX_TAKE = 10_000

/** Taking from all shards as if they were one queue. */
export abstract class ShardedTakes<T> extends QueueObject<T> {
  readonly #consumer: ShardedConsumer<RawElement<T>>

  /** @internal */
  constructor(
    context: QueueContext,
    identity: QueueIdentity<T>,
    shards: readonly QueueIdentity<T>[],
    options: { consumersDeliver?: boolean | undefined },
  ) {
    super(context, identity)
    this.#consumer = new ShardedConsumer({
      sources: shards.map((shard) => sourceOf(context, shard, options)),
      holders: context.holders,
      clock: systemClock,
      random: Math.random,
      closedError: () =>
        this.handle.withQueueName(new ShutdownError('the client was shut down, or this sharded queue destroyed')),
      onFailure: (shard, error) => this.#report(shards[shard], 'taking from a shard failed', error),
      onLost: (shard, count, error) => {
        this.#report(shards[shard], `${count} elements are given up, as they may not have been put back`, error)
      },
    })
  }

  /**
   * Takes an element of any shard, waiting for one as long as it takes. Taking is at most once: see docs/sharded-queue.md for
   * what a crash can cost. An abort rejects at once; an element that was on its way goes to the next call, or back.
   */
  async take(options: TakeOptions = {}): Promise<T> {
    return this.handle.orThrow((await this.#wait(1, options))[0] ?? null)
  }

  /** Takes an element of any shard if there is one, without waiting; else `null`. Looks at one shard after the other. */
  poll(): Promise<T | null>
  /** Takes an element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. */
  poll(timeout: number, options?: TakeOptions): Promise<T | null>
  poll(timeout: number, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
  async poll(timeout?: number, unit?: TimeUnit | TakeOptions, options?: TakeOptions): Promise<T | null> {
    this.assertUsable()
    if (timeout === undefined) return (await this.#drain(1))[0] ?? null
    const { signal } = typeof unit === 'object' ? unit : (options ?? {})
    const timeoutMs = this.#millis(timeout, typeof unit === 'object' ? undefined : unit)
    return (await this.#wait(1, { signal, timeoutMs }))[0] ?? null
  }

  /**
   * Takes between 1 and `max` (1 to 10,000) elements, waiting for the first; an empty array when the timeout is over. They come
   * from the shards that are first to have some.
   */
  async takeMany(max: number, options: TakeManyOptions = {}): Promise<T[]> {
    const timeoutMs = this.handle.checked(() => {
      integer('max', max, 1, MAX_TAKE)
      onlyKnown('options', options, ['timeout', 'signal'])
      return options.timeout === undefined ? undefined : this.#millis(options.timeout, undefined)
    })
    return this.#wait(max, { timeoutMs, signal: options.signal })
  }

  /** Takes up to `max` elements without waiting, shard by shard, at most all that are there. Without `max`, all. */
  async drainTo(max = Infinity): Promise<T[]> {
    this.assertUsable()
    if (max !== Infinity) this.handle.checked(() => integer('max', max, 0, Number.MAX_SAFE_INTEGER))
    return this.#drain(max)
  }

  /** Takes elements for ever; the loop's body is done with one before the next is taken. */
  [Symbol.asyncIterator](): AsyncGenerator<T, void> {
    return this.elements()
  }

  /** The same with a signal; after its abort the iteration throws the signal's reason. */
  async *elements(options: TakeOptions = {}): AsyncGenerator<T, void> {
    for (;;) yield await this.take(options)
  }

  protected assertUsable(): void {}

  /** Ends the waits of this object, and puts back what they have popped and no take has asked for. */
  protected endTakes(): Promise<void> {
    return this.#consumer.close()
  }

  async #wait(max: number, options: TakeOptions & { timeoutMs?: number | undefined }): Promise<T[]> {
    this.assertUsable()
    if (options.signal?.aborted === true) throw toError(options.signal.reason)
    if (options.timeoutMs === 0) return this.#drain(max)
    return valuesOf(await this.#consumer.take(max, options))
  }

  async #drain(max: number): Promise<T[]> {
    return valuesOf(await this.handle.trackOperation(() => this.#consumer.drain(max)))
  }

  #millis(timeout: number, unit: TimeUnit | undefined): number {
    return this.handle.checked(() => toMillis('timeout', timeout, unit))
  }

  #report(shard: QueueIdentity<T> | undefined, what: string, cause: Error): void {
    const code = cause instanceof RedelayedError ? cause.code : 'ERR_INTERNAL'
    this.context.hub.emit('error', new RedelayedError(code, `${what}: ${cause.message}`, { queue: shard?.name, cause }))
  }
}

function valuesOf<T>(held: readonly RawElement<T>[]): T[] {
  return held.map(({ value }) => value)
}
