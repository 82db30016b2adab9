import type { Redis } from 'ioredis'
import { ConnectionError, type RedelayedError } from '../../errors.js'
import { asInteger } from '../../store/replies.js'
import { isBrief, translateError } from '../replies/server-errors.js'

/** A connection as its server identifies it. */
interface Known {
  /** The `run_id` of the server process; another process numbers its connections anew. */
  readonly runId: string
  readonly id: number
}

/** What a connection has learned of itself: its id, and the server's INFO. */
export interface Identity {
  readonly id: number
  readonly info: string
}

/** An id that no connection has: with it a connection finds out, when it is opened, whether this user may end connections. */
const NO_CONNECTION = Number.MAX_SAFE_INTEGER
/** The most broken connections to remember: servers that never come back are forgotten. */
const MOST = 100

/**
 * Ends broken connections at the server before another one is used. Commands sent on a broken connection can still be on their way, for
 * seconds and behind a proxy that has not noticed; once the server has ended its side they are never carried out. So a command that is repeated on the new
 * connection cannot be followed by its first attempt.
 */
export class Predecessors {
  readonly #broken = new Set<Known>()
  readonly #watched = new WeakSet<Redis>()
  readonly #noted = new WeakSet<Redis>()
  #isRefused = false
  /** When, by the monotonic clock, the last connection broke whose id is unknown. */
  #lostAt = -Infinity

  /** Whether no command that was sent since then on a broken connection can still arrive. */
  areOver(since: number): boolean {
    return !this.#isRefused && this.#lostAt < since
  }

  /** Whether the connection can be ended at the server after it has broken. */
  knows(redis: Redis): boolean {
    return this.#watched.has(redis)
  }

  /** Learns the id of `redis` while it is opened, before anything else is sent on it. */
  async learn(redis: Redis): Promise<void> {
    const [info, id] = await Promise.all([redis.info('server'), redis.call('CLIENT', 'ID')])
    const runId = runIdIn(info)
    if (runId !== undefined) this.#watch(redis, { runId, id: asInteger(id) })
  }

  /**
   * Ends the broken connections to the server of `redis`, before `redis` is used, or used for a repetition; `info` is the server's INFO, if known.
   * Resolves with whether all of them were ended.
   */
  async end(redis: Redis, info: string | undefined): Promise<boolean> {
    const runId = runIdIn(info)
    const here = this.#brokenAt(runId)
    const [id, ...killed] = await Promise.all([
      redis.call('CLIENT', 'ID').catch(orRefusal),
      kill(redis, NO_CONNECTION),
      ...here.map((each) => kill(redis, each.id)),
    ])
    // the next connection may have the right to what is refused here
    const isRefused = runId === undefined || [id, ...killed].some((reply) => reply instanceof Error)
    this.#isRefused = isRefused
    if (!isRefused) for (const each of here) this.#broken.delete(each)
    if (runId !== undefined && !(id instanceof Error)) this.#watch(redis, { runId, id: asInteger(id) })
    else this.note(redis)
    return !isRefused
  }

  /** The same for connections that repeat nothing: a connection that the server refuses to end is forgotten. */
  async endAllowed(redis: Redis, { id, info }: Identity): Promise<void> {
    const runId = runIdIn(info)
    if (runId === undefined) return
    this.#watch(redis, { runId, id })
    const here = this.#brokenAt(runId)
    await Promise.all(here.map((each) => kill(redis, each.id)))
    for (const each of here) this.#broken.delete(each)
  }

  /** Remembers when the connection breaks, unless its id is known by then. */
  note(redis: Redis): void {
    if (this.#watched.has(redis) || this.#noted.has(redis)) return
    this.#noted.add(redis)
    redis.once('end', () => {
      if (!this.#watched.has(redis)) this.#lostAt = performance.now()
    })
  }

  #brokenAt(runId: string | undefined): Known[] {
    return [...this.#broken].filter((known) => known.runId === runId)
  }

  #watch(redis: Redis, known: Known): void {
    if (this.#watched.has(redis)) return
    this.#watched.add(redis)
    redis.once('end', () => {
      this.#broken.add(known)
      const [oldest] = this.#broken
      if (this.#broken.size > MOST && oldest !== undefined) this.#broken.delete(oldest)
    })
  }
}

function kill(redis: Redis, id: number): Promise<unknown> {
  return redis.call('CLIENT', 'KILL', 'ID', id).catch(orRefusal)
}

function orRefusal(thrown: unknown): RedelayedError {
  const error = translateError(thrown)
  if (error instanceof ConnectionError || isBrief(error)) throw error
  return error
}

function runIdIn(info: string | undefined): string | undefined {
  return info === undefined ? undefined : /^run_id:(\w+)/m.exec(info)?.[1]
}
