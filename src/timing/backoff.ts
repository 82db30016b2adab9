/** Waits between attempts: doubling from `baseMs` up to `maxMs`, each drawn from its upper half so that clients spread. */
export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/** The wait before attempt number `attempt` (1 is the first retry). `random` is in [0, 1). */
export function backoffDelay(backoff: Backoff, attempt: number, random: number): number {
  const ceiling = Math.min(backoff.maxMs, backoff.baseMs * 2 ** Math.min(attempt - 1, 30))
  return ceiling / 2 + (ceiling / 2) * random
}
