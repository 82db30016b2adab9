import type { Redis } from 'ioredis'
import { ConnectionError, type RedelayedError } from '../../errors.js'
import { asInteger } from '../../store/replies.js'
import { isBrief, translateError } from '../replies/server-errors.js'
import { runIdIn } from './server-version.js'

/** The identity of a connection at its server. */
interface Known {
  /** The `run_id` of the server process; another process numbers its connections anew. */
  readonly runId: string
  readonly id: number
}

/** The data that a connection has learned about itself: its id, and the server's INFO. */
export interface Identity {
  readonly id: number
  readonly info: string
}

/** An id that no connection has: with it a new connection checks whether this user may end connections. */
const NO_CONNECTION = Number.MAX_SAFE_INTEGER
/** The most broken connections to remember: servers that never come back are forgotten. */
const MOST = 100

/** The server processes of all connections; each role has predecessors of its own. */
const runIds = new WeakMap<Redis, string>()

/** Notes the `run_id` of the server process that a connection leads to. */
export function noteRunId(redis: Redis, runId: string): void {
  runIds.set(redis, runId)
}

/** The `run_id` of the server process that a connection leads to, if it is known. */
export function runIdOf(redis: Redis): string | undefined {
  return runIds.get(redis)
}

/**
 * Ends broken connections at the server before another one is used. Commands sent on a broken connection can still be on their way for
 * seconds, such as behind a proxy that has not noticed the break; once the server has ended its side, it never carries them out. So the
 * first attempt cannot arrive after its repetition on the new connection.
 */
export class Predecessors {
  readonly #broken = new Set<Known>()
  readonly #watched = new WeakSet<Redis>()
  readonly #noted = new WeakSet<Redis>()
  #isRefused = false
  /** When the last connection with an unknown id broke, by the monotonic clock. */
  #lostAt = -Infinity

  /** Whether no command sent since `since` on a broken connection can still arrive. */
  areOver(since: number): boolean {
    return !this.#isRefused && this.#lostAt < since
  }

  /** Whether connections to this server process have broken and were not ended there. */
  hasBroken(runId: string | undefined): boolean {
    return runId !== undefined && this.#brokenAt(runId).length > 0
  }

  /** Whether the connection's id is known, so that it can be ended at the server after it has broken. */
  knows(redis: Redis): boolean {
    return this.#watched.has(redis)
  }

  /**
   * Learns the id of `redis` while it is opened, before anything else is sent on it. Then it ends the broken connections to the same
   * server, for calls that are not repeated: what they have sent must not arrive after calls that begin a round trip later.
   */
  async learn(redis: Redis): Promise<void> {
    const [info, id] = await Promise.all([redis.info('server'), redis.call('CLIENT', 'ID')])
    const runId = runIdIn(info)
    if (runId === undefined) return
    this.#watch(redis, { runId, id: asInteger(id) })
    const here = this.#brokenAt(runId)
    const [first] = here
    // alone: a user who may not end one may end none
    if (first === undefined || (await kill(redis, first.id)) instanceof Error) return
    this.#broken.delete(first)
    await this.#endAll(redis, here.slice(1))
  }

  /**
   * Ends the broken connections to the server of `redis`, before `redis` is used, or used for a repetition; `info` is the server's INFO, if
   * known. Resolves with whether all of them were ended.
   */
  async end(redis: Redis, info: string | undefined): Promise<boolean> {
    const runId = runIdIn(info)
    const here = this.#brokenAt(runId)
    const [id, ...killed] = await Promise.all([
      redis.call('CLIENT', 'ID').catch(orRefusal),
      kill(redis, NO_CONNECTION),
      ...here.map((each) => kill(redis, each.id)),
    ])
    // the next connection may have the right that is missing here
    const isRefused = runId === undefined || [id, ...killed].some((reply) => reply instanceof Error)
    this.#isRefused = isRefused
    if (!isRefused) for (const each of here) this.#broken.delete(each)
    if (runId !== undefined && !(id instanceof Error)) this.#watch(redis, { runId, id: asInteger(id) })
    else this.note(redis)
    return !isRefused
  }

  /** As `end`, for connections that never repeat commands: forgets a connection that the server refuses to end. */
  async endAllowed(redis: Redis, { id, info }: Identity): Promise<void> {
    const runId = runIdIn(info)
    if (runId === undefined) return
    this.#watch(redis, { runId, id })
    await this.#endAll(redis, this.#brokenAt(runId))
  }

  /** Ends these connections, and forgets them, also if the server refuses to end them. */
  async #endAll(redis: Redis, broken: readonly Known[]): Promise<void> {
    await Promise.all(broken.map((each) => kill(redis, each.id)))
    for (const each of broken) this.#broken.delete(each)
  }

  /** Notes when the connection breaks, unless its id is known by then. */
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
    noteRunId(redis, known.runId)
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
