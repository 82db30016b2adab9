import type { Redis } from 'ioredis'

/**
 * Of a command that failed with its connection ioredis says no more than that the connection is closed. The function that this returns gives the error of
 * the connection instead; a reply of the server stays as it is.
 */
export function lastErrorOf(redis: Redis): (thrown: Error) => Error {
  let reason: Error | undefined
  redis.on('error', (error: Error) => (reason = error))
  return (thrown) => (thrown.name === 'ReplyError' ? thrown : (reason ?? thrown))
}
