import type { Clock } from './clock.js'
import { LONGEST_FINE_WAIT_MS, type FineWaits } from './fine-waits.js'

/** Node fires at once when a delay exceeds 2^31-1 ms, so longer waits are made of several shorter ones. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1

/**
 * Linux lets a wait end late by a thousandth of its length (up to 100 ms), so a long wait stops this fraction of the
 * remaining time before the deadline, and a second one covers the rest.
 */
const SHORT_MS = 100
const SLACK = 0.01

/**
 * One pending deadline on a monotonic clock. It fires once and never early. The owner arms it in
 * two ways: `lower` keeps the earlier of two deadlines, `replace` forgets the old one.
 */
export class DeadlineTimer {
  readonly #clock: Clock
  readonly #fire: (deadline: number) => void
  readonly #fineWaits: FineWaits | undefined
  #deadline = Infinity
  #isFine = false
  #handle: unknown = undefined
  #endFineWait: (() => void) | undefined

  /** Without `fineWaits` it fires up to a millisecond late, as every timer of Node. */
  constructor(clock: Clock, fire: (deadline: number) => void, fineWaits?: FineWaits) {
    this.#clock = clock
    this.#fire = fire
    this.#fineWaits = fineWaits
  }

  /** The armed deadline in the clock's milliseconds, `Infinity` when there is none. */
  get deadline(): number {
    return this.#deadline
  }

  /** Arms for `deadline` unless an earlier one is armed already. */
  lower(deadline: number): void {
    if (deadline < this.#deadline) this.replace(deadline)
  }

  /** Arms for `deadline`, whatever was armed before. `isFine`: the last millisecond is a fine wait, if one is allowed. */
  replace(deadline: number, isFine = false): void {
    this.clear()
    if (!(deadline < Infinity)) return
    this.#deadline = deadline
    this.#isFine = isFine
    this.#wait()
  }

  clear(): void {
    this.#deadline = Infinity
    this.#endFineWait?.()
    this.#endFineWait = undefined
    if (this.#handle === undefined) return
    this.#clock.clearTimeout(this.#handle)
    this.#handle = undefined
  }

  #wait(): void {
    const remaining = Math.max(0, this.#deadline - this.#clock.now())
    const fineWaits = this.#isFine && remaining <= SHORT_MS && this.#fineWaits?.areAllowed ? this.#fineWaits : undefined
    if (fineWaits !== undefined && remaining < LONGEST_FINE_WAIT_MS) {
      this.#endFineWait = fineWaits.begin(this.#deadline, this.#wake)
      return
    }
    const ms = wholeMs(remaining, fineWaits !== undefined)
    this.#handle = this.#clock.setTimeout(this.#wake, Math.min(ms, MAX_TIMEOUT_MS))
  }

  readonly #wake = (): void => {
    this.#handle = undefined
    this.#endFineWait = undefined
    const deadline = this.#deadline
    if (this.#clock.now() < deadline) {
      this.#wait()
      return
    }
    this.#deadline = Infinity
    this.#fire(deadline)
  }
}

/**
 * For how long to set a timer of Node. Rounded up without a fine wait: Node cuts fractions off, and a timer that fires in the millisecond
 * before has to wait once more.
 */
function wholeMs(remaining: number, isFine: boolean): number {
  if (remaining > SHORT_MS) return Math.floor(remaining * (1 - SLACK))
  return isFine ? Math.floor(remaining) : Math.ceil(remaining)
}
