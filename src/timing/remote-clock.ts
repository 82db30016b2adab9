import type { Clock } from './clock.js'

/** Dates in milliseconds are doubles with steps of 0.00024: a bound that is missed by so little is met. */
const ROUNDING_MS = 0.01

/**
 * Estimates the Redis clock from the times in script replies. The script ran between sending and reading, so each reply
 * bounds the offset between the two clocks from both sides. Within the bounds the estimate is kept; outside them (drift,
 * or a clock that was set) it moves to the lower bound, which lets a timer fire a little late rather than early.
 */
export class RemoteClock {
  readonly #clock: Clock
  #offset: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A reply that carries `remoteNow`, to a request sent at the local time `sentAt`, has just been read. */
  observe(remoteNow: number, sentAt: number): void {
    const lower = remoteNow - this.#clock.now()
    const upper = remoteNow - sentAt
    const offset = this.#offset
    if (offset === undefined || offset < lower - ROUNDING_MS || offset > upper + ROUNDING_MS) this.#offset = lower
  }

  /** The moment on the local clock at which the remote clock shows `remoteTime`; now, when nothing was observed yet. */
  toLocal(remoteTime: number): number {
    return this.#offset === undefined ? this.#clock.now() : remoteTime - this.#offset
  }
}
