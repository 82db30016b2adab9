/**
 * Shares an action between callers: each gets a run that began after its call, and the callers that come during a run share the next one.
 */
export class SharedRun<R> {
  readonly #action: () => Promise<R>
  #current: Promise<R> | undefined
  #next: Promise<R> | undefined

  constructor(action: () => Promise<R>) {
    this.#action = action
  }

  run(): Promise<R> {
    if (this.#current === undefined && this.#next === undefined) return this.#begin()
    this.#next ??= Promise.allSettled([this.#current]).then(() => {
      this.#next = undefined
      return this.#begin()
    })
    return this.#next
  }

  #begin(): Promise<R> {
    const run = this.#action().finally(() => {
      if (this.#current === run) this.#current = undefined
    })
    this.#current = run
    return run
  }
}
