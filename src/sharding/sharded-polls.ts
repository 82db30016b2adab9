import { ShutdownError, failureOf, toError } from '../errors.js'
import type { PrefetchBuffer } from '../queues/context.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import { howToPoll, type PollManyOptions } from '../reliable/claims.js'
import type { ReliableMessage } from '../reliable/message.js'
import type { Poller } from '../reliable/poller.js'
import type { QueueRegistry } from '../scheduler/queue-registry.js'
import { systemClock, type Clock } from '../timing/clock.js'
import { FailingShards } from './failing-shards.js'
import { FirstConnection } from './first-connection.js'
import { reliableSource, type HowToClaim } from './reliable-source.js'
import type { ReliableShards } from './reliable-shards.js'
import type { ShardAnswers } from './shard-answers.js'
import { ShardedConsumer } from './sharded-consumer.js'

/** Polls all shards as one queue. */
export class ShardedPolls<T> {
  readonly #handle: QueueHandle<T>
  readonly #shards: ReliableShards<T>
  readonly #answers: ShardAnswers<T>
  readonly #polls: Pick<QueueRegistry<Poller>, 'isClosed'>
  /** The consumers by claim options, while any of their calls waits. */
  readonly #consumers = new Map<string, ShardedConsumer<ReliableMessage<T>>>()
  /** All consumers share it, because a new one must not ask a silent shard first again. */
  readonly #failing = new FailingShards()
  readonly #clock: Clock
  readonly #connection: FirstConnection

  constructor(
    handle: QueueHandle<T>,
    parts: {
      readonly shards: ReliableShards<T>
      readonly answers: ShardAnswers<T>
      readonly polls: Pick<QueueRegistry<Poller>, 'isClosed'>
      readonly clock?: Clock
    },
  ) {
    this.#handle = handle
    this.#shards = parts.shards
    this.#answers = parts.answers
    this.#polls = parts.polls
    this.#clock = parts.clock ?? systemClock
    this.#connection = new FirstConnection(handle.context.commands, this.#clock)
  }

  /** `beforehand`: some of the messages are not handled at once. */
  async claim(options: PollManyOptions, beforehand = false): Promise<ReliableMessage<T>[]> {
    const { count, maxBytes, signal } = options
    const { timeoutMs, visibilityMs, isFinal } = howToPoll(options)
    const visibilityTimeout = options.visibilityTimeout === undefined ? undefined : visibilityMs
    const consumer = this.#consumerOf({ visibilityTimeout, beforehand })
    const since = performance.now()
    this.#connection.tried()
    for (;;) {
      if (signal?.aborted === true) throw toError(signal.reason)
      const left = timeoutMs === undefined ? undefined : Math.max(0, timeoutMs - (performance.now() - since))
      const taken =
        timeoutMs === 0
          ? await this.#handle.trackOperation(() => consumer.drain(count, maxBytes))
          : await consumer.take(count, { timeoutMs: left, signal }, maxBytes)
      if (timeoutMs === 0 || taken.length > 0) this.#connection.made()
      else this.#connection.assertMade()
      if (taken.length === 0) return []
      const held = taken.filter(({ isHeld }) => isHeld) // the visibility of a message that waited here for a call can have ended
      const messages = isFinal ? await this.#acknowledged(held) : held
      if (messages.length > 0) return messages
    }
  }

  /** Acknowledges messages; returns those that were. Another consumer may have the others by now. */
  async #acknowledged(messages: readonly ReliableMessage<T>[]): Promise<ReliableMessage<T>[]> {
    const done = await this.#answers.send(messages, (queue, own) => queue.acknowledge(...own))
    return messages.filter((_, at) => done[at] === true)
  }

  #consumerOf(how: HowToClaim): ShardedConsumer<ReliableMessage<T>> {
    const key = `${how.visibilityTimeout} ${how.beforehand}`
    const known = this.#consumers.get(key)
    if (known !== undefined) return known
    const { context } = this.#handle
    // a consumer is kept while it has waits
    const buffers = {
      add: (buffer: PrefetchBuffer) => {
        this.#consumers.set(key, consumer)
        return context.buffers.add(buffer)
      },
      delete: (buffer: PrefetchBuffer) => {
        this.#consumers.delete(key)
        return context.buffers.delete(buffer)
      },
    }
    const consumer: ShardedConsumer<ReliableMessage<T>> = new ShardedConsumer({
      sources: this.#shards.queues.map((queue) => reliableSource(queue, how)),
      failing: this.#failing,
      buffers,
      clock: this.#clock,
      random: Math.random,
      asksOneFirst: true,
      areClaims: true,
      bytesOf: ({ storedBytes }) => storedBytes,
      closedError: () => this.#handle.withQueueName(new ShutdownError('the client was shut down')),
      isShutDown: () => this.#polls.isClosed,
      onFailure: (shard, error) => this.#report(shard, 'polling a shard failed', error),
      onLost: (shard, count, error) => {
        this.#report(
          shard,
          `${count} messages that no call waited for are redelivered when their visibility ends`,
          error,
        )
      },
    })
    return consumer
  }

  #report(shard: number, what: string, cause: Error): void {
    const queue = this.#shards.at(shard).name
    this.#handle.context.hub.emit('error', failureOf(what, cause, { queue }))
  }
}
