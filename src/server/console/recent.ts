interface Limits {
  /** So long after its end a result is given again. */
  readonly freshMs: number
  /** So many results are kept. */
  readonly most: number
}

interface Kept<T> {
  readonly result: Promise<T>
  endedAt: number | undefined
}

/** Results that are expensive to get, by their keys: one that is under way or fresh is given again. A failure is not kept. */
export class Recent<T> {
  readonly #limits: Limits
  readonly #kept = new Map<string, Kept<T>>()

  constructor(limits: Limits) {
    this.#limits = limits
  }

  get(key: string, make: () => Promise<T>): Promise<T> {
    const before = this.#kept.get(key)
    if (
      before !== undefined &&
      (before.endedAt === undefined || performance.now() - before.endedAt < this.#limits.freshMs)
    )
      return before.result
    const kept: Kept<T> = { result: make(), endedAt: undefined }
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > this.#limits.most && oldest !== undefined) this.#kept.delete(oldest)
    kept.result.then(
      () => (kept.endedAt = performance.now()),
      () => {
        if (this.#kept.get(key) === kept) this.#kept.delete(key)
      },
    )
    return kept.result
  }
}
