import type { Redis } from 'ioredis'

/**
 * Returns a function that replaces the error of a failed command by that of its connection: when a connection breaks, ioredis only reports
 * that it is closed. An error that the server replied stays as it is.
 */
export function lastErrorOf(redis: Redis): (thrown: Error) => Error {
  let reason: Error | undefined
  redis.on('error', (error: Error) => (reason = error))
  return (thrown) => (thrown.name === 'ReplyError' ? thrown : (reason ?? thrown))
}
