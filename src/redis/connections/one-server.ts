import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import { backgroundClock, type Clock } from '../../timing/clock.js'
import { noteRunId } from './predecessors.js'

/** For this long after a change of the server, the client refuses connections that lead elsewhere, instead of following them. */
const SETTLE_MS = 5_000
/** What was seen is forgotten when no connection has led elsewhere for this long. */
const QUIET_MS = 60_000
/** The number of observations that show that several servers take turns. A single failover causes one at most. */
const ENOUGH = 2
/**
 * While servers take turns: after more than this many refused connections in a row the client follows the server to which all of them led.
 * If they led to several, or after more than `MOST_MOVES` moves of the connection for commands, it stops comparing the servers.
 */
const MOST_REFUSED = 15
const MOST_MOVES = 5
/**
 * How often the client follows a server in this way without a quiet minute: a balancer of two servers can send all new connections to the
 * one that has fewer.
 */
const MOST_FOLLOWS = 1
/**
 * The client then compares them again when no connection has led elsewhere for `QUIET_MS`, or after this time in any case. If it stops
 * comparing within this time again, the quiet must last twice as long.
 */
const IGNORE_MS = 3_600_000

interface OneServerParams {
  /** The address, for errors. */
  readonly address: string
  /** The connections to other servers than `runId` have to be replaced. */
  readonly onMoved: () => void
  /** Connections to the address reach several servers in turns. */
  readonly onMixed: (message: string) => void
  /** Its time is monotonic. */
  readonly clock?: Clock
}

/**
 * The server process of all connections of a client that are meant for one master. An address can lead to another server than before, while
 * the old one lives on and keeps its connections: a wait at one server would never get what calls add at the other one. So all connections
 * follow the newest one, until servers that come back after they were left show that a balancer leads to several in turns: then they stay
 * at one. See decision 0048.
 */
export class OneServer {
  readonly #params: OneServerParams
  readonly #clock: Clock
  readonly #open = new Map<Redis, string>()
  #runId: string | undefined
  #movedAt = -Infinity
  /** The servers to which connections led in the last minute while the client had connections to another server. */
  readonly #seen = new Set<string>()
  /** Those that have counted since the last change of the server: each counts once, however many connections lead there. */
  readonly #counted = new Set<string>()
  #evidence = 0
  #refused = 0
  readonly #refusedTo = new Set<string>()
  #moves = 0
  #follows = 0
  #strayedAt = -Infinity
  #warnedAt = -Infinity
  #isIgnored = false
  #ignoredAt = -Infinity
  #comparedAgainAt = -Infinity
  #quietMs = QUIET_MS
  #timer: unknown
  #isClosed = false

  constructor(params: OneServerParams) {
    this.#params = params
    this.#clock = params.clock ?? backgroundClock
  }

  /** The server process of the newest connection. */
  get runId(): string | undefined {
    return this.#runId
  }

  /** The connection for commands has been opened: calls must not wait for a connection, so the other ones follow it. */
  lead(redis: Redis, runId: string | undefined): void {
    if (runId === undefined) return
    const isElsewhere = this.#isElsewhere(runId)
    if (isElsewhere && this.#isUsed()) {
      this.#stray(runId)
      if (this.#isMixed && ++this.#moves > MOST_MOVES) this.#ignore()
    }
    this.#enter(redis, runId, isElsewhere)
  }

  /**
   * Another connection has been opened.
   * @throws {ConnectionError} it leads to another server than the others, which do not follow it: so soon after a change, or because
   *   servers take turns
   */
  join(redis: Redis, runId: string | undefined): void {
    if (runId === undefined) return
    const isElsewhere = this.#isElsewhere(runId)
    if (isElsewhere && this.#isUsed()) {
      this.#stray(runId)
      if (this.#isMixed && this.#isRefusedTooOften(runId)) {
        if (this.#refusedTo.size > 1 || ++this.#follows > MOST_FOLLOWS) this.#ignore()
        else this.#forgetTurns()
      }
      const isSettling = this.#isMixed || this.#clock.now() - this.#movedAt < SETTLE_MS
      if (isSettling && !this.#isIgnored) throw this.#refusal()
    }
    this.#enter(redis, runId, isElsewhere)
  }

  close(): void {
    this.#isClosed = true
    this.#clock.clearTimeout(this.#timer)
  }

  #enter(redis: Redis, runId: string, isElsewhere: boolean): void {
    const hasMoved = isElsewhere && !this.#isIgnored
    if (hasMoved && this.#isUsed()) {
      this.#movedAt = this.#clock.now()
      this.#counted.clear()
    }
    this.#refused = 0
    this.#refusedTo.clear()
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

  get #isMixed(): boolean {
    return this.#evidence >= ENOUGH
  }

  /** Notes a connection that leads elsewhere. A server that comes back after it was left is evidence, and so is each one beyond two. */
  #stray(runId: string): void {
    const now = this.#clock.now()
    if (now - this.#strayedAt > QUIET_MS) this.#forget()
    this.#strayedAt = now
    if (this.#isIgnored) return
    this.#seen.add(this.#runId ?? '')
    const isBack = this.#seen.has(runId)
    this.#seen.add(runId)
    if (this.#counted.has(runId)) return
    this.#counted.add(runId)
    if (!isBack && this.#seen.size <= 2) return
    if (++this.#evidence !== ENOUGH || now - this.#warnedAt < IGNORE_MS) return
    this.#warnedAt = now
    this.#warn('the client keeps its connections at one of them')
  }

  #isRefusedTooOften(runId: string): boolean {
    this.#refusedTo.add(runId)
    return ++this.#refused > MOST_REFUSED
  }

  #ignore(): void {
    const now = this.#clock.now()
    this.#quietMs = now - this.#comparedAgainAt < IGNORE_MS ? Math.min(2 * this.#quietMs, IGNORE_MS) : QUIET_MS
    this.#isIgnored = true
    this.#ignoredAt = now
    this.#forget()
    this.#endIgnoring()
    this.#warn('the client uses all of them for up to an hour, so that takes and announcements can miss messages')
  }

  /** Compares the servers again as soon as the turns are over. The other connections then follow the newest one. */
  #endIgnoring(): void {
    if (this.#isClosed) return
    const now = this.#clock.now()
    const endsAt = Math.min(this.#strayedAt + this.#quietMs, this.#ignoredAt + IGNORE_MS)
    if (now < endsAt) {
      this.#timer = this.#clock.setTimeout(() => this.#endIgnoring(), endsAt - now)
      return
    }
    this.#isIgnored = false
    this.#comparedAgainAt = now
    if (!this.#isUsed()) this.#runId = [...this.#open.values()].at(-1) ?? this.#runId // the newest one may have ended
    if ([...this.#open.values()].some((runId) => runId !== this.#runId)) this.#params.onMoved()
  }

  #forget(): void {
    this.#forgetTurns()
    this.#moves = this.#follows = 0
  }

  #forgetTurns(): void {
    this.#seen.clear()
    this.#counted.clear()
    this.#refusedTo.clear()
    this.#evidence = this.#refused = 0
  }

  #refusal(): ConnectionError {
    return new ConnectionError(
      `${this.#params.address} leads to another server than the other connections`,
      'not-applied',
    )
  }

  #warn(what: string): void {
    const { address, onMixed } = this.#params
    onMixed(
      `connections to ${address} reach different servers in turns, each with data of its own: ${what}. Let the address lead to one server`,
    )
  }
}
