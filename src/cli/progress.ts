import { printable } from '../text.js'

const QUIET_MS = 1_000
const EVERY_MS = 250
const CLEAR_LINE = '\r\x1b[2K'

/** One line on stderr that is overwritten; only at a terminal, and only after a moment. */
export class Progress {
  #next: number
  #shown = false

  constructor(quietMs = QUIET_MS) {
    this.#next = performance.now() + quietMs
  }

  readonly show = (what: string): void => {
    if (!process.stderr.isTTY || performance.now() < this.#next) return
    this.#next = performance.now() + EVERY_MS
    this.#shown = true
    process.stderr.write(CLEAR_LINE + printable(what, (process.stderr.columns ?? 80) - 1))
  }

  /** Erases the line, before anything else is printed. */
  clear(): void {
    if (this.#shown) process.stderr.write(CLEAR_LINE)
    this.#shown = false
  }
}
