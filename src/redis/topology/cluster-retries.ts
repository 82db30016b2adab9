import { backoffDelay, type Backoff } from '../../timing/backoff.js'

const BACKOFF: Backoff = { baseMs: 100, maxMs: 1_000 }
/** A cluster that was connected this long, or took this long to fail, is tried again soon. */
const STABLE_MS = 1_000

/**
 * The delays between attempts to reach any node of a cluster; each attempt tries all nodes. ioredis would make ten attempts a second,
 * without end, also if the nodes answer and break off at once.
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
