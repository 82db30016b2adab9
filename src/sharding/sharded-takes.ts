import { ShutdownError, failureOf, toError } from '../errors.js'
import { integer } from '../options.js'
import { systemClock } from '../timing/clock.js'
import type { QueueIdentity } from '../queues/context.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import { waitOfPoll, waitOfTake, type PollArguments, type TakeManyOptions, type TakeOptions } from '../queues/waits.js'
import { FirstConnection } from './first-connection.js'
import { sourceOf, type RawElement } from './shard-source.js'
import { ShardedConsumer } from './sharded-consumer.js'

/** Takes from all shards as from one queue. */
export class ShardedTakes<T> {
  readonly #handle: QueueHandle<T>
  readonly #consumer: ShardedConsumer<RawElement<T>>
  readonly #connection: FirstConnection

  constructor(
    handle: QueueHandle<T>,
    shards: readonly QueueIdentity<T>[],
    options: { consumersDeliver?: boolean | undefined },
  ) {
    const { context } = handle
    this.#handle = handle
    this.#connection = new FirstConnection(context.commands, systemClock)
    this.#consumer = new ShardedConsumer({
      sources: shards.map((shard) => sourceOf(context, shard, options)),
      buffers: context.buffers,
      clock: systemClock,
      random: Math.random,
      closedError: () =>
        handle.withQueueName(new ShutdownError('the client was shut down, or this sharded queue destroyed')),
      isShutDown: () => context.transfers.isClosed,
      onFailure: (shard, error) => this.#report(shards[shard], 'taking from a shard failed', error),
      onLost: (shard, count, error) => {
        this.#report(shards[shard], `${count} elements are given up, as they may not have been put back`, error)
      },
    })
  }

  /** Takes one element, waiting without end. */
  async take(options: TakeOptions): Promise<T> {
    return this.#handle.orThrow((await this.#wait(1, options))[0] ?? null)
  }

  /** Takes one element: without waiting when no timeout is given, else waiting at most for that time. */
  async poll(given: PollArguments): Promise<T | null> {
    this.#handle.assertUsable()
    const { timeoutMs, signal } = waitOfPoll(given)
    if (timeoutMs === undefined) return (await this.#drain(1))[0] ?? null
    return (await this.#wait(1, { signal, timeoutMs }))[0] ?? null
  }

  /** Takes several elements; none when the time is over. */
  async takeMany(max: number, options: TakeManyOptions): Promise<T[]> {
    return this.#wait(max, { timeoutMs: waitOfTake(max, options), signal: options.signal })
  }

  /** Takes up to `max` elements without waiting. */
  async drain(max: number): Promise<T[]> {
    this.#handle.assertUsable()
    if (max !== Infinity) integer('max', max, 0, Number.MAX_SAFE_INTEGER)
    return this.#drain(max)
  }

  /** Ends the waits, and puts back popped elements that no take wants. */
  end(): Promise<void> {
    return this.#consumer.close()
  }

  async #wait(max: number, options: TakeOptions & { timeoutMs?: number | undefined }): Promise<T[]> {
    this.#handle.assertUsable()
    if (options.signal?.aborted === true) throw toError(options.signal.reason)
    if (options.timeoutMs === 0) return this.#drain(max)
    this.#connection.tried()
    const taken = await this.#consumer.take(max, options)
    if (taken.length === 0) this.#connection.assertMade()
    else this.#connection.made()
    return valuesOf(taken)
  }

  async #drain(max: number): Promise<T[]> {
    const taken = await this.#handle.trackOperation(() => this.#consumer.drain(max))
    if (max > 0) this.#connection.made()
    return valuesOf(taken)
  }

  #report(shard: QueueIdentity<T> | undefined, what: string, cause: Error): void {
    this.#handle.context.hub.emit('error', failureOf(what, cause, { queue: shard?.name }))
  }
}

function valuesOf<T>(held: readonly RawElement<T>[]): T[] {
  return held.map(({ value }) => value)
}
