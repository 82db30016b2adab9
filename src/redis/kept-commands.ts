import { ConnectionError, type RedelayedError } from '../errors.js'

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
  #timer: NodeJS.Timeout | undefined

  /** `address`: of the servers, for errors. */
  constructor(limitMs: number, address: () => string) {
    this.#limitMs = limitMs
    this.#address = address
  }

  /** When the call of the first one kept began; a later one can have begun earlier. */
  get oldest(): number | undefined {
    for (const { since } of this.#kept) return since
    return undefined
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
