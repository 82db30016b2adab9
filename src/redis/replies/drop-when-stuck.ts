import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { MIN_BYTES_PER_SECOND, StuckChecks } from './progress.js'

const CHECKS = 8

/**
 * Drops a connection for commands when its oldest reply is overdue by the limit with next to no progress, so that other calls can use a new
 * one: ioredis's `socketTimeout` ends only a silent connection, and a byte now and then would block every call. Checks until the connection
 * ends.
 */
export function dropWhenStuck(connection: ReconnectingConnection, redis: Redis, limitMs: number): void {
  const everyMs = limitMs / CHECKS
  const checks = new StuckChecks(everyMs)
  const timer = setInterval(() => {
    if (checks.count(redis) < CHECKS) return
    clearInterval(timer)
    const seconds = limitMs / 1000
    const message = `a reply came with less than ${MIN_BYTES_PER_SECOND} bytes a second for ${seconds} s`
    connection.drop(redis, new ConnectionError(message, 'unknown'))
  }, everyMs).unref()
  redis.once('end', () => clearInterval(timer))
}
