import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import type { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { MIN_BYTES_PER_SECOND, bytesReadOf } from './progress.js'

/** After a blocked event loop a timer fires before the socket is read, and the reply may already be in the socket. */
const SECOND_CHANCE_MS = 500
/** The number of checks for new bytes within the grace time. */
const CHECKS = 4
/** How many grace times a reply may make next to no progress: dropping it loses the element in it. */
const SLOW_GRACES = 20

export interface OverdueReply {
  /** When the reply is due, in milliseconds from now. */
  readonly dueMs: number
  /** The grace time: how much longer the server may be silent. A reply whose bytes arrive is awaited. */
  readonly graceMs: number
  /** How long the reply may take from now on, even while bytes arrive. By default there is no limit while they arrive fast enough. */
  readonly mostMs?: number
}

/**
 * Drops the connection when a reply is overdue and no byte came within the grace time, so that the socket must be dead, until the
 * returned function is called. While bytes come it waits, because the reply may carry an element that the server has just removed.
 */
export function dropWhenOverdue(
  connection: ReconnectingConnection,
  redis: Redis,
  { dueMs, graceMs, mostMs = Infinity }: OverdueReply,
): () => void {
  const slowMs = SLOW_GRACES * graceMs
  const least = (MIN_BYTES_PER_SECOND * slowMs) / 1000
  const end = performance.now() + mostMs
  let bytes = bytesReadOf(redis)
  let quietChecks = 0
  /** The bytes received when the current period of slow progress began. */
  let slow = { since: performance.now() + dueMs, bytes }
  const whyStuck = (): string | undefined => {
    const now = performance.now()
    if (quietChecks >= CHECKS) return `the server owed a reply and sent no byte of it for ${graceMs / 1000} s`
    if (now >= end) return `a reply was not complete after ${mostMs / 1000} s`
    if (now - slow.since < slowMs) return undefined
    if (bytes - slow.bytes < least) return `a reply came with less than ${MIN_BYTES_PER_SECOND} bytes a second`
    slow = { since: now, bytes }
    return undefined
  }
  const observe = (): void => {
    const before = bytes
    bytes = bytesReadOf(redis)
    quietChecks = bytes === before ? quietChecks + 1 : 0
  }
  const check = (): void => {
    observe()
    const isStuck = whyStuck() !== undefined
    timer = setTimeout(isStuck ? recheck : check, isStuck ? SECOND_CHANCE_MS : graceMs / CHECKS)
  }
  const recheck = (): void => {
    observe()
    const why = whyStuck()
    if (why === undefined) check()
    else connection.drop(redis, new ConnectionError(why, 'unknown'))
  }
  let timer = setTimeout(check, dueMs + graceMs / CHECKS)
  return () => clearTimeout(timer)
}
