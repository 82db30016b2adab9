import type { Redis } from 'ioredis'
import { abandon } from './disconnect.js'

interface Internals {
  flushQueue(error: Error, options: { offlineQueue: boolean }): void
}

/** Ends a connection whose replies cannot be trusted any more; it is unknown whether the commands in flight were carried out. */
export function breakOff(redis: Redis, error: Error): void {
  ;(redis as unknown as Internals).flushQueue(error, { offlineQueue: false })
  if (redis.listenerCount('error') > 0) redis.emit('error', error)
  abandon(redis)
}
