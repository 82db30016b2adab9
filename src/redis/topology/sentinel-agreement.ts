/** After a sentinel has named another master than before, the others learn of it one after the other, within some two seconds. */
const LAG_MS = 3_000
/** The longest time between two closings of connections that lead elsewhere again and again: the master can have an address that the sentinels do not know. */
const MOST_APART_MS = 3_600_000
/** So many closings, one soon after the other, are worth a warning. */
const WARNED_OF = 2

/**
 * Which master the sentinels name when they are asked again and again: all that can be reached, at least two and more than half of those configured, each in its last two
 * answers. One alone does not count, because it can be cut off from the others.
 */
export class SentinelAgreement<S> {
  readonly #count: number
  readonly #intervalMs: number
  #answers = new Map<S, { readonly master: string; readonly times: number }>()
  #closings = 0
  /** When connections may be closed again, and when they were closed, by the monotonic clock. */
  #restsUntil = -Infinity
  #closedAt = -Infinity

  /** `count`: of the configured sentinels; each is asked once in `intervalMs`. */
  constructor(count: number, intervalMs: number) {
    this.#count = count
    this.#intervalMs = intervalMs
  }

  answered(sentinel: S, master: string): void {
    const before = this.#answers.get(sentinel)
    this.#answers.set(sentinel, { master, times: before?.master === master ? before.times + 1 : 1 })
  }

  /** The sentinel cannot be reached, or names no master. */
  forget(sentinel: S): void {
    this.#answers.delete(sentinel)
  }

  /** A sentinel has named another master than before: the other answers can be outdated. */
  moved(sentinel: S, master: string, now: number): void {
    this.#answers = new Map([[sentinel, { master, times: 1 }]])
    this.#restsUntil = Math.max(this.#restsUntil, now + LAG_MS)
  }

  /** Whether connections to other servers than this master are to be closed. */
  closesOn(master: string, now: number): boolean {
    const answers = [...this.#answers.values()]
    const isAgreed = answers.every((each) => each.master === master && each.times >= 2)
    return isAgreed && answers.length >= 2 && answers.length * 2 > this.#count && now >= this.#restsUntil
  }

  /** Connections that led elsewhere were closed. Returns whether to warn that this happens again and again. */
  closed(now: number): boolean {
    if (now - this.#closedAt > 2 * MOST_APART_MS) this.#closings = 0
    this.#closings++
    this.#closedAt = now
    this.#restsUntil = now + Math.min(this.#intervalMs * 2 ** this.#closings, MOST_APART_MS)
    return this.#closings === WARNED_OF
  }
}
