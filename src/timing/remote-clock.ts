import type { Clock } from './clock.js'

/** The tolerance for comparisons: dates in milliseconds are doubles with steps of 0.00024. */
const ROUNDING_MS = 0.01

/**
 * Estimates the Redis clock from the times in script replies, as seen by a sender: the question is always when a command
 * has to leave so that it runs at a given time. A reply shows that a command sent at `sentAt` ran at `remoteNow`; the
 * fastest such command is kept, so what leaves at the estimated moment arrives at that time or a little later, never
 * earlier. A reply that contradicts the estimate (drift, or a clock that was set) replaces it.
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
    if (offset === undefined || offset < lower - ROUNDING_MS || offset > upper + ROUNDING_MS) this.#offset = upper
  }

  /** The remote time at which a command sent at `localTime` runs; `undefined` before the first reply. */
  toRemote(localTime: number): number | undefined {
    return this.#offset === undefined ? undefined : localTime + this.#offset
  }

  /** The local time at which to send a command that is to run at `remoteTime`; now, before the first reply. */
  toLocal(remoteTime: number): number {
    return this.#offset === undefined ? this.#clock.now() : remoteTime - this.#offset
  }
}
