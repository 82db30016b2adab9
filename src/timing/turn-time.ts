import { nextTurn } from './pause.js'

/** How long one piece of work keeps everything else waiting. */
const MOST_MS = 20

/** Measures work that takes the processor, so that it gives way to everything else that waits for the event loop. */
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
