/** Limits the requests of each key to a number per second, and to as many at once after a pause: a token bucket for each key. */
export class RateLimit {
  readonly #perSecond: number
  readonly #buckets = new Map<string, { tokens: number; at: number }>()

  /** @param perSecond 0: no limit */
  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** Seconds until the next request is allowed; 0 if this one is. */
  take(key: string, now = performance.now()): number {
    if (this.#perSecond === 0) return 0
    const bucket = this.#buckets.get(key) ?? { tokens: this.#perSecond, at: now }
    this.#buckets.set(key, bucket)
    bucket.tokens = Math.min(this.#perSecond, bucket.tokens + ((now - bucket.at) / 1_000) * this.#perSecond)
    bucket.at = now
    if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / this.#perSecond)
    bucket.tokens -= 1
    return 0
  }
}
