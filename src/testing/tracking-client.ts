import { RedelayedClient, type QueueOptions } from '../client.js'
import { deadLettersOf, queueKeys, reliableKeys, type QueueKeys, type ReliableKeys } from '../keys.js'
import type { DelayedQueueOptions } from '../queues/delayed-options.js'
import type { DelayedQueue } from '../queues/delayed-queue.js'
import type { ListQueue } from '../queues/list-queue.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import type { ShardedDelayedQueue } from '../sharding/sharded-delayed-queue.js'
import type { ShardedDelayedQueueOptions } from '../sharding/sharded-options.js'
import type { ShardedReliableQueueOptions } from '../sharding/sharded-reliable-options.js'
import { ShardedReliableQueue } from '../sharding/sharded-reliable-queue.js'
import { dueKeysOf } from '../store/due-keys.js'
import type { Handler, HandlersOf } from '../workers/handlers.js'
import type { PayloadOf, WorkerQueue, WorkerQueues, WorkerSource } from '../workers/sources.js'
import type { Worker } from '../workers/worker.js'
import type { WorkerOptions } from '../workers/worker-options.js'

/** The queues that deliver without a call: delayed queues that exist, and reliable queues with a worker. */
export interface Delivering {
  readonly delayed: readonly QueueKeys[]
  readonly worked: readonly ReliableKeys[]
  /** Of the queues whose workers drop dead letters that are too old. */
  readonly aging: readonly DeadLetterKeys[]
}

/** The configuration of a queue, and the schedule of its dead letters. */
export interface DeadLetterKeys {
  readonly config: string
  readonly due: string
}

/** A client that remembers its queues, and uses the test's clock. */
export class TrackingClient extends RedelayedClient {
  readonly workers: Worker[] = []
  readonly #delayed = new Map<string, QueueKeys>()
  readonly #held: { readonly queue: { readonly isDelivering: boolean }; readonly names: readonly string[] }[] = []
  readonly #reliable = new Map<string, ReliableKeys>()
  readonly #worked = new Map<string, { readonly keys: ReliableKeys; readonly workers: Set<Worker> }>()
  readonly #shards = new Map<string, readonly string[]>()

  override getDelayedQueue<T>(destination: ListQueue<T>, options?: DelayedQueueOptions): DelayedQueue<T> {
    const queue = super.getDelayedQueue(destination, options)
    this.#track(queue, [queue.name])
    return queue
  }

  override getShardedDelayedQueue<T = unknown>(
    name: string,
    options: ShardedDelayedQueueOptions<T>,
  ): ShardedDelayedQueue<NoInfer<T>> {
    const queue = super.getShardedDelayedQueue<T>(name, options)
    this.#track(queue, queue.names)
    this.#addShards(name, queue.names)
    return queue
  }

  override getReliableQueue<T = unknown>(name: string, options?: QueueOptions<T>): ReliableQueue<NoInfer<T>> {
    const queue = super.getReliableQueue<T>(name, options)
    this.#reliable.set(name, queue.identity.keys)
    return queue
  }

  override getShardedReliableQueue<T = unknown>(
    name: string,
    options: ShardedReliableQueueOptions<T>,
  ): ShardedReliableQueue<NoInfer<T>> {
    const queue = super.getShardedReliableQueue<T>(name, options)
    for (const shard of queue.shards) this.#reliable.set(shard.name, shard.identity.keys)
    this.#addShards(name, queue.names)
    return queue
  }

  override createWorker<const Q extends WorkerQueues>(
    queues: Q,
    handlers: Handler<PayloadOf<Q>> | HandlersOf<PayloadOf<Q>>,
    options?: WorkerOptions,
  ): Worker {
    const worker = super.createWorker(queues, handlers, options)
    this.workers.push(worker)
    for (const source of [queues].flat() as (WorkerQueue | WorkerSource)[]) {
      for (const { name, identity } of partsOf('queue' in source ? source.queue : source)) {
        this.#reliable.set(name, identity.keys)
        const workers = this.#worked.get(name)?.workers ?? new Set<Worker>()
        this.#worked.set(name, { keys: identity.keys, workers: workers.add(worker) })
      }
    }
    return worker
  }

  /** The names of the shards of some sharded queues. */
  shardsOf(names: readonly string[]): string[] {
    return names.flatMap((name) => this.#shards.get(name) ?? [])
  }

  /** The sorted sets with due times, or with the times of groups' next messages. */
  schedules(): string[] {
    const delayed = [...this.#delayed.values()].flatMap(({ timeouts, wheel }) => [timeouts, wheel])
    const reliable = [...this.#reliable.values()].flatMap(({ due, inFlight, ticks, groupWakes }) => [
      ...due,
      inFlight,
      ticks,
      groupWakes,
    ])
    return [...delayed, ...reliable]
  }

  /** The sorted sets with the times of promotions. */
  wheels(): string[] {
    return Array.from(this.#delayed.values(), ({ wheel }) => wheel)
  }

  /** The channels on which the client receives due times. */
  channels(): string[] {
    return [...this.#delayed.values(), ...this.#reliable.values()].map(({ channel }) => channel)
  }

  delivering(): Delivering {
    const held = new Set(this.#held.filter(({ queue }) => queue.isDelivering).flatMap(({ names }) => names))
    const isRunning = (worker: Worker): boolean => worker.health().state === 'running'
    const aging = [...this.#worked].flatMap(([name, { keys, workers }]) => {
      const { due } = reliableKeys(deadLettersOf(name))
      return [...workers].some(isRunning) ? { config: keys.config, due: dueKeysOf(due).due0 } : []
    })
    return {
      delayed: Array.from(held, queueKeys),
      worked: Array.from(this.#worked.values(), ({ keys }) => keys),
      aging,
    }
  }

  #track(queue: { readonly isDelivering: boolean }, names: readonly string[]): void {
    for (const name of names) this.#delayed.set(name, queueKeys(name))
    this.#held.push({ queue, names })
  }

  #addShards(name: string, shards: readonly string[]): void {
    this.#shards.set(name, [...(this.#shards.get(name) ?? []), ...shards])
  }
}

function partsOf(queue: WorkerQueue): readonly ReliableQueue[] {
  return queue instanceof ShardedReliableQueue ? queue.shards : [queue]
}
