import { nextTurn } from './pause.js'

/** Collects the items of one turn of the event loop, so that many calls become one command. */
export class TurnCollector<T> {
  readonly #send: (items: readonly T[]) => void
  readonly #most: number
  #waiting: T[] = []

  /** `send` gets all items in order, at most `most` at a time; all at once, so that no item of the next turn overtakes one. */
  constructor(send: (items: readonly T[]) => void, most = Infinity) {
    this.#send = send
    this.#most = most
  }

  add(item: T): void {
    this.#waiting.push(item)
    if (this.#waiting.length === 1) void nextTurn().then(() => this.flush())
  }

  /** Sends what waits now, before this turn has ended. */
  flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (let from = 0; from < waiting.length; from += this.#most) this.#send(waiting.slice(from, from + this.#most))
  }
}
