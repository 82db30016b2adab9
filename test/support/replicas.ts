import { expect } from 'chai'
import { Redis } from 'ioredis'
import { eventually } from './events.js'
import { startRedis, type RedisServer } from './redis-server.js'

/** Replicas sync at once, and no ping moves the offset of the replication. */
export const FAST = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '3600']

export async function startReplica(master: { port: number }): Promise<RedisServer> {
  const replica = await startRedis({ args: [...FAST, '--replicaof', '127.0.0.1', String(master.port)] })
  await untilLinked(replica.port)
  return replica
}

export async function untilLinked(port: number): Promise<void> {
  const plain = new Redis({ port, protocol: 2 })
  try {
    await eventually(async () => expect(await plain.info('replication')).to.include('master_link_status:up'), 10_000)
  } finally {
    plain.disconnect()
  }
}

/** Resolves when a WAIT blocks its connection. */
export async function untilWaiting(redis: Redis): Promise<void> {
  await eventually(async () => expect(await redis.info('clients')).to.match(/blocked_clients:[1-9]/))
}

export async function replicationOffset(redis: Redis): Promise<number> {
  return Number(/master_repl_offset:(\d+)/.exec(await redis.info('replication'))?.[1])
}
