const EVERY_MS = 20
/** A message that passes through several processes waits at each of them. */
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

/** How much later than on a quiet machine a message that passes through several processes may be. */
export function allowedFor(lagMs: number): number {
  return HOPS * lagMs
}

/** Timers are a little late on every machine. */
const USUAL_MS = 10

/** The total time that this process could not run so far: its event loop was busy, or other processes had the cores. */
export class LostTime {
  #ms = 0
  #measured: (() => void)[] = []

  constructor() {
    let before = performance.now()
    setInterval(() => {
      const now = performance.now()
      const late = now - before - EVERY_MS
      if (late > USUAL_MS) this.#ms += late
      before = now
      for (const resolve of this.#measured.splice(0)) resolve()
    }, EVERY_MS).unref()
  }

  /** Resolves when all that was lost until now is counted. */
  measured(): Promise<void> {
    return new Promise((resolve) => this.#measured.push(resolve))
  }

  get ms(): number {
    return this.#ms
  }
}
