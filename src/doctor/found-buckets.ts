/** The minutes that one script examines. */
export const PAGE = 500
/** The most pages of minutes, and keys that are none, to remember of a queue: another program can have written any number. */
const MOST_PAGES = 10_000
export const MOST_MISNAMED = 1_000

/** The keys of a queue's buckets that the search for queues has met: only it finds those of any minute. */
export class FoundBuckets {
  readonly #pages = new Set<number>()
  readonly #misnamed = new Set<string>()
  #isCut = false

  /** `minute`: `null` if the key has a name that scripts do not write. */
  add(key: string, minute: number | null): void {
    if (minute === null) {
      this.#remember(this.#misnamed, key, MOST_MISNAMED)
    } else {
      this.#remember(this.#pages, Math.floor(minute / PAGE), MOST_PAGES)
    }
  }

  #remember<T>(set: Set<T>, item: T, most: number): void {
    if (set.size < most) set.add(item)
    else this.#isCut ||= !set.has(item)
  }

  /** The first minutes of pages that have a bucket, in order. */
  get pages(): number[] {
    return [...this.#pages].sort((a, b) => a - b).map((page) => page * PAGE)
  }

  /** The search has met more pages, or more keys that are no minutes, than this remembers. */
  get isCut(): boolean {
    return this.#isCut
  }

  /** Keys that no client reads, at most `MOST_MISNAMED`. */
  get misnamed(): readonly string[] {
    return [...this.#misnamed]
  }
}
