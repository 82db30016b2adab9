import type { Clock } from '../../timing/clock.js'
import { QUIET_MS } from './server-turns.js'

/** The longest truce. If another one begins within this time after the last, the quiet that ends it must last twice as long. */
export const TRUCE_MS = 3_600_000

/** The time in which the client does not compare servers, because it cannot stay at one of them. */
export class ServerTruce {
  readonly #clock: Clock
  /** When a connection last led elsewhere. */
  readonly #strayedAt: () => number
  readonly #onEnd: () => void
  #isOn = false
  #begunAt = -Infinity
  #endedAt = -Infinity
  #quietMs = QUIET_MS
  #timer: unknown
  #isClosed = false

  constructor(clock: Clock, strayedAt: () => number, onEnd: () => void) {
    this.#clock = clock
    this.#strayedAt = strayedAt
    this.#onEnd = onEnd
  }

  get isOn(): boolean {
    return this.#isOn
  }

  begin(): void {
    const now = this.#clock.now()
    this.#quietMs = now - this.#endedAt < TRUCE_MS ? Math.min(2 * this.#quietMs, TRUCE_MS) : QUIET_MS
    this.#isOn = true
    this.#begunAt = now
    this.#endOrWait()
  }

  close(): void {
    this.#isClosed = true
    this.#clock.clearTimeout(this.#timer)
  }

  /** Ends when no connection has led elsewhere for `#quietMs`, and after `TRUCE_MS` in any case. */
  #endOrWait(): void {
    if (this.#isClosed) return
    const now = this.#clock.now()
    const endsAt = Math.min(this.#strayedAt() + this.#quietMs, this.#begunAt + TRUCE_MS)
    if (now < endsAt) {
      this.#timer = this.#clock.setTimeout(() => this.#endOrWait(), endsAt - now)
      return
    }
    this.#isOn = false
    this.#endedAt = now
    this.#onEnd()
  }
}
