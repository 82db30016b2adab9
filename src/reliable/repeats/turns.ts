import { nextTurn } from '../../timing/pause.js'

/** How long the ticks of repeats are computed before everything else has its turn. */
export const MOST_MS = 20

/**
 * Computations that take the processor, one after the other: what has taken `mostMs` together gives way to everything else that
 * waits for the event loop. One computation is not interrupted.
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

/** Of all queues: they share the event loop. One cron expression that never comes true takes tens of milliseconds. */
export const repeatTurns = new Turns(MOST_MS)
