import type { Cluster, Redis, RedisOptions } from 'ioredis'
import { ConnectionError, RedelayedError, ShutdownError, copyOf } from '../errors.js'
import { addressOfClient } from './connections/address.js'
import { advised } from './connections/connect-advice.js'
import { translateError } from './replies/server-errors.js'
import type { SilenceWatch } from './replies/silence-watch.js'
import { ClientEndedError } from './topology/topology.js'

const SILENT = 'the server was silent when the client asked for its version'

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: RedelayedError) => void
  readonly timer: NodeJS.Timeout
}

/**
 * Waits for a client that connects by itself, for a limited time, and checks the server once. All waiting calls share
 * one listener per event.
 */
export class Readiness {
  readonly #client: Redis | Cluster
  readonly #timeout: number
  readonly #inspect: () => Promise<void>
  readonly #watch: SilenceWatch | undefined
  readonly #waiting = new Set<Waiting>()
  #lastError: Error | undefined
  #inspecting: Promise<void> | undefined
  #inspected = false
  #closed = false
  #waits = 0
  #waitingSince = 0
  #reject: (error: ShutdownError) => void = () => undefined
  /** Never resolves. */
  readonly #closing = new Promise<never>((_, reject) => (this.#reject = reject))

  constructor(client: Redis | Cluster, timeout: number, inspect: () => Promise<void>, watch?: SilenceWatch) {
    this.#client = client
    this.#timeout = timeout
    this.#inspect = inspect
    this.#watch = watch
    watch?.watchFor({ oldest: () => (this.#waits > 0 ? this.#waitingSince : undefined) })
    this.#closing.catch(() => undefined) // usually no caller waits
  }

  get now(): boolean {
    return this.#inspected && !this.#closed && this.#client.status === 'ready'
  }

  /** The reason for no connection yet, for errors. */
  get problem(): string | undefined {
    return this.#lastError === undefined ? undefined : this.#explained(this.#lastError).message
  }

  /** Waits for at most the timeout, including the check of the server. */
  async wait(): Promise<void> {
    if (this.#closed) throw new ShutdownError('the client was shut down')
    if (this.now) return
    const startedAt = performance.now()
    if (this.#waits++ === 0) this.#waitingSince = startedAt
    this.#watch?.start()
    try {
      if (this.#client.status !== 'ready') await this.#connected()
      if (!this.#inspected) await this.#check(startedAt + this.#timeout)
    } finally {
      this.#waits--
    }
  }

  async #check(until: number): Promise<void> {
    const inspecting = (this.#inspecting ??= this.#inspect().finally(() => (this.#inspecting = undefined)))
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<never>((_, reject) => {
      const late = (): void => {
        if (this.#inspecting === inspecting) this.#inspecting = undefined // the next check may succeed
        reject(this.#noConnection(new ConnectionError(SILENT, 'not-applied')))
      }
      timer = setTimeout(late, until - performance.now())
    })
    try {
      await Promise.race([inspecting, over, this.#closing])
    } catch (error) {
      throw error instanceof RedelayedError ? copyOf(error) : error
    } finally {
      clearTimeout(timer)
    }
    this.#inspected = true
  }

  /** Ends all waits, and refuses new ones. */
  close(): void {
    this.#closed = true
    this.#reject(new ShutdownError('the client was shut down'))
    for (const waiting of this.#waiting) {
      this.#remove(waiting)
      waiting.reject(new ShutdownError('the client was shut down'))
    }
  }

  #connected(): Promise<void> {
    const client = this.#client
    if (client.status === 'wait') client.connect().catch(() => undefined)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#remove(waiting)
        reject(this.#noConnection(this.#lastError))
      }, this.#timeout)
      const waiting: Waiting = { resolve, reject, timer }
      if (this.#waiting.size === 0) {
        this.#lastError = undefined
        client.on('ready', this.#onReady)
        client.on('error', this.#onError)
        client.on('end', this.#onEnd)
      }
      this.#waiting.add(waiting)
      if (client.status === 'end') this.#onEnd()
    })
  }

  readonly #onReady = (): void => {
    for (const waiting of this.#waiting) {
      this.#remove(waiting)
      waiting.resolve()
    }
  }

  readonly #onError = (error: Error): void => {
    this.#lastError = error
  }

  readonly #onEnd = (): void => {
    for (const waiting of this.#waiting) {
      this.#remove(waiting)
      waiting.reject(new ClientEndedError(this.#lastError))
    }
  }

  #noConnection(reason: Error | undefined): ConnectionError {
    const cause = reason === undefined ? undefined : this.#explained(reason)
    const why = cause === undefined ? '' : `: ${cause.message}`
    const message = `no connection to Redis within ${this.#timeout / 1000} s at ${addressOfClient(this.#client)}${why}`
    return new ConnectionError(message, 'not-applied', { cause })
  }

  /** Adds advice to an error; for a cluster's error, to that of the node asked last. */
  #explained(reason: Error): RedelayedError {
    const { lastNodeError = reason } = reason as { lastNodeError?: Error }
    const { options } = this.#client
    const { tls } = 'redisOptions' in options ? (options.redisOptions ?? {}) : (options as RedisOptions)
    return advised(translateError(lastNodeError), addressOfClient(this.#client), tls !== undefined)
  }

  #remove(waiting: Waiting): void {
    clearTimeout(waiting.timer)
    this.#waiting.delete(waiting)
    if (this.#waiting.size > 0) return
    this.#client.off('ready', this.#onReady)
    this.#client.off('error', this.#onError)
    this.#client.off('end', this.#onEnd)
  }
}
