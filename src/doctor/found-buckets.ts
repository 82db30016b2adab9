/** The minutes that one script examines. */
export const PAGE = 500
/** Clients deliver no message that is overdue by more than 365 days at once, so an older minute is rather a name that another program gave to a bucket. */
const OLDEST_MS = 365 * 24 * 3_600_000
const MINUTE_MS = 60_000
/** The most pages of minutes, and keys that are none, to remember of a queue: another program can have written any number. */
const MOST_PAGES = 10_000
const MOST_MISNAMED = 1_000

/** The keys of a queue's buckets that the search for queues has met: only it finds those of any minute. */
export class FoundBuckets {
  readonly #pages = new Set<number>()
  readonly #misnamed = new Set<string>()
  readonly #oldest: number

  constructor(now = Date.now()) {
    this.#oldest = Math.floor((now - OLDEST_MS) / MINUTE_MS)
  }

  /** `minute`: `null` if the key has a name that scripts do not write. */
  add(key: string, minute: number | null): void {
    if (minute === null || minute < this.#oldest) {
      if (this.#misnamed.size < MOST_MISNAMED) this.#misnamed.add(key)
    } else if (this.#pages.size < MOST_PAGES) this.#pages.add(Math.floor(minute / PAGE))
  }

  /** The first minutes of pages that have a bucket, in order. */
  get pages(): number[] {
    return [...this.#pages].sort((a, b) => a - b).map((page) => page * PAGE)
  }

  /** Keys that no client reads, at most `MOST_MISNAMED`. */
  get misnamed(): readonly string[] {
    return [...this.#misnamed]
  }
}
