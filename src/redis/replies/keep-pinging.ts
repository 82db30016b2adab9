import type { Redis } from 'ioredis'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { dropWhenOverdue } from './reply-watchdog.js'
import { translateError } from './server-errors.js'

const PONG_TIMEOUT_MS = 3_000
/** How many intervals the answer may take while messages arrive before it. When only the way to the server is broken, messages arrive without end. */
const MOST_TIMEOUTS = 4

/**
 * For a connection that may be silent for long: when its peer has disappeared, the ping gets no answer, and the
 * connection is given up. Messages that arrive before the answer count as a sign of life for a while. Pings until the connection ends.
 */
export function keepPinging(connection: ReconnectingConnection, redis: Redis, intervalMs: number): void {
  let timer: NodeJS.Timeout | undefined
  let stopWatching = (): void => {}
  const graceMs = Math.min(intervalMs, PONG_TIMEOUT_MS)
  const schedule = (): void => {
    stopWatching()
    timer = setTimeout(ping, intervalMs * (0.9 + 0.2 * Math.random()))
  }
  const ping = (): void => {
    stopWatching = dropWhenOverdue(connection, redis, { dueMs: 0, graceMs, mostMs: MOST_TIMEOUTS * graceMs })
    redis.ping().then(schedule, (error: unknown) => connection.drop(redis, translateError(error)))
  }
  redis.once('end', () => {
    clearTimeout(timer)
    stopWatching()
  })
  schedule()
}
