import { createHash, randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { createClient } from 'redelayed'
import { startRedis } from '../../../../test/support/redis-server.js'
import { rightsIn } from './rights.js'

/** A Redis that the service has never seen: a delayed queue of Java, ordinary and sharded ones of the library, and a reliable one. */
export interface LibraryRedis {
  readonly url: string
  /** The URL of a user who may only read. */
  readonly readerUrl: string
  readonly admin: Redis
  /** When the message of Java is due. */
  readonly javaDue: number
  /** The digest of all keys with their values. */
  digest(): Promise<string>
  stop(): Promise<void>
}

const HOUR = 3_600_000

export async function startLibraryRedis(): Promise<LibraryRedis> {
  const server = await startRedis()
  const admin = new Redis(server.url)
  await admin.call('ACL', 'SETUSER', 'reader', 'on', '>secret', ...rightsIn('page.md', 'reader'))
  const [javaDue, entry] = [Date.now() + HOUR, javaEntry('from Java')]
  await admin
    .multi()
    .zadd('redisson_delay_queue_timeout:{java}', javaDue, entry)
    .rpush('redisson_delay_queue:{java}', entry)
    .rpush('redelayed:quarantine:{java}', Buffer.concat([Buffer.from(`decode ${Date.now()} `), Buffer.from([0xff, 0])]))
    .exec()
  const client = createClient({ url: server.url })
  try {
    const orders = client.getDelayedQueue(client.getQueue('orders'), { deliver: false })
    await orders.offer({ id: 1 }, '0ms')
    await orders.offer({ id: 2 }, '2h')
    const parts = client.getShardedDelayedQueue('parts', { shards: 4, deliver: false })
    for (let id = 0; id < 8; id++) await parts.offer({ id }, '20m')
    const mails = client.getReliableQueue('mails')
    await mails.add('bad', { id: 'dead' })
    await (await mails.poll())?.negativeAcknowledge({ reject: true, error: 'no such address' })
    await mails.add('x'.repeat(10_000), { id: 'now' })
    await mails.add('later', { id: 'later', delay: '2h' })
  } finally {
    await client.shutdown()
  }
  return {
    ...{ url: server.url, admin, javaDue },
    readerUrl: server.url.replace('://', '://reader:secret@'),
    async digest() {
      const hash = createHash('sha256')
      for (const key of (await admin.keys('*')).sort()) hash.update(key).update((await admin.dumpBuffer(key)) ?? '')
      return hash.digest('hex')
    },
    async stop() {
      admin.disconnect()
      await server.stop()
    },
  }
}

/** A pending entry as Redisson packs it. */
function javaEntry(payload: string): Buffer {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(payload.length))
  return Buffer.concat([Buffer.from([8]), randomBytes(8), length, Buffer.from(payload)])
}
