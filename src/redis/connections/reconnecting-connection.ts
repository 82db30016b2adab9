import type { Redis } from 'ioredis'
import {
  AuthError,
  ConnectionError,
  ShutdownError,
  UnsupportedServerError,
  RedelayedError,
  copyOf,
} from '../../errors.js'
import type { Emit, ReconnectingEvent } from '../../events.js'
import { atMost } from '../../timing/pause.js'
import { backoffDelay, type Backoff } from '../../timing/backoff.js'
import { assertDatabase } from './assert-database.js'
import { advised } from './connect-advice.js'
import { QUIT_TIMEOUT_MS, abandon, disconnect } from './disconnect.js'
import { remoteAddressOf, type IsStale } from './remote-address.js'
import { guardReplies } from '../replies/reply-guard.js'
import { brokenAt, translateError } from '../replies/server-errors.js'
import { Opening } from './opening.js'
import { ClientEndedError, NodeGoneError } from '../topology/topology.js'

const BACKOFF: Backoff = { baseMs: 50, maxMs: 2_000 }
/** How long a connection must last to reset the back-off. */
const STABLE_MS = 1_000

/** ioredis's error for all sentinels, which does not always say what was wrong with the last one. */
const ALL_SENTINELS = /^All sentinels are unreachable/

/** Errors that a retry cannot fix, so that waiting callers are rejected at once. */
const FINAL = [AuthError, UnsupportedServerError, NodeGoneError, ClientEndedError]

export interface ReconnectingConnectionParams {
  readonly role: ReconnectingEvent['connection']
  /** Creates an ioredis client that is not connected yet and never reconnects by itself; `again`: it is not the first one. */
  readonly open: (again: boolean) => Redis | Promise<Redis>
  /**
   * Prepares the connection before it is used; if this rejects, the connection is closed. It shares the time limit with the rest of the
   * opening; `onProgress` restarts that limit for several long replies in a row.
   */
  readonly prepare?: (redis: Redis, onProgress: () => void) => Promise<void>
  /** The address, for errors. */
  readonly address: string
  /** The limit of each attempt to open the connection, and of each wait for it. */
  readonly connectTimeout: number
  readonly emit: Emit
}

interface Waiter {
  readonly resolve: (redis: Redis) => void
  readonly reject: (error: RedelayedError) => void
  readonly timer: NodeJS.Timeout
}

/**
 * One connection that is opened when first needed and opened again when it breaks. It uses every ioredis client for one
 * connection only: with ioredis's own reconnection a command in flight is either resent silently or its promise
 * never settles, and no event says when a subscription is renewed.
 */
export class ReconnectingConnection {
  readonly #params: ReconnectingConnectionParams
  readonly #waiters = new Set<Waiter>()
  #current: Redis | undefined
  #opening: Opening | undefined
  #lastError: Error | undefined
  #running: Promise<void> | undefined
  #closed = false
  #wakeUp: (() => void) | undefined
  /** A check for stale servers that arrived while the connection was being opened. */
  #stale: IsStale | undefined
  /** When the last attempt to open a connection began. */
  #begunAt = 0
  /** Stops using the current connection while it still answers. */
  #leave: (() => void) | undefined
  readonly #retired = new Set<Promise<void>>()

  constructor(params: ReconnectingConnectionParams) {
    this.#params = params
  }

  /**
   * The connection if it is ready now. For some turns of the event loop after the server has ended it, ioredis still reports
   * the connection as ready but refuses every command.
   */
  get current(): Redis | undefined {
    const redis = this.#current
    return redis?.status === 'ready' && redis.stream.writable ? redis : undefined
  }

  /** Why there is no connection yet, for errors. */
  get problem(): string | undefined {
    return this.#lastError?.message ?? this.#opening?.silence
  }

