import { nextTurn } from '../timing/pause.js'

/** Collects the items of one turn of the event loop, so that many calls become one command. */
export class Batches<T> {
  readonly #most: number
  readonly #send: (items: readonly T[]) => void
  #waiting: T[] = []

  /** `send` gets at most `most` items at a time, in order. */
  constructor(most: number, send: (items: readonly T[]) => void) {
    this.#most = most
    this.#send = send
  }

  add(item: T): void {
    this.#waiting.push(item)
    if (this.#waiting.length === 1) void nextTurn().then(() => this.#flush())
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (let from = 0; from < waiting.length; from += this.#most) this.#send(waiting.slice(from, from + this.#most))
  }
}
