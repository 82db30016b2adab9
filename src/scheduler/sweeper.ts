import type { Clock } from '../timing/clock.js'

/** The most sweeps a second of one client, so that thousands of queues do not load the server more. */
const MAX_SWEEPS_PER_SECOND = 300
const MIN_TICK_MS = 50

/**
 * Calls every member of a collection in turn, each about once per `interval`, or less often if that would exceed
 * the rate limit. One timer serves all members; its ticks are jittered so that clients do not sweep in step.
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

  /** Starts the sweeps; calling it again changes nothing. */
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

  /** The next member of the round; the next round follows without a pause. */
  #next(): T | undefined {
    const going = this.#round?.next()
    if (going?.done === false) return going.value
    this.#round = this.#members.values()
    const first = this.#round.next()
    return first.done === true ? undefined : first.value
  }
}
