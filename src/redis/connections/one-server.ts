import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import { backgroundClock, type Clock } from '../../timing/clock.js'
import { noteRunId } from './predecessors.js'
import { ServerTruce, TRUCE_MS } from './server-truce.js'
import { ServerTurns } from './server-turns.js'

/** For this long after a change of the server, the client refuses connections that lead elsewhere, instead of following them. */
const SETTLE_MS = 5_000
/**
 * While servers take turns: after more than this many refused connections in a row the client follows the server to which all of them led.
 * If they led to several, or after more than `MOST_MOVES` moves of the connection for commands, it begins a truce.
 */
const MOST_REFUSED = 15
const MOST_MOVES = 5
/**
 * How often the client follows a server in this way without a quiet minute: a balancer of two servers can send all new connections to the
 * one that has fewer.
 */
const MOST_FOLLOWS = 1
/** How long the client does not repeat its warning. */
const WARN_MS = TRUCE_MS

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
 * follow the newest one; where servers take turns behind the address the connections stay at one of them; during a truce all are used. See
 * decision 0048.
 */
export class OneServer {
  readonly #params: OneServerParams
  readonly #clock: Clock
  readonly #turns: ServerTurns
  readonly #truce: ServerTruce
  readonly #open = new Map<Redis, string>()
  /** The server that all connections follow; during a truce, the server of the newest connection. */
  #runId: string | undefined
  #movedAt = -Infinity
  #warnedAt = -Infinity
  /** The refused connections in a row, and where they led. */
  #refused = 0
  readonly #refusedTo = new Set<string>()
  /** How often the client moved and followed while servers took turns. */
  #moves = 0
  #follows = 0

  constructor(params: OneServerParams) {
    this.#params = params
    this.#clock = params.clock ?? backgroundClock
    this.#turns = new ServerTurns(this.#clock)
    this.#truce = new ServerTruce(
      this.#clock,
      () => this.#turns.strayedAt,
      () => this.#compare(),
    )
  }

  /** The server process of the newest connection. */
  get runId(): string | undefined {
    return this.#runId
  }

  /** The connection for commands has been opened: calls must not wait for a connection, so the other ones follow it. */
  lead(redis: Redis, runId: string | undefined): void {
    if (runId === undefined) return
    if (this.#leadsElsewhere(runId)) {
      this.#noteStray(runId)
      if (this.#turns.areSeen && ++this.#moves > MOST_MOVES) this.#beginTruce()
    }
    this.#enter(redis, runId)
  }

  /**
   * Another connection has been opened.
   * @throws {ConnectionError} it leads to another server than the others, which do not follow it: so soon after a change, or because
   *   servers take turns
   */
  join(redis: Redis, runId: string | undefined): void {
    if (runId === undefined) return
    if (this.#leadsElsewhere(runId)) {
      this.#noteStray(runId)
      if (this.#turns.areSeen && this.#isRefusedTooOften(runId)) {
        if (this.#refusedTo.size > 1 || ++this.#follows > MOST_FOLLOWS) this.#beginTruce()
        else this.#forgetTurns()
      }
      const isSettling = this.#turns.areSeen || this.#clock.now() - this.#movedAt < SETTLE_MS
      if (isSettling && !this.#truce.isOn) throw this.#refusal()
    }
    this.#enter(redis, runId)
  }

  close(): void {
    this.#truce.close()
  }

  #enter(redis: Redis, runId: string): void {
    const hasMoved = this.#runId !== undefined && this.#runId !== runId && !this.#truce.isOn
    if (hasMoved && this.#isUsed()) {
      this.#movedAt = this.#clock.now()
      this.#turns.onMoved()
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

  /** Whether a connection leads to another server while connections to the client's server are open. */
  #leadsElsewhere(runId: string): boolean {
    return this.#runId !== undefined && this.#runId !== runId && this.#isUsed()
  }

  /** Whether connections to the server are open: otherwise it has been restarted, or another one has replaced it for good. */
  #isUsed(): boolean {
    return [...this.#open.values()].includes(this.#runId ?? '')
  }

  /** Notes a connection that leads elsewhere, and warns as soon as servers are known to take turns. */
  #noteStray(runId: string): void {
    if (this.#turns.areOver) this.#forget()
    this.#turns.stray()
    if (this.#truce.isOn || !this.#turns.note(runId, this.#runId ?? '')) return
    const now = this.#clock.now()
    if (now - this.#warnedAt < WARN_MS) return
    this.#warnedAt = now
    this.#warn('the client keeps its connections at one of them')
  }

  #isRefusedTooOften(runId: string): boolean {
    this.#refusedTo.add(runId)
    return ++this.#refused > MOST_REFUSED
  }

  #beginTruce(): void {
    this.#forget()
    this.#truce.begin()
    this.#warn('the client uses all of them for up to an hour, so that takes and announcements can miss messages')
  }

  /** Compares the servers again after a truce. The other connections then follow the newest one. */
  #compare(): void {
    if (!this.#isUsed()) this.#runId = [...this.#open.values()].at(-1) ?? this.#runId // the newest one may have ended
    if ([...this.#open.values()].some((runId) => runId !== this.#runId)) this.#params.onMoved()
  }

  #forget(): void {
    this.#forgetTurns()
    this.#moves = this.#follows = 0
  }

  #forgetTurns(): void {
    this.#turns.forget()
    this.#refusedTo.clear()
    this.#refused = 0
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
