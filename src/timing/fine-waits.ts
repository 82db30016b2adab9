/** The share of the time that fine waits may take, and the most that is saved up for later ones. */
const SHARE = 0.02
const MOST_MS = 20

/** What a turn of the event loop counts at most, because a longer one did other work, and at least, in case the clock stands still. */
const LONGEST_TURN_MS = 1
const SHORTEST_TURN_MS = 0.001

/** A timer for the whole milliseconds of a wait leaves about this at most, which a fine wait takes. */
export const LONGEST_FINE_WAIT_MS = 1.2

interface FineWait {
  readonly until: number
  readonly end: () => void
}

/**
 * A timer of Node counts whole milliseconds; a fine wait takes the rest: it lets turns of the event loop pass until the moment has come.
 * The process does everything else meanwhile, but its processor does not rest, so all waits together take at most a share of the time.
 */
export class FineWaits {
  readonly #clock: { now(): number }
  readonly #waits = new Set<FineWait>()
  #turn: NodeJS.Immediate | undefined
  #leftMs = MOST_MS
  #countedAt: number

  constructor(clock: { now(): number }) {
    this.#clock = clock
    this.#countedAt = clock.now()
  }

  /** Whether enough time is left for a whole wait, but for the turn under way: one that ended early would cost more than it gives. */
  get areAllowed(): boolean {
    const now = this.#clock.now()
    this.#leftMs = Math.min(MOST_MS, this.#leftMs + Math.max(0, now - this.#countedAt) * SHARE)
    this.#countedAt = now
    return this.#leftMs >= LONGEST_FINE_WAIT_MS
  }

  /**
   * Calls `end` once at the moment `until`, earlier where the time is spent or the clock stands still, and not after the returned function
   * is called.
   */
  begin(until: number, end: () => void): () => void {
    const wait = { until, end }
    this.#waits.add(wait)
    if (this.#turn === undefined) this.#letTurnPass()
    return () => {
      if (!this.#waits.delete(wait) || this.#waits.size > 0) return
      clearImmediate(this.#turn)
      this.#turn = undefined
    }
  }

  #letTurnPass(): void {
    const since = this.#clock.now()
    this.#turn = setImmediate(() => {
      this.#turn = undefined
      const now = this.#clock.now()
      this.#leftMs -= Math.max(SHORTEST_TURN_MS, Math.min(now - since, LONGEST_TURN_MS))
      try {
        for (const wait of this.#waits) {
          if (now < wait.until && this.#leftMs > 0) continue
          this.#waits.delete(wait)
          wait.end()
        }
      } finally {
        if (this.#waits.size > 0 && this.#turn === undefined) this.#letTurnPass()
      }
    })
  }
}
