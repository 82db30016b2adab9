import type { Redis } from 'ioredis'
import { AuthError, ConnectionError, ShutdownError, type RedelayedError } from '../errors.js'
import type { Emit } from '../events.js'
import type { Settings } from '../options.js'
import { keepPinging } from './replies/keep-pinging.js'
import { ReconnectingConnection } from './connections/reconnecting-connection.js'
import { dropWhenOverdue } from './replies/reply-watchdog.js'
import type { IsStale } from './connections/remote-address.js'
import { translateError } from './replies/server-errors.js'
import { assertVersion } from './connections/server-version.js'
import type { Topology } from './topology/topology.js'

/** The callbacks for one channel. */
export interface ChannelListener {
  /** The server acknowledged the subscription: from now on no message is missed until the connection breaks. */
  onSubscribed(): void
  /** The connection broke; messages are missed until the next `onSubscribed`. */
  onUnsubscribed(): void
  onMessage(message: string): void
  onError(error: RedelayedError): void
}

/** The most channels of one SUBSCRIBE, so that no command is huge. */
const CHANNELS_PER_COMMAND = 500
/** How long until channels without the user's right are subscribed again. */
const REFUSED_MS = 60_000

/**
 * One pub/sub connection for all channels. It subscribes after every reconnect itself, because ioredis hides the moment of
 * the acknowledgement, and it pings to detect a half-open socket.
 */
export class Subscriber {
  readonly #connection: ReconnectingConnection
  readonly #pingInterval: number
  readonly #commandTimeout: number
  readonly #listeners = new Map<string, ChannelListener>()
  /** Channels to be subscribed or unsubscribed with the next command; collected over one turn of the event loop. */
  readonly #changed = new Set<string>()
  #flushing = false
  #opening = false
  #closed = false
  readonly #refused = new Set<string>()
  #retry: NodeJS.Timeout | undefined

  constructor(topology: Topology, settings: Settings, emit: Emit) {
    this.#pingInterval = settings.pingInterval
    this.#commandTimeout = settings.commandTimeout
    this.#connection = new ReconnectingConnection({
      address: topology.address,
      role: 'subscriber',
      open: async (again) => {
        const redis = await topology.dedicated(again)
        redis.on('message', (channel: string, message: string) => this.#listeners.get(channel)?.onMessage(message))
        redis.once('end', () => this.#listeners.forEach((listener) => listener.onUnsubscribed()))
        return redis
      },
      prepare: async (redis, onProgress) => {
        if (topology.comparesServers) topology.arrived(redis, await assertVersion(redis))
        await this.#prepare(redis, onProgress)
      },
      connectTimeout: settings.connectTimeout,
      emit,
    })
  }

