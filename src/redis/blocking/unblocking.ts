import type { Redis } from 'ioredis'
import { ConnectionError, type RedelayedError } from '../../errors.js'
import { asInteger } from '../../store/replies.js'
import type { Identity } from '../connections/predecessors.js'
import { isTransient, translateError } from '../replies/server-errors.js'

const clientIds = new WeakMap<Redis, number>()

/** Connections to servers that may panic when a paused command is unblocked, or whose version is unknown. */
const panicking = new WeakSet<Redis>()
const PANICKING = /^redis_version:(6\.2|7\.0)\./m

/** An id that no connection has: with it a new connection checks whether this user may unblock connections. */
const NO_CONNECTION = Number.MAX_SAFE_INTEGER

/**
 * Learns the id by which a connection can be unblocked, and resolves with it. If the server refuses the id, or refuses to unblock, waits
 * consist of short steps.
 */
export async function learnClientId(redis: Redis): Promise<Identity | undefined> {
  const [id, info, error] = await Promise.all([
    redis.call('CLIENT', 'ID').catch(orRefusal),
    redis.call('INFO', 'server').catch(orRefusal),
    redis.call('CLIENT', 'UNBLOCK', NO_CONNECTION).then(() => undefined, orRefusal),
  ])
  if (typeof info !== 'string' || PANICKING.test(info)) panicking.add(redis)
  if (id instanceof Error) return undefined
  if (error === undefined || isTransient(error)) clientIds.set(redis, asInteger(id))
  return typeof info === 'string' ? { id: asInteger(id), info } : undefined
}

/** The id by which another connection can unblock this one; `undefined` if none can. */
export function clientIdOf(redis: Redis): number | undefined {
  return clientIds.get(redis)
}

/**
 * Ends the connection's command at the server; resolves with whether it did. Redis 7.0 panics when it is asked to unblock a command that
 * `CLIENT PAUSE … WRITE` holds back, as manual failovers do. The pause holds back a script too, so nothing is unblocked during a pause.
 */
export async function unblock(beside: Redis, blocked: Redis, id: number): Promise<boolean> {
  if (!panicking.has(blocked)) return asInteger(await beside.call('CLIENT', 'UNBLOCK', id)) === 1
  const replies = await beside.pipeline().eval('return 0', 0).call('CLIENT', 'UNBLOCK', id).exec()
  const [error, reply] = replies?.[1] ?? []
  if (error) throw error
  return asInteger(reply) === 1
}

function orRefusal(thrown: unknown): RedelayedError {
  const error = translateError(thrown)
  if (error instanceof ConnectionError) throw error
  return error
}
