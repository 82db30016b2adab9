/** Runs one step again and again, with a pause in between that grows while the step fails. */
export class Watch {
  readonly #step: () => Promise<void>
  readonly #everyMs: number
  readonly #onError: (error: unknown) => void
  readonly #stop = new AbortController()
  readonly #done: Promise<void>

  constructor(step: () => Promise<void>, everyMs: number, onError: (error: unknown) => void) {
    this.#step = step
    this.#everyMs = everyMs
    this.#onError = onError
    this.#done = this.#run()
  }

  /** Resolves when the step that is under way has ended. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#done
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    let failures = 0
    while (!signal.aborted) {
      try {
        await this.#step()
        failures = 0
      } catch (error) {
        failures++
        if (!signal.aborted) this.#onError(error)
      }
      await pause(Math.min(MOST_PAUSE_MS, this.#everyMs * 2 ** Math.min(failures, 6)), signal)
    }
  }
}

/** What is handled in a Redis that came back empty comes twice until it is seen to be empty. */
const MOST_PAUSE_MS = 1_000

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
  })
}
