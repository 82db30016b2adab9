/** The clock of Redis as this process knows it: never behind the real one, so that nothing is due too early. */
export class QueueClock {
  readonly #ask: () => Promise<number>
  #ahead: number | undefined

  constructor(ask: () => Promise<number>) {
    this.#ask = ask
  }

  async refresh(): Promise<void> {
    const before = performance.now()
    this.#ahead = (await this.#ask()) - before
  }

  /** Epoch milliseconds; by this process's clock until Redis has answered once. */
  now(): number {
    return this.#ahead === undefined ? Date.now() : Math.ceil(performance.now() + this.#ahead)
  }
}
