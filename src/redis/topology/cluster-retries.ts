import { backoffDelay, type Backoff } from '../../timing/backoff.js'

const BACKOFF: Backoff = { baseMs: 100, maxMs: 1_000 }
/** A cluster that was there for so long, or took so long to fail, is tried again soon. */
const STABLE_MS = 1_000

/**
 * When to try the nodes of a cluster again after none was left; each attempt tries all of them. ioredis would make ten attempts a second, without end
 * and also where the nodes answer and break off at once.
 */
export function clusterRetryStrategy(now: () => number, random: () => number): () => number {
  let attempt = 0
  let dueAt = -Infinity
  return () => {
    const failedAt = now()
    attempt = failedAt - dueAt > STABLE_MS ? 1 : attempt + 1
    const delayMs = backoffDelay(BACKOFF, attempt, random())
    dueAt = failedAt + delayMs
    return delayMs
  }
}
