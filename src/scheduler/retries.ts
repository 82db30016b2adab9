import type { Clock } from '../timing/clock.js'

/** The most retries a second of all queues of one client: as many as sweeps. */
const MAX_PER_SECOND = 300
const PERIOD_MS = 50
const PER_PERIOD = (MAX_PER_SECOND * PERIOD_MS) / 1_000

/**
 * Paces retries after failures: if a server refuses every script, each of thousands of queues would retry several times a second. The
 * first retry that succeeds releases all others.
 */
export class Retries {
  readonly #clock: Clock
  readonly #waiting = new Map<object, () => void>()
  #left = 0
  #periodEnd = -Infinity
  #handle: unknown

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when `owner` may retry; `undefined`: at once. */
  turn(owner: object): Promise<void> | undefined {
    const now = this.#clock.now()
    if (now >= this.#periodEnd) this.#begin(now)
    if (this.#waiting.size === 0 && this.#left > 0) {
      this.#left--
      return undefined
    }
    this.#handle ??= this.#clock.setTimeout(this.#tick, this.#periodEnd - now)
    return new Promise((resolve) => this.#waiting.set(owner, resolve))
  }

  /** Releases all waiting retries, because one has succeeded. */
  letAllGo(): void {
    for (const owner of [...this.#waiting.keys()]) this.leave(owner)
  }

  /** Ends the wait of `owner`; without effect if there is none. */
  leave(owner: object): void {
    const go = this.#waiting.get(owner)
    if (go === undefined) return
    this.#waiting.delete(owner)
    go()
    if (this.#waiting.size > 0) return
    this.#clock.clearTimeout(this.#handle)
    this.#handle = undefined
  }

  #begin(now: number): void {
    this.#periodEnd = now + PERIOD_MS
    this.#left = PER_PERIOD
  }

  readonly #tick = (): void => {
    this.#begin(this.#clock.now())
    this.#handle = this.#clock.setTimeout(this.#tick, PERIOD_MS)
    for (const owner of [...this.#waiting.keys()].slice(0, PER_PERIOD)) {
      this.#left--
      this.leave(owner)
    }
  }
}
