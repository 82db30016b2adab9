import { pause } from '../pause.js'

/** What a step found. */
export type Found = 'work' | 'nothing'

/** Repeats a step, with a pause in between that grows while the step fails or finds nothing to do. */
export class Watch {
  readonly #step: (signal: AbortSignal) => Promise<Found>
  readonly #everyMs: number
  readonly #onError: (error: unknown) => void
  readonly #stop = new AbortController()
  readonly #done: Promise<void>
  #busyAt = performance.now()
  /** Ends a pause that is long because the step found nothing to do. */
  #long: AbortController | undefined

  constructor(step: (signal: AbortSignal) => Promise<Found>, everyMs: number, onError: (error: unknown) => void) {
    this.#step = step
    this.#everyMs = everyMs
    this.#onError = onError
    this.#done = this.#run()
  }

  /** There is something to do, or will be soon. */
  wake(): void {
    this.#busyAt = performance.now()
    this.#long?.abort()
  }

  /** Resolves when the step that is under way has ended. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#long?.abort()
    await this.#done
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    let failures = 0
    while (!signal.aborted) {
      try {
        if ((await this.#step(signal)) === 'work') this.#busyAt = performance.now()
        failures = 0
      } catch (error) {
        failures++
        if (!signal.aborted) this.#onError(error)
      }
      if (failures > 0)
        await pause(Math.max(this.#everyMs, Math.min(MOST_PAUSE_MS, this.#everyMs * 2 ** failures)), signal)
      else await this.#rest(signal)
    }
  }

  async #rest(signal: AbortSignal): Promise<void> {
    const idleMs = Math.min(MOST_PAUSE_MS, (performance.now() - this.#busyAt) / IDLE_SHARE)
    if (idleMs <= this.#everyMs) return pause(this.#everyMs, signal)
    this.#long = new AbortController()
    if (!signal.aborted) await pause(idleMs, this.#long.signal)
    this.#long = undefined
  }
}

/** Until the journal sees that a Redis came back empty, messages handled there are put back and come twice. */
const MOST_PAUSE_MS = 1_000
/** A pause is this share of the time since the last work. */
const IDLE_SHARE = 10