  /** Adds the one listener of a channel. */
  add(channel: string, listener: ChannelListener): void {
    if (this.#closed) throw new ShutdownError('the client was shut down')
    this.#listeners.set(channel, listener)
    this.#change(channel)
  }

  remove(channel: string): void {
    if (this.#listeners.delete(channel)) this.#change(channel)
  }

  /**
   * Drops the connection to a server that is no longer the master. A replica would pass messages on, but count only its own subscribers.
   */
  leave(isStale: IsStale): void {
    this.#connection.leave(isStale)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    this.#listeners.clear()
    await this.#connection.close()
  }

  /** Subscribes as a part of opening the connection, which is useless without any channel, but not without some. */
  async #prepare(redis: Redis, onProgress: () => void): Promise<void> {
    this.#changed.clear()
    keepPinging(this.#connection, redis, this.#pingInterval)
    const refused = await this.#subscribe(redis, [...this.#listeners.keys()], onProgress)
    const [refusal] = refused.values()
    if (refusal !== undefined && refused.size === this.#listeners.size) {
      // the callers that wait for the connection report it
      if (!this.#opening) for (const [channel, error] of refused) this.#listeners.get(channel)?.onError(error)
      throw refusal
    }
    this.#onRefused(refused)
    if (this.#changed.size > 0) this.#scheduleFlush() // by then the connection is the current one
  }

  #change(channel: string): void {
    this.#changed.add(channel)
    this.#scheduleFlush()
  }

  #scheduleFlush(): void {
    if (this.#flushing || this.#closed) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      void this.#flush()
    })
  }

  async #flush(): Promise<void> {
    if (this.#closed) return
    const redis = this.#connection.current
    if (redis === undefined) {
      // the next connection subscribes to all channels; it only has to be opened
      if (this.#opening || this.#listeners.size === 0) return
      this.#opening = true
      await this.#connection.get().catch((error: unknown) => this.#report(error))
      this.#opening = false
      return
    }
    const changed = [...this.#changed]
    this.#changed.clear()
    const gone = changed.filter((channel) => !this.#listeners.has(channel))
    if (gone.length > 0) redis.unsubscribe(...gone).catch(() => undefined)
    const wanted = changed.filter((channel) => this.#listeners.has(channel))
    if (wanted.length === 0) return
    const overdue = { dueMs: 0, graceMs: this.#commandTimeout }
    let stopWatching = dropWhenOverdue(this.#connection, redis, overdue)
    const onProgress = (): void => {
      stopWatching()
      stopWatching = dropWhenOverdue(this.#connection, redis, overdue)
    }
    await this.#subscribe(redis, wanted, onProgress).then(
      (refused) => this.#onRefused(refused),
      (thrown: unknown) => this.#connection.drop(redis, translateError(thrown)),
    )
    stopWatching()
  }

  /**
   * Subscribes in parts, each of which counts as progress. Resolves with the refused channels and their errors; rejects if the
   * connection is useless.
   */
  async #subscribe(redis: Redis, channels: string[], onProgress: () => void): Promise<Map<string, AuthError>> {
    const refused = new Map<string, AuthError>()
    for (let i = 0; i < channels.length && !this.#closed; i += CHANNELS_PER_COMMAND) {
      const chunk = channels.slice(i, i + CHANNELS_PER_COMMAND)
      try {
        await subscribeTo(redis, chunk, refused)
      } catch (thrown) {
        const error = translateError(thrown)
        // the callers that wait for the connection report the error; the next connection subscribes again
        const isReported = this.#closed || this.#opening || error instanceof ConnectionError
        if (!isReported) for (const channel of chunk) this.#listeners.get(channel)?.onError(error)
        throw error
      }
      onProgress()
      for (const channel of chunk) if (!refused.has(channel)) this.#listeners.get(channel)?.onSubscribed()
    }
    return refused
  }

  /** Reports refused channels. The other channels go on; the listeners of refused ones depend on their sweeps. */
  #onRefused(refused: ReadonlyMap<string, AuthError>): void {
    for (const [channel, error] of refused) {
      this.#refused.add(channel)
      this.#listeners.get(channel)?.onError(error)
    }
    if (refused.size === 0 || this.#retry !== undefined || this.#closed) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      for (const channel of this.#refused) if (this.#listeners.has(channel)) this.#change(channel)
      this.#refused.clear()
    }, REFUSED_MS)
    this.#retry.unref()
  }

  #report(error: unknown): void {
    const translated = translateError(error)
    if (this.#closed) return
    for (const listener of this.#listeners.values()) listener.onError(translated)
  }
}

/**
 * Subscribes to channels. Redis refuses all channels of a command if the user has no right to one of them: then each is subscribed alone.
 */
async function subscribeTo(redis: Redis, channels: readonly string[], refused: Map<string, AuthError>): Promise<void> {
  try {
    await redis.subscribe(...channels)
  } catch (thrown) {
    const error = translateError(thrown)
    if (!(error instanceof AuthError)) throw thrown
    if (channels.length === 1) refused.set(channels[0] as string, error)
    else await Promise.all(channels.map((channel) => subscribeTo(redis, [channel], refused)))
  }
}
