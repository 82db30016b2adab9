import { nextTurn } from '../timing/pause.js'
import type { Assignment, Outcome } from './assignment.js'
import type { Handler } from './handlers.js'
import type { RetryDelay } from './retry-delays.js'
import type { WorkerSettings } from './worker-options.js'

interface Params {
  readonly handler: Handler
  readonly retryDelay: RetryDelay
  readonly settings: Pick<WorkerSettings, 'concurrency' | 'timeout' | 'visibilityTimeout'>
  /** A handler has ended. */
  readonly onHandled: (assignment: Assignment, outcome: Outcome) => void
}

/** Gives messages to the handler, as many at a time as the worker's concurrency; the others wait here. */
export class Dispatcher {
  readonly #params: Params
  readonly #waiting: Assignment[] = []
  #active = 0
  /** How many handlers were called in this turn of the event loop. */
  #begun = 0
  #hasNextTurn = false
  #isClosed = false

  constructor(params: Params) {
    this.#params = params
  }

  /** How many messages are being handled now. */
  get active(): number {
    return this.#active
  }

  /** How many messages wait for a handler or are being handled. */
  get size(): number {
    return this.#active + this.#waiting.length
  }

  /** Adds a message, which the next `fill` may begin. */
  add(assignment: Assignment): void {
    this.#waiting.push(assignment)
  }

  /**
   * Begins messages up to the concurrency, also per turn of the event loop, so that handlers which never wait do not delay
   * acknowledgements and heartbeats.
   */
  fill(): void {
    const { handler, retryDelay, settings } = this.#params
    const { concurrency, timeout, visibilityTimeout } = settings
    while (this.#active < concurrency && this.#begun < concurrency && !this.#isClosed) {
      const assignment = this.#waiting.shift()
      if (assignment === undefined) break
      this.#active++
      this.#begun++
      const outcome = assignment.handle(handler, timeout, retryDelay, visibilityTimeout)
      if (outcome instanceof Promise)
        void outcome.then((later) => this.#handled(assignment, later)).then(() => this.fill())
      else this.#handled(assignment, outcome)
    }
    if (this.#begun === 0 || this.#hasNextTurn) return
    this.#hasNextTurn = true
    void nextTurn().then(() => {
      this.#hasNextTurn = false
      this.#begun = 0
      this.fill()
    })
  }

  /** Calls no more handlers. */
  close(): void {
    this.#isClosed = true
  }

  /** Removes and returns the messages that no handler has seen. */
  takeWaiting(): Assignment[] {
    return this.#waiting.splice(0)
  }

  #handled(assignment: Assignment, outcome: Outcome): void {
    this.#active--
    this.#params.onHandled(assignment, outcome)
  }
}
