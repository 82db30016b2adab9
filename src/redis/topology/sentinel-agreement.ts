/** After a sentinel has named another master than before, the others learn of it one after the other, within some two seconds. */
const LAG_MS = 3_000
/**
 * The longest time between two closings of connections that lead elsewhere again and again: the master can have an address that the
 * sentinels do not know.
 */
const MOST_APART_MS = 600_000
/** So many closings in a row are worth a warning. */
const WARNED_OF = 2
/** The most masters whose closings are counted. */
const MOST_MASTERS = 8

/**
 * Which master the sentinels name when they are asked again and again: all that can be reached, at least two and more than half of those
 * configured, each in its last two answers. One alone does not count, because it can be cut off from the others.
 */
export class SentinelAgreement<S> {
  readonly #count: number
  readonly #intervalMs: number
  #answers = new Map<S, { readonly master: string; readonly times: number }>()
  /** By the monotonic clock. */
  #lagsUntil = -Infinity
  /** How often in a row connections led elsewhere than to a master, and until when they are left alone. */
  readonly #closings = new Map<string, { readonly count: number; readonly restsUntil: number }>()

  /** `count`: of the configured sentinels; each is asked once in `intervalMs`. */
  constructor(count: number, intervalMs: number) {
    this.#count = count
    this.#intervalMs = intervalMs
  }

  answered(sentinel: S, master: string, now: number): void {
    const before = this.#answers.get(sentinel)
    if (before !== undefined && before.master !== master) this.#lagsUntil = now + LAG_MS
    const times = now < this.#lagsUntil ? 0 : before?.master === master ? before.times + 1 : 1
    this.#answers.set(sentinel, { master, times })
  }

  /** The sentinel cannot be reached, or names no master. */
  forget(sentinel: S): void {
    this.#answers.delete(sentinel)
  }

  /** A sentinel has announced another master than before: the other answers can be outdated. */
  moved(sentinel: S, master: string, now: number): void {
    this.#answers = new Map([[sentinel, { master, times: 0 }]])
    this.#lagsUntil = now + LAG_MS
  }

  /** Whether the sentinels name this master. */
  agreesOn(master: string, now: number): boolean {
    const answers = [...this.#answers.values()]
    const isAgreed = answers.every((each) => each.master === master && each.times >= 2)
    const isEnough = answers.length >= 2 && answers.length * 2 > this.#count
    return isAgreed && isEnough && now >= this.#lagsUntil
  }

  /** Whether connections that lead elsewhere than to the master are left alone for now, because they have led there again and again. */
  rests(master: string, now: number): boolean {
    return now < (this.#closings.get(master)?.restsUntil ?? now)
  }

  /** All connections lead to the master. */
  matched(master: string): void {
    this.#closings.delete(master)
  }

  /** Connections that led elsewhere than to the master were closed. Returns whether to warn that this happens again and again. */
  closed(master: string, now: number): boolean {
    const count = (this.#closings.get(master)?.count ?? 0) + 1
    this.#closings.delete(master) // so that it is the newest
    this.#closings.set(master, { count, restsUntil: now + Math.min(this.#intervalMs * 2 ** count, MOST_APART_MS) })
    for (const oldest of this.#closings.keys()) if (this.#closings.size > MOST_MASTERS) this.#closings.delete(oldest)
    return count === WARNED_OF
  }
}
