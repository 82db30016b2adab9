/** The minutes that one script examines. */
export const PAGE = 500
/** The most pages of minutes, and keys that are none, to remember of a queue: another program can have written any number. */
const MOST_PAGES = 10_000
export const MOST_MISNAMED = 1_000
/** A name can have 512 MB. */
const MOST_BYTES = 8 * 1_024 * 1_024

/** The keys of a queue's buckets that the search for queues has met: only it finds those of any minute. */
export class FoundBuckets {
  readonly #pages = new Set<number>()
  /** By their bytes as text: names can be no UTF-8. */
  readonly #misnamed = new Map<string, Buffer>()
  #bytes = 0
  #isCut = false

  /** `minute`: `null` if the key has a name that scripts do not write. */
  add(key: Buffer, minute: number | null): void {
    if (minute !== null) {
      const page = Math.floor(minute / PAGE)
      if (this.#pages.size < MOST_PAGES) this.#pages.add(page)
      else this.#isCut ||= !this.#pages.has(page)
      return
    }
    const text = key.toString('latin1')
    if (this.#misnamed.has(text)) return
    if (this.#misnamed.size === MOST_MISNAMED || this.#bytes + key.length > MOST_BYTES) this.#isCut = true
    else {
      this.#misnamed.set(text, key)
      this.#bytes += key.length
    }
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
  get misnamed(): readonly Buffer[] {
    return [...this.#misnamed.values()]
  }
}
