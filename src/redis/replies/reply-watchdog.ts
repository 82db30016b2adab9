import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { MIN_BYTES_PER_SECOND, bytesReadOf } from './progress.js'

/** After a blocked event loop a timer fires before the socket is read; the reply may be there already. */
const SECOND_CHANCE_MS = 500
/** How often it looks for bytes within the grace. */
const LOOKS = 4
/** So many times the grace a reply may come as slowly as if it did not come: an element in it would be lost. */
const SLOW_GRACES = 20

export interface Overdue {
  /** When the server should have answered, in milliseconds from now. */
  readonly dueMs: number
  /** How much longer it may be silent. A reply that is on its way is waited for. */
  readonly graceMs: number
  /** How long it may take from now on, even when bytes come. Without it there is no end while they come fast enough. */
  readonly mostMs?: number
}

/**
 * Gives the connection up when a reply is overdue and no byte came within the grace time, so that the socket must be dead, until the
 * returned function is called. While bytes come the reply is waited for, because it may carry what the server has just removed.
 */
export function dropWhenOverdue(
  link: ReconnectingConnection,
  redis: Redis,
  { dueMs, graceMs, mostMs = Infinity }: Overdue,
): () => void {
  const slowMs = SLOW_GRACES * graceMs
  const least = (MIN_BYTES_PER_SECOND * slowMs) / 1000
  const end = performance.now() + mostMs
  let bytes = bytesReadOf(redis)
  let quietLooks = 0
  /** What had come when the current stretch of slow progress began. */
  let slow = { since: performance.now() + dueMs, bytes }
  const whyStuck = (): string | undefined => {
    const now = performance.now()
    if (quietLooks >= LOOKS) return `the server owed a reply and sent no byte of it for ${graceMs / 1000} s`
    if (now >= end) return `a reply was not complete after ${mostMs / 1000} s`
    if (now - slow.since < slowMs) return undefined
    if (bytes - slow.bytes < least) return `a reply came with less than ${MIN_BYTES_PER_SECOND} bytes a second`
    slow = { since: now, bytes }
    return undefined
  }
  const observe = (): void => {
    const before = bytes
    bytes = bytesReadOf(redis)
    quietLooks = bytes === before ? quietLooks + 1 : 0
  }
  const look = (): void => {
    observe()
    const isStuck = whyStuck() !== undefined
    timer = setTimeout(isStuck ? lookAgain : look, isStuck ? SECOND_CHANCE_MS : graceMs / LOOKS)
  }
  const lookAgain = (): void => {
    observe()
    const why = whyStuck()
    if (why === undefined) look()
    else link.drop(redis, new ConnectionError(why, 'unknown'))
  }
  let timer = setTimeout(look, dueMs + graceMs / LOOKS)
  return () => clearTimeout(timer)
}
