import { nextTurn } from '../timing/pause.js'

interface Waiting<T, R> {
  readonly item: T
  readonly resolve: (result: R) => void
  readonly reject: (error: unknown) => void
}

/** Collects what is asked for in one turn of the event loop, so that many calls become one command. */
export class Batches<T, R> {
  readonly #run: (items: readonly T[]) => Promise<readonly R[]>
  readonly #most: number
  #waiting: Waiting<T, R>[] = []

  /** `run` gives one result per item, in order, and gets at most `most` of them. */
  constructor(most: number, run: (items: readonly T[]) => Promise<readonly R[]>) {
    this.#most = most
    this.#run = run
  }

  add(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (this.#waiting.length === 1) void nextTurn().then(() => this.#flush())
    })
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (let from = 0; from < waiting.length; from += this.#most)
      void this.#send(waiting.slice(from, from + this.#most))
  }

  async #send(waiting: readonly Waiting<T, R>[]): Promise<void> {
    try {
      const results = await this.#run(waiting.map(({ item }) => item))
      waiting.forEach(({ resolve }, at) => resolve(results[at] as R))
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    }
  }
}
