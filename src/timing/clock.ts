/** The time source of the timing code; tests pass one that they advance themselves. */
export interface Clock {
  /** Milliseconds with fractions that never decrease; not related to any date. */
  now(): number
  setTimeout(callback: () => void, ms: number): unknown
  clearTimeout(handle: unknown): void
}

/** The process's monotonic clock, so that a jump of the wall clock does not move timers. */
export const systemClock: Clock = Object.freeze({
  now: () => performance.now(),
  setTimeout: (callback: () => void, ms: number) => setTimeout(callback, ms),
  clearTimeout: (handle: unknown) => clearTimeout(handle as NodeJS.Timeout),
})

/** The same, with timers that do not keep a process alive. */
export const backgroundClock: Clock = Object.freeze({
  ...systemClock,
  setTimeout: (callback: () => void, ms: number) => setTimeout(callback, ms).unref(),
})
