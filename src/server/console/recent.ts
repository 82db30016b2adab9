interface Limits {
  /** How long a finished result is reused. */
  readonly freshMs: number
  /** The most results that are kept. */
  readonly most: number
}

/** Caches expensive results by key: a call shares a result that is under way or fresh. Old results and failures are not kept. */
export class Recent<T> {
  readonly #limits: Limits
  readonly #kept = new Map<string, Promise<T>>()

  constructor(limits: Limits) {
    this.#limits = limits
  }

  get(key: string, make: () => Promise<T>): Promise<T> {
    const before = this.#kept.get(key)
    if (before !== undefined) return before
    const result = make()
    this.#kept.set(key, result)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > this.#limits.most && oldest !== undefined) this.#kept.delete(oldest)
    const forget = (): void => {
      if (this.#kept.get(key) === result) this.#kept.delete(key)
    }
    result.then(() => setTimeout(forget, this.#limits.freshMs).unref(), forget)
    return result
  }
}
