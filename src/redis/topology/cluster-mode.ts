import type { Redis } from 'ioredis'
import { addressOfClient } from '../connections/address.js'
import { NeverUsedError } from '../replies/server-errors.js'

/**
 * The server does not know the command, or its cluster mode is off; a reply with a code of its own, such as NOPERM or LOADING, says
 * neither.
 */
const NO_CLUSTER = /^ERR /

type Info = Readonly<Record<string, string | undefined>>
type Callback = (error: Error | null | undefined, info?: Info | null) => void

/** Private members of ioredis; a version may lack the method. */
interface Internals {
  status: string
  _readyCheck?: (callback: Callback) => void
  flushQueue?: (error: Error, ...options: unknown[]) => void
}

/**
 * Refuses a server that is no node of a cluster, while a connection is opened: an address may lead to another server than before, which
 * would accept what is meant for the cluster. Proxies can say in their INFO that they are no cluster, and yet serve one, so its answer to
 * CLUSTER SLOTS decides. Call it before the client connects.
 */
export function refuseOutsideCluster(redis: Redis): Redis {
  const own = redis as unknown as Internals
  const check = own._readyCheck?.bind(redis)
  if (check === undefined) return redis
  const wrapped = new WeakSet<Callback>()
  own._readyCheck = (callback) => {
    // while a server loads its data, ioredis calls the method again, with the same callback
    if (wrapped.has(callback)) {
      check(callback)
      return
    }
    const decide: Callback = (error, info) => {
      if (error || !isInDoubt(info ?? {})) {
        callback(error, info)
        return
      }
      askNow(redis).then(
        () => callback(null, info),
        ({ message }: Error) => callback(NO_CLUSTER.test(message) ? refuse(redis, message) : null, info),
      )
    }
    wrapped.add(decide)
    check(decide)
  }
  return redis
}

/**
 * Whether INFO does not say that the server is a node of a cluster; it is also empty because the user may not call it, or the server
 * answers with nil.
 */
function isInDoubt(info: Info): boolean {
  return info.cluster_enabled !== '1'
}

/** Asks for the slots on a connection that is not ready yet, for which ioredis would keep this command. */
function askNow(redis: Redis): Promise<unknown> {
  const own = redis as unknown as Internals
  const { status } = own
  own.status = 'ready'
  try {
    return redis.cluster('SLOTS')
  } finally {
    own.status = status
  }
}

/** Returns the error of all commands that the client keeps for this connection, also of those that come before its end. */
function refuse(redis: Redis, reply: string): NeverUsedError {
  const error = new NeverUsedError(
    `${addressOfClient(redis)} leads to a server that is no node of a cluster (${reply})`,
  )
  const own = redis as unknown as Internals
  const flush = own.flushQueue?.bind(redis)
  if (flush !== undefined) own.flushQueue = (_, ...options) => flush(error, ...options)
  return error
}
