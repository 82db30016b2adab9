import type { Redis } from 'ioredis'
import type { Link } from './link.js'

const PONG_TIMEOUT_MS = 3_000

/**
 * For a connection on which nothing has to come: a socket whose peer is gone without a word swallows the ping, and the
 * connection is given up then. Until it ends.
 */
export function keepPinging(link: Link, redis: Redis, intervalMs: number): void {
  let timer: NodeJS.Timeout
  const drop = (): void => link.drop(redis)
  const schedule = (): void => {
    clearTimeout(timer)
    timer = setTimeout(ping, intervalMs * (0.9 + 0.2 * Math.random()))
  }
  const ping = (): void => {
    timer = setTimeout(drop, Math.min(intervalMs, PONG_TIMEOUT_MS))
    redis.ping().then(schedule, drop)
  }
  redis.once('end', () => clearTimeout(timer))
  schedule()
}
