import type { Clock } from './clock.js'

const PAUSE_MS = 60_000

/** Limits the reports of recurring problems: once a minute for each of a few. */
export class Seldom {
  readonly #clock: Pick<Clock, 'now'>
  readonly #reported = new Map<string, number>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  may(what: string): boolean {
    const now = this.#clock.now()
    if (now - (this.#reported.get(what) ?? -Infinity) < PAUSE_MS) return false
    this.#reported.set(what, now)
    return true
  }
}
