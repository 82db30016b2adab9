import type { Clock } from '../timing/clock.js'

/** What one client may spend on sweeps, so that thousands of queues cost the server no more than this. */
const MAX_SWEEPS_PER_SECOND = 300
const MIN_TICK_MS = 50

/**
 * Calls every member of a collection in turn, each about once per `interval`; with so many members that this would exceed
 * the rate limit, less often. One timer serves all of them, and its ticks are jittered so that clients do not march in step.
 */
export class Sweeper<T> {
  readonly #members: ReadonlyMap<unknown, T>
  readonly #interval: number
  readonly #sweep: (member: T) => void
  readonly #clock: Clock
  readonly #random: () => number
  #round: Iterator<T> | undefined
  #handle: unknown

  constructor(params: {
    members: ReadonlyMap<unknown, T>
    interval: number
    sweep: (member: T) => void
    clock: Clock
    random: () => number
  }) {
    this.#members = params.members
    this.#interval = params.interval
    this.#sweep = params.sweep
    this.#clock = params.clock
    this.#random = params.random
  }

  /** Starts when there is something to sweep; calling it again changes nothing. */
  start(): void {
    if (this.#handle === undefined) this.#schedule()
  }

  stop(): void {
    if (this.#handle !== undefined) this.#clock.clearTimeout(this.#handle)
    this.#handle = this.#round = undefined
  }

  #schedule(): void {
    const count = Math.max(1, this.#members.size)
    const period = Math.max(this.#interval, (count / MAX_SWEEPS_PER_SECOND) * 1000)
    const batch = Math.ceil((MIN_TICK_MS * count) / period)
    const tick = (batch * period) / count
    this.#handle = this.#clock.setTimeout(() => this.#tick(batch), tick * (0.8 + 0.4 * this.#random()))
  }

  #tick(batch: number): void {
    this.#handle = undefined
    for (let left = Math.min(batch, this.#members.size); left > 0; left--) {
      const member = this.#next()
      if (member === undefined) break
      this.#sweep(member)
    }
    if (this.#members.size > 0) this.#schedule()
  }

  /** The next member of the round; a round that is over is followed by another without a pause. */
  #next(): T | undefined {
    const going = this.#round?.next()
    if (going?.done === false) return going.value
    this.#round = this.#members.values()
    const first = this.#round.next()
    return first.done === true ? undefined : first.value
  }
}
