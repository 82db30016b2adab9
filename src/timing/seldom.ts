import type { Clock } from './clock.js'

const PAUSE_MS = 60_000
/** The most problems reported in one pause, and the characters of a text that are compared: a server can send texts of any length. */
const MOST = 32
const MOST_CHARS = 200

/** Limits the reports of recurring problems: once a minute for each of a few. */
export class Seldom {
  readonly #clock: Pick<Clock, 'now'>
  /** When each was reported, the earliest first. */
  readonly #reported = new Map<string, number>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  may(what: string): boolean {
    const now = this.#clock.now()
    for (const [other, at] of this.#reported) {
      if (now - at < PAUSE_MS) break
      this.#reported.delete(other)
    }
    const problem = Buffer.from(what.slice(0, MOST_CHARS)).toString() // a copy: a part of a text keeps the whole text in memory
    if (this.#reported.has(problem) || this.#reported.size >= MOST) return false
    this.#reported.set(problem, now)
    return true
  }
}
