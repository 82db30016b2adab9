import type { Clock } from '../../timing/clock.js'

/** What was seen is forgotten when no connection has led elsewhere for this long; the first truce ends after as long a quiet. */
export const QUIET_MS = 60_000
/** The number of observations that show that several servers take turns. A single failover causes one at most. */
const ENOUGH = 2

/** The evidence of several servers behind an address: a connection leads back to a server that the client has left, or to a third one. */
export class ServerTurns {
  readonly #clock: Pick<Clock, 'now'>
  /** The servers to which connections led in the last minute while the client had connections to another server. */
  readonly #seen = new Set<string>()
  /** Those that have counted since the last change of the server: each counts once, however many connections lead there. */
  readonly #counted = new Set<string>()
  #evidence = 0
  #strayedAt = -Infinity

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** When a connection last led elsewhere. */
  get strayedAt(): number {
    return this.#strayedAt
  }

  /** Whether servers take turns. */
  get areSeen(): boolean {
    return this.#evidence >= ENOUGH
  }

  /** Whether no connection has led elsewhere for so long that what was seen no longer counts. */
  get areOver(): boolean {
    return this.#clock.now() - this.#strayedAt > QUIET_MS
  }

  /** A connection leads elsewhere. Unlike `note`, also during a truce. */
  stray(): void {
    this.#strayedAt = this.#clock.now()
  }

  /** Notes that a connection leads to another server than `current`. True for the observation that completes the evidence. */
  note(runId: string, current: string): boolean {
    this.#seen.add(current)
    const isBack = this.#seen.has(runId)
    this.#seen.add(runId)
    if (this.#counted.has(runId)) return false
    this.#counted.add(runId)
    if (!isBack && this.#seen.size <= 2) return false
    return ++this.#evidence === ENOUGH
  }

  /** The client uses another server from now on. */
  onMoved(): void {
    this.#counted.clear()
  }

  forget(): void {
    this.#seen.clear()
    this.#counted.clear()
    this.#evidence = 0
  }
}
