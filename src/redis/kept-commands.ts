import { ConnectionError, type RedelayedError } from '../errors.js'

/** ioredis's own `commandTimeout`: it ends the call, and the connection stays, however long the server is silent. */
const TIMED_OUT = 'Command timed out'

/** How many checks for commands that are too old fit into their limit. */
const CHECKS = 32

interface Kept {
  readonly since: number
  readonly end: (error: RedelayedError) => void
}

/**
 * Commands sent on an ioredis client that may keep them, resend them, or forget them. Each ends after the limit at
 * the latest, whatever ioredis does with it. They share one timer.
 */
export class KeptCommands {
  readonly #limitMs: number
  readonly #address: () => string
  readonly #kept = new Set<Kept>()
  /** When the first call began, of the last ones, that ioredis has ended and the server has not answered. */
  #unansweredSince = Infinity
  #timer: NodeJS.Timeout | undefined

  /** `address`: of the servers, for errors. */
  constructor(limitMs: number, address: () => string) {
    this.#limitMs = limitMs
    this.#address = address
  }

  /** When the call of the first one began that is kept or was not answered; a later one can have begun earlier. */
  get oldest(): number | undefined {
    if (performance.now() - this.#unansweredSince > this.#limitMs) this.#unansweredSince = Infinity
    const [first] = this.#kept
    const oldest = Math.min(first?.since ?? Infinity, this.#unansweredSince)
    return oldest === Infinity ? undefined : oldest
  }

  /** Resolves with the reply, or rejects when it takes too long. `since`: when the call began. */
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

  /** Rejects all of them: it is unknown whether they were carried out. */
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
      if (since > until) continue // a call that began earlier can be kept later
      end(
        new ConnectionError(`Redis at ${this.#address()} has not answered within ${this.#limitMs / 1000} s`, 'unknown'),
      )
    }
  }
}
