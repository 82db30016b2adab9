/** Waits between attempts: doubling from `baseMs` up to `maxMs`, each drawn from its upper half so that clients spread. */
export interface Backoff {
  readonly baseMs: number
  readonly maxMs: number
}

/** The waits after failures, and after scripts that changed nothing. */
export const AFTER_FAILURE: Backoff = { baseMs: 100, maxMs: 5_000 }
/** After a temporary refusal, `BUSY` above all (see `isBrief`). Constant, because the server's free moments can be short. */
export const AFTER_BRIEF_REFUSAL: Backoff = { baseMs: 250, maxMs: 250 }

/** The wait before attempt number `attempt` (1 is the first retry). `random` is in [0, 1). */
export function backoffDelay(backoff: Backoff, attempt: number, random: number): number {
  const ceiling = Math.min(backoff.maxMs, backoff.baseMs * 2 ** Math.min(attempt - 1, 30))
  return ceiling / 2 + (ceiling / 2) * random
}
