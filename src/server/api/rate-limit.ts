/** So many a second for each key, and as many at once after a pause: a bucket for each that fills by itself. */
export class RateLimit {
  readonly #perSecond: number
  readonly #buckets = new Map<string, { tokens: number; at: number }>()

  /** 0: no limit. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** Seconds until there is room again; 0 when the request may go on. */
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
