import type { Redis } from 'ioredis'

/** For a connection that has ended, ioredis would set a timer of two seconds that nothing clears. */
export function disconnect(redis: Redis): void {
  if (redis.status !== 'end') redis.disconnect()
}
