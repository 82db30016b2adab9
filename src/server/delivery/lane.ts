/** A hold longer than this is not just the limit of webhooks a second. */
const LONG_MS = 1_000

/** Limits the webhooks of an endpoint that run at once on this instance, and holds them for a time. */
export class Lane {
  readonly #most: number
  readonly #waiting = new Set<() => void>()
  #running = 0
  #heldUntil = 0
  #wasHeld = false

  constructor(most: number) {
    this.#most = most
  }

  get free(): number {
    return Math.max(0, this.#most - this.#running)
  }

  /** Whether no webhook was sent since a long hold. */
  get wasHeld(): boolean {
    return this.#wasHeld
  }

  /** Notes that a webhook was sent after a hold. */
  release(): void {
    if (this.#heldUntil <= performance.now()) this.#wasHeld = false
  }

  /** Holds further webhooks for this time. */
  hold(ms: number): void {
    this.#wasHeld ||= ms > LONG_MS
    this.#heldUntil = Math.max(this.#heldUntil, performance.now() + ms)
  }

  /** Resolves when there is room and no hold, or the signal aborts. */
  async room(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const held = this.#heldUntil - performance.now()
      if (held <= 0 && this.free > 0) return
      await this.#change(held > 0 ? held : undefined, signal)
    }
  }

  /** Runs the work when there is room. */
  async run(work: () => Promise<void>): Promise<void> {
    while (this.free === 0) await this.#change(undefined)
    this.#running++
    try {
      await work()
    } finally {
      this.#running--
      for (const wake of [...this.#waiting]) wake()
    }
  }

  #change(ms: number | undefined, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(wake)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const timer = ms === undefined ? undefined : setTimeout(wake, Math.min(ms, 60_000))
      this.#waiting.add(wake)
      signal?.addEventListener('abort', wake, { once: true })
      if (signal?.aborted === true) wake()
    })
  }
}
