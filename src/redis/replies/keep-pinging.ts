import type { Redis } from 'ioredis'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { dropWhenOverdue } from './reply-watchdog.js'
import { translateError } from './server-errors.js'

const PONG_TIMEOUT_MS = 3_000
/** So many times that long the answer may be on its way behind messages. Where only the way to the server is broken, they come without end. */
const MOST_TIMEOUTS = 4

/**
 * For a connection on which nothing has to come: a socket whose peer is gone without a word swallows the ping, and the
 * connection is given up then. Messages that come before the answer show for a while that it lives. Until it ends.
 */
export function keepPinging(link: ReconnectingConnection, redis: Redis, intervalMs: number): void {
  let timer: NodeJS.Timeout | undefined
  let stopWatching = (): void => {}
  const graceMs = Math.min(intervalMs, PONG_TIMEOUT_MS)
  const schedule = (): void => {
    stopWatching()
    timer = setTimeout(ping, intervalMs * (0.9 + 0.2 * Math.random()))
  }
  const ping = (): void => {
    stopWatching = dropWhenOverdue(link, redis, { dueMs: 0, graceMs, mostMs: MOST_TIMEOUTS * graceMs })
    redis.ping().then(schedule, (error: unknown) => link.drop(redis, translateError(error)))
  }
  redis.once('end', () => {
    clearTimeout(timer)
    stopWatching()
  })
  schedule()
}
