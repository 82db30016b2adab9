import { nextTurn } from './pause.js'

/** The longest that one piece of work occupies the event loop. */
const MOST_MS = 20

/** Measures work that occupies the processor, so that it yields to other work of the event loop in time. */
export class TurnTime {
  #since = performance.now()

  get isOver(): boolean {
    return performance.now() - this.#since > MOST_MS
  }

  async giveWay(): Promise<void> {
    await nextTurn()
    this.#since = performance.now()
  }
}
