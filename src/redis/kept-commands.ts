import { ConnectionError, type RedelayedError } from '../errors.js'

/** The error of ioredis's own `commandTimeout`, which ends the call but keeps the connection, however long the server is silent. */
const TIMED_OUT = 'Command timed out'

/** The number of checks for late commands within their limit. */
const CHECKS = 32

interface Kept {
  readonly since: number
  readonly end: (error: RedelayedError) => void
}

/**
 * Commands on an ioredis client that may keep, resend or forget them. Each call ends after the limit at
 * the latest, whatever ioredis does with its command. All share one timer.
 */
export class KeptCommands {
  readonly #limitMs: number
  readonly #address: () => string
  readonly #kept = new Set<Kept>()
  /** The start of the first recent call that ioredis has ended and the server has not answered. */
  #unansweredSince = Infinity
  #timer: NodeJS.Timeout | undefined

  /** `address` returns that of the servers, for errors. */
  constructor(limitMs: number, address: () => string) {
    this.#limitMs = limitMs
    this.#address = address
  }

  /**
   * When the call that was registered first, and has no answer yet, began. Calls are in the order of their registration, not of their
   * start.
   */
  get oldest(): number | undefined {
    if (performance.now() - this.#unansweredSince > this.#limitMs) this.#unansweredSince = Infinity
    const [first] = this.#kept
    const oldest = Math.min(first?.since ?? Infinity, this.#unansweredSince)
    return oldest === Infinity ? undefined : oldest
  }

  /** Resolves with the reply, or rejects if it takes too long. `since`: when the call began. */
  keep<T>(reply: Promise<T>, since = performance.now()): Promise<T> {
    this.#timer ??= setInterval(() => this.#check(), this.#limitMs / CHECKS).unref()
    return new Promise((resolve, reject) => {
      const kept: Kept = {
        since,
        end: (error) => {
          this.#kept.delete(kept)
          reject(error)
        },
      }
      this.#kept.add(kept)
      reply.then(
        (value) => {
          this.#kept.delete(kept)
          resolve(value)
        },
        (thrown: Error) => {
          this.#kept.delete(kept)
          if (thrown.message === TIMED_OUT) this.#unansweredSince = Math.min(this.#unansweredSince, since)
          reject(thrown)
        },
      )
    })
  }

  /** Rejects all calls; it is unknown whether their commands were carried out. */
  endAll(why: string): void {
    for (const { end } of this.#kept) end(new ConnectionError(why, 'unknown'))
  }

  #check(): void {
    if (this.#kept.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    const until = performance.now() - this.#limitMs
    for (const { since, end } of this.#kept) {
      if (since > until) continue // a later entry can have begun earlier
      end(
        new ConnectionError(`Redis at ${this.#address()} has not answered within ${this.#limitMs / 1000} s`, 'unknown'),
      )
    }
  }
}
