import { nextTurn } from '../../timing/pause.js'

/** How long ticks of repeats are computed before other work of the event loop gets a turn. */
export const MOST_MS = 20

/**
 * Runs computations one after the other, and yields to other work of the event loop after `mostMs` of
 * them. A single computation is not interrupted.
 */
export class Turns {
  readonly #mostMs: number
  #tail: Promise<unknown> = Promise.resolve()
  #spentMs = 0

  constructor(mostMs: number) {
    this.#mostMs = mostMs
  }

  take<R>(compute: () => R): Promise<R> {
    const result = this.#tail.then(() => this.#compute(compute))
    this.#tail = result.catch(() => undefined)
    return result
  }

  async #compute<R>(compute: () => R): Promise<R> {
    if (this.#spentMs > this.#mostMs) {
      await nextTurn()
      this.#spentMs = 0
    }
    const startedAt = performance.now()
    try {
      return compute()
    } finally {
      this.#spentMs += performance.now() - startedAt
    }
  }
}

/** The turns of all queues, which share the event loop. A cron expression without any tick takes tens of milliseconds. */
export const repeatTurns = new Turns(MOST_MS)
