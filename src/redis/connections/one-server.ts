import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import { noteRunId } from './predecessors.js'

/** For this long after a change of the server, the client refuses connections that lead elsewhere, instead of following them. */
const SETTLE_MS = 5_000
/** After this many connections that led elsewhere, each within `QUIET_MS` of the one before, the client stops comparing servers for `IGNORE_MS`. */
const MOST_STRAYS = 20
const QUIET_MS = 60_000
const IGNORE_MS = 3_600_000

interface OneServerParams {
  /** The address, for errors. */
  readonly address: string
  /** The monotonic clock. */
  readonly now: () => number
  /** The connections to other servers than `runId` have to be replaced. */
  readonly onMoved: () => void
  /** Connections to the address reach several servers in turns. */
  readonly onMixed: (message: string) => void
}

/**
 * The server process of all connections of a client that are meant for one master. An address can lead to another server than before, while the old one
 * lives on and keeps its connections: a wait at one server would never get what calls add at the other one. So all connections follow the newest one, but only
 * once in a while: behind a balancer of several servers each new connection can lead elsewhere.
 */
export class OneServer {
  readonly #params: OneServerParams
  readonly #open = new Map<Redis, string>()
  #runId: string | undefined
  #movedAt = -Infinity
  #strays = 0
  #strayedAt = -Infinity
  #warnedAt = -Infinity
  #ignoredUntil = -Infinity

  constructor(params: OneServerParams) {
    this.#params = params
  }

  /** The server process of the newest connection. */
  get runId(): string | undefined {
    return this.#runId
  }

  /** The connection for commands has been opened: calls must not wait for a connection, so the other ones follow it. */
  lead(redis: Redis, runId: string | undefined): void {
    if (runId === undefined) return
    const isElsewhere = this.#isElsewhere(runId)
    if (isElsewhere && this.#isUsed()) this.#stray()
    this.#enter(redis, runId, isElsewhere)
  }

  /**
   * Another connection has been opened.
   * @throws {ConnectionError} it leads to another server than the others, so soon after a change that they do not follow
   */
  join(redis: Redis, runId: string | undefined): void {
    if (runId === undefined) return
    const isElsewhere = this.#isElsewhere(runId)
    if (isElsewhere && this.#isUsed()) {
      this.#stray()
      if (!this.#isIgnored && this.#params.now() - this.#movedAt < SETTLE_MS) throw this.#refusal()
    }
    this.#enter(redis, runId, isElsewhere)
  }

  #enter(redis: Redis, runId: string, isElsewhere: boolean): void {
    const hasMoved = isElsewhere && !this.#isIgnored
    if (hasMoved && this.#isUsed()) this.#movedAt = this.#params.now()
    this.#runId = runId
    noteRunId(redis, runId)
    if (redis.status !== 'end') {
      if (!this.#open.has(redis)) redis.once('end', () => this.#open.delete(redis))
      this.#open.set(redis, runId)
    }
    if (hasMoved) this.#params.onMoved()
  }

  #isElsewhere(runId: string): boolean {
    return this.#runId !== undefined && this.#runId !== runId
  }

  /** Whether connections to the server are open: otherwise it has been restarted, or another one has replaced it for good. */
  #isUsed(): boolean {
    return [...this.#open.values()].includes(this.#runId ?? '')
  }

  get #isIgnored(): boolean {
    return this.#params.now() < this.#ignoredUntil
  }

  /** Counts a connection that leads elsewhere. */
  #stray(): void {
    const now = this.#params.now()
    if (now - this.#strayedAt > QUIET_MS) this.#strays = 0
    this.#strayedAt = now
    if (++this.#strays <= MOST_STRAYS || this.#isIgnored) return
    this.#strays = 0
    this.#ignoredUntil = now + IGNORE_MS
    this.#warn(now, 'the client uses all of them for an hour, so that takes and announcements can miss messages')
  }

  #refusal(): ConnectionError {
    const now = this.#params.now()
    if (now - this.#warnedAt > QUIET_MS) this.#warn(now, 'the client keeps its connections at one of them')
    return new ConnectionError(
      `${this.#params.address} leads to another server than the other connections`,
      'not-applied',
    )
  }

  #warn(now: number, what: string): void {
    this.#warnedAt = now
    const { address, onMixed } = this.#params
    onMixed(
      `connections to ${address} reach different servers in turns, each with data of its own: ${what}. Let the address lead to one server`,
    )
  }
}
