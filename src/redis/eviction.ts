import type { Redis } from 'ioredis'
import type { Emit } from '../events.js'
import { addressOfClient } from './connections/address.js'

/**
 * Warns if a server deletes keys at its memory limit; never rejects. With `volatile-*` the server deletes only keys that expire,
 * which a queue's keys do not, and without a limit none.
 */
export async function warnOfEviction(redis: Redis, emit: Emit): Promise<void> {
  const info = await redis.info('memory').catch(() => '') // without the right to call INFO the policy stays unknown
  const [, policy] = /^maxmemory_policy:(allkeys-[a-z]{1,20})/m.exec(info) ?? []
  if (policy === undefined || /^maxmemory:0\r?$/m.test(info)) return
  const message =
    `the server at ${addressOfClient(redis)} has maxmemory-policy ${policy}: when its memory is full it deletes queues with their messages. ` +
    'Set maxmemory-policy noeviction, or give the queues a Redis of their own'
  emit('warning', { code: 'REDELAYED_EVICTION', message })
}
