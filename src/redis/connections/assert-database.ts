import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'

/**
 * Refuses a connection that is at another database than its options say: after a wrong byte in its SELECT, all of its calls would succeed
 * in the other database, and nothing would report it. A server that refuses to answer is not compared: Redis before 6.2, a busy one, or one
 * that gives the user no right to `CLIENT INFO`. Asks nothing for database 0, for which ioredis sends no SELECT.
 */
export async function assertDatabase(redis: Redis): Promise<void> {
  const wanted = redis.options.db ?? 0
  if (wanted === 0) return
  let info: unknown
  try {
    info = await redis.call('CLIENT', 'INFO')
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') return
    throw error
  }
  const found = /(?:^| )db=(\d+)/.exec(String(info))?.[1]
  if (found === undefined || Number(found) === wanted) return
  throw new ConnectionError(`the connection is at database ${found} and not at ${wanted}`, 'not-applied')
}
