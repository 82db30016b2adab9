import type { Clock } from '../timing/clock.js'

/** A limit of `max` in any period of `perMs`. */
export class RateLimit {
  readonly #max: number
  readonly #perMs: number
  readonly #clock: Clock
  /** The times of the last ones, the oldest first. */
  #times: number[] = []

  constructor({ max, perMs }: { readonly max: number; readonly perMs: number }, clock: Clock) {
    this.#max = max
    this.#perMs = perMs
    this.#clock = clock
  }

  /** How many are allowed now. */
  get allowed(): number {
    const since = this.#clock.now() - this.#perMs
    if ((this.#times[0] ?? Infinity) <= since) this.#times = this.#times.filter((time) => time > since)
    return this.#max - this.#times.length
  }

  /** The milliseconds until one more is allowed; 0 for now. */
  get waitMs(): number {
    if (this.allowed > 0) return 0
    return Math.max(1, Math.ceil((this.#times[0] ?? 0) + this.#perMs - this.#clock.now()))
  }

  count(many: number): void {
    const now = this.#clock.now()
    for (let i = 0; i < many; i++) this.#times.push(now)
  }
}
