import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { MIN_BYTES_PER_SECOND, StuckLooks } from './progress.js'

const LOOKS = 8

/**
 * Gives a connection for commands up when its oldest reply is owed for the limit with next to no progress, so that other calls can use
 * a new one: ioredis's `socketTimeout` ends a silent connection only, and a byte now and then would block every call. Checks until the connection ends.
 */
export function dropWhenStuck(link: ReconnectingConnection, redis: Redis, limitMs: number): void {
  const everyMs = limitMs / LOOKS
  const looks = new StuckLooks(everyMs)
  const timer = setInterval(() => {
    if (looks.count(redis) < LOOKS) return
    clearInterval(timer)
    const seconds = limitMs / 1000
    const message = `a reply came with less than ${MIN_BYTES_PER_SECOND} bytes a second for ${seconds} s`
    link.drop(redis, new ConnectionError(message, 'unknown'))
  }, everyMs).unref()
  redis.once('end', () => clearInterval(timer))
}
