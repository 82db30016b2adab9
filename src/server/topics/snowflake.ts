/** Ids have 63 bits: 41 for the time, 10 for the worker, 12 for a counter. They are texts, because a JSON number has 53 bits. */
export const WORKERS = 1_024
const SEQUENCE_BITS = 12n
const WORKER_BITS = 10n
const MOST_IN_A_MS = 4_096
/** The epoch of the first snowflakes, 2010-11-04: from 2015 to the end in 2080 ids have 19 digits, so they sort as texts too. */
export const SNOWFLAKE_EPOCH = 1_288_834_974_657

/** A worker number and the range of times for which it may draw ids, epoch milliseconds. */
export interface Worker {
  readonly number: number
  readonly from: number
  readonly upTo: number
}

/** Draws rising ids, even when the clock goes back. */
export class Snowflake {
  #ms = 0
  #count = 0

  /** The time of the last id, epoch milliseconds. */
  get reach(): number {
    return this.#ms
  }

  /** `undefined`: the worker's times are used up. */
  draw({ number, from, upTo }: Worker, now: number): string | undefined {
    let ms = Math.max(Math.floor(now), from, this.#ms)
    let count = ms > this.#ms ? 0 : this.#count + 1
    if (count === MOST_IN_A_MS) [ms, count] = [ms + 1, 0]
    if (ms > upTo) return undefined
    this.#ms = ms
    this.#count = count
    const time = BigInt(ms - SNOWFLAKE_EPOCH) << (WORKER_BITS + SEQUENCE_BITS)
    return String(time | (BigInt(number) << SEQUENCE_BITS) | BigInt(count))
  }
}
