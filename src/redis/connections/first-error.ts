import type { Redis } from 'ioredis'

const watched = new WeakSet<Redis['stream']>()

/**
 * Ends the socket of a client with its first error. A damaged TLS record is an error that leaves the socket open, and the next write would
 * be a second one, which ioredis does not listen for: it would end the process.
 */
export function endWithFirstError(redis: Redis): void {
  const stream = redis.stream as Redis['stream'] | undefined
  if (stream === undefined || watched.has(stream)) return
  watched.add(stream)
  stream.on('error', () => stream.destroy())
}

/** As `endWithFirstError`, for each connection that the owner of a client opens from now on, until the returned function is called. */
export function endEachWithFirstError(redis: Redis): () => void {
  const end = (): void => endWithFirstError(redis)
  end()
  redis.on('connect', end)
  return () => redis.off('connect', end)
}
