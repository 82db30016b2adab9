import { ShutdownError, failureOf, isOfShutdown } from '../errors.js'
import type { Emit } from '../events.js'
import type { Settings } from '../options.js'
import type { ChannelListener } from '../redis/subscriber.js'
import { systemClock } from '../timing/clock.js'
import { Retries } from './retries.js'
import { Sweeper } from './sweeper.js'

/** How long a queue is served after its last consumer stopped waiting, so that consumers in a loop cost nothing. */
export const LINGER_MS = 60_000

/** The part of the subscriber that the registry needs. */
export interface Channels {
  add(channel: string, listener: ChannelListener): void
  remove(channel: string): void
}

/** The identity of a queue in this layer. */
export interface QueueAddress {
  /** The public name, for events. */
  readonly name: string
  readonly channel: string
}

/** A queue whose script this client runs when entries are due. */
export interface ServedQueue {
  readonly address: QueueAddress
  /** Whether the queue is still served after the next sweep. */
  readonly isUsed: boolean
  onSubscribed(): void
  onUnsubscribed(): void
  /** A message was published on the queue's channel. */
  onMessage(message: string): void
  sweep(): void
  stop(): Promise<void>
}

/**
 * The queues that this client serves, one object each: subscribes to the channel, sweeps, and stops the queue when it is no longer used.
 */
export class QueueRegistry<Q extends ServedQueue> {
  /** The retries that all schedulers of the queues share. */
  readonly retries = new Retries(systemClock)
  readonly #script: string
  readonly #channels: Channels
  readonly #emit: Emit
  readonly #queues = new Map<string, Q>()
  readonly #stopping = new Set<Promise<void>>()
  readonly #sweeper: Sweeper<Q>
  #closed = false

  /** `script`: the name of the operation in errors. */
  constructor(params: { script: string; channels: Channels; settings: Settings; emit: Emit }) {
    this.#script = params.script
    this.#channels = params.channels
    this.#emit = params.emit
    this.#sweeper = new Sweeper({
      members: this.#queues,
      interval: params.settings.sweepInterval,
      sweep: (queue) => (queue.isUsed ? queue.sweep() : void this.stop(queue)),
      clock: systemClock,
      random: Math.random,
    })
  }

  get isClosed(): boolean {
    return this.#closed
  }

  find({ channel }: QueueAddress): Q | undefined {
    return this.#queues.get(channel)
  }

  /** The queue at that address; `make` makes it if it is not served yet. */
  serve(address: QueueAddress, make: () => Q): Q {
    if (this.#closed) throw new ShutdownError('the client was shut down')
    const known = this.find(address)
    if (known !== undefined) return known
    const queue = make()
    const { name, channel } = address
    this.#queues.set(channel, queue)
    this.#channels.add(channel, {
      onSubscribed: () => {
        this.#emit('subscribed', { queue: name })
        queue.onSubscribed()
      },
      onUnsubscribed: () => queue.onUnsubscribed(),
      onMessage: (message) => queue.onMessage(message),
      onError: (error) => this.report(address, error),
    })
    this.#sweeper.start()
    return queue
  }

  async stop(queue: Q): Promise<void> {
    const { channel } = queue.address
    if (this.#queues.get(channel) !== queue) return
    this.#queues.delete(channel)
    this.#channels.remove(channel)
    const stopped = queue.stop().finally(() => this.#stopping.delete(stopped))
    this.#stopping.add(stopped)
    await stopped
  }

  report({ name }: QueueAddress, cause: Error): void {
    if (this.#closed || isOfShutdown(cause)) return
    this.#emit('error', failureOf(this.#script, cause, { queue: name }))
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#sweeper.stop()
    for (const queue of this.#queues.values()) void this.stop(queue)
    await Promise.all(this.#stopping)
  }
}
