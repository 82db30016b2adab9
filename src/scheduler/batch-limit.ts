import type { Clock } from '../timing/clock.js'

/** How long one script should run. */
const TARGET_MS = 2
const FIRST = 100
const LEAST = 10
const MOST = 10_000
/** How fast the limit may change from one script to the next. */
const STEP = 4
/** How long the quickest reply counts: the network can become slower. */
const MEASURED_MS = 60_000

/**
 * How many entries one transfer may move. Where scripts can measure time, the script itself stops in time and the limit has no effect. On
 * Redis 7.2 and Valkey 7.2 they cannot, and the limit follows the duration of the last scripts: the time until their replies less that of
 * the quickest reply. Every minute a transfer of one entry measures that anew: the script's own time counts as the network's in its reply.
 */
export class BatchLimit {
  readonly #clock: Pick<Clock, 'now'>
  #limit = FIRST
  #quickest = Infinity
  #measuredAt: number
  /** The limit after the measurement that is under way. */
  #later: number | undefined

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
    this.#measuredAt = clock.now()
  }

  get value(): number {
    return this.#limit
  }

  observe(reply: { readonly moved: number; readonly workedUs: number }, roundTripMs: number): void {
    if (reply.workedUs > 0) {
      this.#limit = MOST
      return
    }
    const now = this.#clock.now()
    if (now - this.#measuredAt >= MEASURED_MS) {
      this.#measuredAt = now
      this.#quickest = Infinity
      this.#later = this.#limit
      this.#limit = 1
      return
    }
    this.#limit = this.#later ?? this.#limit
    this.#later = undefined
    this.#quickest = Math.min(this.#quickest, roundTripMs)
    const worked = Math.max(roundTripMs - this.#quickest, TARGET_MS / STEP)
    const isFull = reply.moved >= this.#limit
    if (!isFull && worked <= TARGET_MS) return
    const factor = Math.min(STEP, Math.max(1 / STEP, TARGET_MS / worked))
    this.#limit = Math.min(MOST, Math.max(LEAST, Math.round(this.#limit * factor)))
  }
}
