import { onAbort } from '../redis/blocking/abort-signals.js'
import { ownCopy, toError } from '../errors.js'
import type { Clock } from '../timing/clock.js'
import { DeadlineTimer } from '../timing/deadline-timer.js'

export interface WaiterOptions {
  /** How long the call waits; without it, without end. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

interface Waiter<E> {
  readonly max: number
  /** A method, so that a queue of one element type is assignable to a queue of `unknown`. */
  settle(elements: E[] | Error): void
}

/** The calls that wait for elements, served in the order in which they came. */
export class WaiterQueue<E> {
  readonly #clock: Clock
  readonly #onLeft: () => void
  readonly #whyNone: () => Error | undefined
  readonly #waiting = new Set<Waiter<E>>()
  #wanted = 0

  /** `onLeft` is called when a call gives up. `whyNone` returns the error that kept elements from coming, if any. */
  constructor(clock: Clock, onLeft: () => void, whyNone: () => Error | undefined) {
    this.#clock = clock
    this.#onLeft = onLeft
    this.#whyNone = whyNone
  }

  /** How many elements would find a waiter. */
  get wanted(): number {
    return this.#wanted
  }

  /** Waits for 1 to `max` elements; resolves with none when the time is over, or rejects with the error of `whyNone`. */
  add(max: number, { timeoutMs, signal }: WaiterOptions): Promise<E[]> {
    return new Promise((resolve, reject) => {
      const leave = (how: E[] | Error): void => {
        waiter.settle(how)
        this.#onLeft()
      }
      const timer = new DeadlineTimer(this.#clock, () => leave(ownCopy(this.#whyNone()) ?? []))
      const waiter: Waiter<E> = {
        max,
        settle: (how) => {
          this.#waiting.delete(waiter)
          this.#wanted -= max
          timer.clear()
          unlisten?.()
          if (how instanceof Error) reject(how)
          else resolve(how)
        },
      }
      this.#waiting.add(waiter)
      this.#wanted += max
      const unlisten = signal && onAbort(signal, () => leave(toError(signal.reason)))
      if (timeoutMs !== undefined) timer.replace(this.#clock.now() + timeoutMs)
    })
  }

  /** Gives elements to the calls in order; returns the elements left over. */
  give(elements: readonly E[]): readonly E[] {
    let given = 0
    for (const waiter of this.#waiting) {
      if (given >= elements.length) break
      const share = elements.slice(given, given + waiter.max)
      given += share.length
      waiter.settle(share)
    }
    return elements.slice(given)
  }

  rejectAll(error: Error): void {
    for (const waiter of [...this.#waiting]) waiter.settle(ownCopy(error))
  }
}
