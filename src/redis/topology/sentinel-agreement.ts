/** The longest time between two closings of connections that lead elsewhere again and again: the master can have an address that the sentinels do not know. */
const MOST_APART_MS = 3_600_000
/** So many closings in a row are worth a warning. */
const WARNED_OF = 2

/**
 * Which master the sentinels name when they are asked again and again: all that can be reached, and more than half of those configured, each in its last two
 * answers. One alone does not count, as it can be cut off from the others.
 */
export class SentinelAgreement<S> {
  readonly #count: number
  readonly #intervalMs: number
  #answers = new Map<S, { readonly master: string; readonly times: number }>()
  #compared = ''
  #closings = 0
  /** By the monotonic clock. */
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

  /** A sentinel has announced a master: the others learn of it one after the other, so earlier answers do not count. */
  reset(): void {
    this.#answers = new Map()
  }

  /** Whether connections to other servers than this master are to be closed. */
  isOn(master: string, now: number): boolean {
    const answers = [...this.#answers.values()]
    const isAgreed = answers.every((each) => each.master === master && each.times >= 2)
    return isAgreed && answers.length * 2 > this.#count && now >= this.#restsUntil(master)
  }

  /** Connections were compared with a master; `isClosed`: one led elsewhere. Returns whether to warn that this happens again and again. */
  compared(master: string, isClosed: boolean, now: number): boolean {
    this.#closings = isClosed ? (master === this.#compared ? this.#closings : 0) + 1 : 0
    this.#compared = master
    this.#closedAt = now
    return this.#closings === WARNED_OF
  }

  #restsUntil(master: string): number {
    if (master !== this.#compared || this.#closings === 0) return -Infinity
    return this.#closedAt + Math.min(this.#intervalMs * 2 ** this.#closings, MOST_APART_MS)
  }
}
