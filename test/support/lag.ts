const EVERY_MS = 20
/** What passes through several processes waits at each of them. */
const HOPS = 4

/**
 * How much later than asked for the timers of this process come. On a busy machine everything does that is measured beside it, so a limit that is
 * right on a quiet one is wrong there.
 */
export class Lag {
  #worst = 0
  readonly #timer: NodeJS.Timeout

  constructor() {
    let before = performance.now()
    this.#timer = setInterval(() => {
      const now = performance.now()
      this.#worst = Math.max(this.#worst, now - before - EVERY_MS)
      before = now
    }, EVERY_MS)
  }

  /** Ends the measurement; the worst there was, in milliseconds. */
  stop(): number {
    clearInterval(this.#timer)
    return Math.ceil(this.#worst)
  }
}

/** So much later than on a quiet machine what passes through several processes may be. */
export function allowedFor(lagMs: number): number {
  return HOPS * lagMs
}

/** Timers are a little late on every machine. */
const USUAL_MS = 10

/** How long this process could not run in all, so far: its event loop was busy, or others had the cores. */
export class LostTime {
  #ms = 0

  constructor() {
    let before = performance.now()
    setInterval(() => {
      const now = performance.now()
      const late = now - before - EVERY_MS
      if (late > USUAL_MS) this.#ms += late
      before = now
    }, EVERY_MS).unref()
  }

  get ms(): number {
    return this.#ms
  }
}
