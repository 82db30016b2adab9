interface Limits {
  /** So long after its end a result is given again. */
  readonly freshMs: number
  /** So many results are kept. */
  readonly most: number
}

/** Results that are expensive to get, by their keys: one that is under way or fresh is given again. What is no longer fresh, and a failure, is not kept. */
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
