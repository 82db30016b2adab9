import type { Redis } from 'ioredis'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { dropWhenOverdue } from './reply-watchdog.js'
import { translateError } from './server-errors.js'

const PONG_TIMEOUT_MS = 3_000
/**
 * How many intervals the answer may take while messages arrive before it. If only the way to the server is broken, messages keep arriving.
 */
const MOST_TIMEOUTS = 4

/**
 * Pings a connection that may be silent for long, until it ends, and drops it if the peer does not answer. `ask` replaces the ping.
 * Messages that arrive before the answer count as a sign of life for a while.
 */
export function keepPinging(
  connection: ReconnectingConnection,
  redis: Redis,
  intervalMs: number,
  ask: () => Promise<unknown> = () => redis.ping(),
): void {
  let timer: NodeJS.Timeout | undefined
  let stopWatching = (): void => {}
  const graceMs = Math.min(intervalMs, PONG_TIMEOUT_MS)
  const schedule = (): void => {
    stopWatching()
    timer = setTimeout(ping, intervalMs * (0.9 + 0.2 * Math.random()))
  }
  const ping = (): void => {
    stopWatching = dropWhenOverdue(connection, redis, { dueMs: 0, graceMs, mostMs: MOST_TIMEOUTS * graceMs })
    ask().then(schedule, (error: unknown) => connection.drop(redis, translateError(error)))
  }
  redis.once('end', () => {
    clearTimeout(timer)
    stopWatching()
  })
  schedule()
}
