/** A clock that moves only when a test advances it, for timers that take their clock as an argument. */

interface Timer {
  readonly due: number
  readonly order: number
  readonly run: () => void
}

export class FakeClock {
  #now: number
  #order = 0
  readonly #timers = new Set<Timer>()

  constructor(now = 0) {
    this.#now = now
  }

  /** Monotonic milliseconds; may be fractional. */
  now(): number {
    return this.#now
  }

  setTimeout(fn: () => void, ms: number): unknown {
    // Node does the same: no wait is shorter than a millisecond, and one beyond 2^31-1 ms becomes the shortest.
    const wait = ms >= 1 && ms <= 2 ** 31 - 1 ? ms : 1
    const timer: Timer = { due: this.#now + wait, order: this.#order++, run: fn }
    this.#timers.add(timer)
    return timer
  }

  clearTimeout(handle: unknown): void {
    this.#timers.delete(handle as Timer)
  }

  /** Milliseconds until each waiting timer, the next one first. */
  get pending(): number[] {
    return this.#sorted().map((timer) => timer.due - this.#now)
  }

  /** Runs what becomes due, in order; between two timers all promises and ticks settle. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    await settle()
    for (let next = this.#sorted()[0]; next !== undefined && next.due <= end; next = this.#sorted()[0]) {
      this.#now = Math.max(this.#now, next.due)
      this.#timers.delete(next)
      next.run()
      await settle()
    }
    this.#now = end
  }

  /** Moves the clock and runs nothing: a process that was suspended, or a clock that jumped. */
  jump(ms: number): void {
    this.#now += ms
  }

  #sorted(): Timer[] {
    return [...this.#timers].sort((a, b) => a.due - b.due || a.order - b.order)
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
