import { ConnectionError, type RedelayedError } from '../errors.js'

/** How often it is looked for commands that are too old, within their limit. */
const LOOKS = 32

interface Kept {
  readonly since: number
  readonly end: (error: RedelayedError) => void
}

/**
 * Commands that were given to a client of ioredis which may keep them, send them again, or forget them: each ends after the limit at
 * the latest, whatever becomes of it there. One timer for all, as there is one more of these with each command.
 */
export class KeptCommands {
  readonly #limitMs: number
  readonly #kept = new Set<Kept>()
  #timer: NodeJS.Timeout | undefined

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  /** Since when the first of them is waited for. */
  get oldest(): number | undefined {
    for (const { since } of this.#kept) return since
    return undefined
  }

  /** The reply, or an error when it takes too long. `since`: when the call began that it is for. */
  keep<T>(reply: Promise<T>, since = performance.now()): Promise<T> {
    this.#timer ??= setInterval(() => this.#look(), this.#limitMs / LOOKS).unref()
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

  /** Ends all of them: whether they were carried out is not known. */
  endAll(why: string): void {
    for (const { end } of this.#kept) end(new ConnectionError(why, 'unknown'))
  }

  #look(): void {
    if (this.#kept.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    const until = performance.now() - this.#limitMs
    for (const { since, end } of this.#kept) {
      if (since > until) continue // a call that began earlier can be kept later
      end(new ConnectionError(`Redis has not answered within ${this.#limitMs / 1000} s`, 'unknown'))
    }
  }
}
