import type { Redis } from 'ioredis'
import { abandon } from './disconnect.js'

interface Internals {
  flushQueue(error: Error, options: { offlineQueue: boolean }): void
}

/** Ends a connection whose replies can no longer be trusted; the outcome of the commands in flight is unknown. */
export function breakOff(redis: Redis, error: Error): void {
  ;(redis as unknown as Internals).flushQueue(error, { offlineQueue: false })
  if (redis.listenerCount('error') > 0) redis.emit('error', error)
  abandon(redis)
}