  /** The error of a command on the connection, with its address and, when it has just broken, why. */
  errorOf(thrown: unknown): RedelayedError {
    if (thrown instanceof RedelayedError) return thrown
    return brokenAt(this.#params.address, translateError(thrown), this.#lastError?.message)
  }

  /** Waits for the connection, at most `connectTimeout`. Rejects at once for wrong credentials and for a node that has left. */
  get(): Promise<Redis> {
    if (this.current !== undefined) return Promise.resolve(this.current)
    if (this.#closed) return Promise.reject(new ShutdownError('the client was shut down'))
    this.#running ??= this.#run()
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiters.delete(waiter)
        const seconds = this.#params.connectTimeout / 1000
        const why = this.#lastError === undefined ? '' : `: ${this.#lastError.message}`
        reject(
          new ConnectionError(
            `no connection to Redis within ${seconds} s at ${this.#params.address}${why}`,
            'not-applied',
            {
              cause: this.#lastError,
            },
          ),
        )
      }, this.#params.connectTimeout)
      const waiter: Waiter = { resolve, reject, timer }
      this.#waiters.add(waiter)
    })
  }

  /** Drops the connection to a server that is no longer the right one, also while it is being opened. */
  leave(isStale: IsStale): void {
    const redis = this.#current
    if (redis !== undefined) {
      if (isStale(remoteAddressOf(redis), this.#begunAt, redis)) this.drop(redis)
      return
    }
    const opening = this.#opening?.redis
    // a frozen server would use up the whole time limit
    if (opening?.status === 'connect' && isStale(remoteAddressOf(opening), this.#begunAt, opening))
      this.#opening?.giveUp(notTheMaster())
    else if (this.#opening !== undefined) {
      const before = this.#stale
      this.#stale = (...peer) => before?.(...peer) === true || isStale(...peer)
    }
  }

  /** Drops this connection and opens another one. `why` is the cause in the `reconnecting` event. */
  drop(redis: Redis, why?: RedelayedError): void {
    if (this.#current === redis) {
      this.#current = undefined
      this.#lastError = why
    }
    abandon(redis)
  }

  /** Opens another connection; commands in flight on this one have at most two seconds to finish. */
  retire(redis: Redis): void {
    if (this.#current !== redis) return
    this.#leave?.()
    const ended = quit(redis).then(() => {
      disconnect(redis)
      this.#retired.delete(ended)
    })
    this.#retired.add(ended)
  }

  /** Ends the connection; with `graceful`, after the server has answered the commands in flight. */
  async close(graceful = false): Promise<void> {
    this.#closed = true
    this.#settle((waiter) => waiter.reject(new ShutdownError('the client was shut down')))
    this.#wakeUp?.()
    this.#opening?.giveUp(new ShutdownError('the client was shut down'))
    const redis = this.#current
    if (redis !== undefined) {
      this.#current = undefined
      if (graceful) await quit(redis)
      disconnect(redis)
    }
    await Promise.all([this.#running, ...this.#retired])
  }

  async #run(): Promise<void> {
    for (let attempt = 0; !this.#closed;) {
      const redis = await this.#connect(attempt > 0)
      if (redis !== undefined) {
        const since = performance.now()
        await this.#serve(redis)
        // a connection that is dropped again and again must not be opened in a hot loop
        if (performance.now() - since > STABLE_MS) attempt = 0
      } else if (FINAL.some((type) => this.#lastError instanceof type)) {
        const error = this.#lastError as RedelayedError
        this.#settle((waiter) => waiter.reject(copyOf(error)))
        if (error instanceof NodeGoneError) {
          this.#running = undefined // until the next call
          return
        }
      }
      if (this.#closed) return
      attempt++
      const delayMs = Math.round(backoffDelay(BACKOFF, attempt, Math.random()))
      this.#params.emit('reconnecting', {
        connection: this.#params.role,
        attempt,
        delayMs,
        error: this.#lastError,
      })
      if (this.#closed) return // by a listener
      await this.#pause(delayMs)
    }
  }

  /** Makes one attempt; resolves with `undefined` if it failed, with the reason in `#lastError`. */
  async #connect(again: boolean): Promise<Redis | undefined> {
    const opening = (this.#opening = new Opening(this.#params.connectTimeout))
    this.#begunAt = performance.now()
    let reason: RedelayedError | undefined
    let ofSentinel: Error | undefined
    try {
      return await opening.run(async () => {
        const redis = opening.use(guardReplies(await this.#params.open(again)))
        // ioredis reports why connecting failed only by this event, and prints it if there is no listener
        redis.on('error', (error: Error) => {
          const isAboutAll = ofSentinel !== undefined && ALL_SENTINELS.test(error.message)
          this.#lastError = reason = translateError(isAboutAll ? ofSentinel : error)
        })
        redis.on('sentinelError', (error: Error) => (ofSentinel = error))
        await redis.connect()
        if (reason !== undefined) throw reason // such as a refused SELECT, after which ioredis would use database 0
        // its question is sent first; if its answer is wrong, this connection is not used, whatever was prepared
        await Promise.all([assertDatabase(redis), this.#params.prepare?.(redis, () => opening.restart())])
        const isStale = this.#stale
        this.#stale = undefined // for this attempt only: otherwise an address with two names would be refused for ever
        if (isStale?.(remoteAddressOf(redis), this.#begunAt, redis) === true) throw notTheMaster()
        return redis
      })
    } catch (thrown) {
      const usesTls = opening.redis?.options.tls !== undefined
      const error = (this.#lastError = advised(reason ?? translateError(thrown), this.#params.address, usesTls))
      opening.giveUp(error)
      return undefined
    } finally {
      this.#opening = undefined
    }
  }

  /** Uses the connection until it ends. */
  async #serve(redis: Redis): Promise<void> {
    const ended = new Promise<void>((resolve) => {
      redis.once('end', () => resolve())
      this.#leave = () => {
        this.#current = undefined // at once, so that no caller sends on it any more
        resolve()
      }
    })
    this.#lastError = undefined
    if (redis.status === 'ready') {
      this.#current = redis
      this.#settle((waiter) => waiter.resolve(redis))
      await ended
    }
    if (this.#current === redis) this.#current = undefined
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms)
      this.#wakeUp = done
      function done(): void {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #settle(how: (waiter: Waiter) => void): void {
    const waiters = [...this.#waiters]
    this.#waiters.clear()
    for (const waiter of waiters) {
      clearTimeout(waiter.timer)
      how(waiter)
    }
  }
}

function notTheMaster(): ConnectionError {
  return new ConnectionError('the server is not the master any more', 'not-applied')
}

/** Waits until the server has answered all earlier commands, for a limited time, so that a dead server does not hold up a shutdown. */
async function quit(redis: Redis): Promise<void> {
  await atMost(QUIT_TIMEOUT_MS, redis.quit())
}
