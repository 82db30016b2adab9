import type { Redis } from 'ioredis'
import type { Link } from './link.js'

/** After a blocked event loop a timer fires before the socket is read; the reply may be there already. */
const SECOND_CHANCE_MS = 500

/** Gives the connection up when a reply is so late that the socket must be dead, until the returned function is called. */
export function dropWhenOverdue(link: Link, redis: Redis, ms: number): () => void {
  let timer = setTimeout(() => {
    timer = setTimeout(() => link.drop(redis), SECOND_CHANCE_MS)
  }, ms)
  return () => clearTimeout(timer)
}
