/** The share of its time that a process gives to fine waits, and the most that it saves up for later ones. */
const SHARE = 0.02
const MOST_MS = 20

/**
 * Limits the fine waits of a process. A timer of Node counts whole milliseconds; a fine wait takes the rest: it lets turns of the event loop pass until
 * the moment has come. The process does everything else meanwhile, but its processor does not rest.
 */
export class FineWaits {
  readonly #clock: { now(): number }
  #leftMs = MOST_MS
  #countedAt: number

  constructor(clock: { now(): number }) {
    this.#clock = clock
    this.#countedAt = clock.now()
  }

  get areAllowed(): boolean {
    const now = this.#clock.now()
    this.#leftMs = Math.min(MOST_MS, this.#leftMs + (now - this.#countedAt) * SHARE)
    this.#countedAt = now
    return this.#leftMs > 0
  }

  spend(ms: number): void {
    this.#leftMs -= ms
  }
}
