/** How many missed ticks get messages at once, and how many more each second. */
export const MOST_MISSED = 10_000
const MORE_PER_SECOND = 1_000

/** The budget of messages for missed ticks, shared by all repeats of one queue. */
export class CatchUp {
  readonly #now: () => number
  #room = MOST_MISSED
  #asOf: number

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number) {
    this.#now = now
    this.#asOf = now()
  }

  get room(): number {
    const now = this.#now()
    this.#room = Math.min(MOST_MISSED, this.#room + ((now - this.#asOf) / 1000) * MORE_PER_SECOND)
    this.#asOf = now
    return Math.floor(this.#room)
  }

  spend(ticks: number): void {
    this.#room = Math.max(0, this.#room - ticks)
  }

  /** Returns the budget of ticks whose messages were not added. */
  giveBack(ticks: number): void {
    this.#room = Math.min(MOST_MISSED, this.#room + ticks)
  }
}
