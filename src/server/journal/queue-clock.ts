/** A measurement that took longer does not replace a better one. */
const MOST_ROUND_TRIP_MS = 250
/** After this time without a better one, any measurement counts. */
const OLD_MS = 60_000

/** An estimate of the clock of Redis, never behind the real one, so that no message is due too early. */
export class QueueClock {
  readonly #ask: () => Promise<number>
  #ahead: number | undefined
  #measuredAt = 0

  constructor(ask: () => Promise<number>) {
    this.#ask = ask
  }

  /** Whether Redis has answered once. */
  get isKnown(): boolean {
    return this.#ahead !== undefined
  }

  async refresh(): Promise<void> {
    const before = performance.now()
    const answer = await this.#ask()
    const now = performance.now()
    const isLong = now - before > MOST_ROUND_TRIP_MS
    if (isLong && this.isKnown && now - this.#measuredAt < OLD_MS) return
    this.#ahead = answer - before
    this.#measuredAt = now
  }

  /** Epoch milliseconds; by this process's clock until Redis has answered once. */
  now(): number {
    return this.#ahead === undefined ? Date.now() : Math.ceil(performance.now() + this.#ahead)
  }
}
