import { expect } from 'chai'
import { Redis } from 'ioredis'
import { codecs, createClient } from 'redelayed'
import { reliableKeys } from '../../keys.js'
import { createJournal } from '../index.js'
import { atMost } from '../pause.js'
import { startSqlite } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'

const HOUR = 3_600_000

/** An entry of a change stream. */
interface Entry {
  readonly id: string
  readonly text: string
}

describe('a Redis that went back in time', function () {
  this.timeout(60_000)

  it('keeps what it has as SQL knows it, also with headers', async () => {
    const server = startSqlite()
    const redis = await LosableRedis.start(['--appendonly', 'yes', '--appendfsync', 'always'])
    const client = createClient({ url: redis.url })
    client.on('error', () => undefined)
    const journal = await createJournal({ url: await server.fresh(), sweepMs: 200 })
    try {
      const queue = client.getReliableQueue<string>('mails')
      const mails = await journal.attach(queue)
      await mails.add('x', { id: 'a', delay: HOUR, headers: { trace: '1' } })
      await mails.drain()
      redis.keepFiles('before b')
      await mails.add('y', { id: 'b', delay: HOUR, headers: { trace: '2' } })
      await mails.drain()
      let restored = 0
      journal.on('restoring', (progress) => {
        if (progress.queue === queue.name) restored = Math.max(restored, progress.restored)
      })
      const isBack = new Promise<void>((resolve) => journal.on('restored', (name) => name === queue.name && resolve()))
      await redis.kill()
      await redis.startWith('before b')
      await isBack
      expect(await queue.size()).to.equal(2)
      expect(restored).to.equal(1)
    } finally {
      await journal.close()
      await client.shutdown()
      await redis.stop()
      await server.stop()
    }
  })

  /**
   * The message "a" is in the snapshot with which Redis comes back, "b" came later; resolves with the messages of Redis after a journal's
   * repair.
   */
  async function afterSnapshot(
    writeMore: (raw: Redis, stream: string, lost: Entry) => Promise<void>,
  ): Promise<string[]> {
    const server = startSqlite()
    const redis = await LosableRedis.start()
    const url = await server.fresh()
    const client = createClient({ url: redis.url })
    client.on('error', () => undefined)
    const raw = new Redis(redis.url)
    raw.on('error', () => undefined)
    try {
      const queue = client.getReliableQueue<string>('mails', { codec: codecs.string() })
      const before = await createJournal({ url, sweepMs: 200 })
      const mails = await before.attach(queue)
      await mails.add('x', { id: 'a', delay: HOUR })
      await mails.drain()
      await raw.bgsave()
      await eventually(async () => expect(await raw.info('persistence')).to.include('rdb_bgsave_in_progress:0'))
      redis.keepFiles('a')
      await mails.add('y', { id: 'b', delay: HOUR })
      await mails.drain()
      await before.close()
      const stream = reliableKeys(queue.name).changes
      const [last] = (await raw.xrevrange(stream, '+', '-', 'COUNT', 1)) as [[string, [string, string]]]
      await redis.kill()
      await redis.startWith('a')
      await raw.ping()
      await writeMore(raw, stream, { id: last[0], text: last[1][1] })
      const after = await createJournal({ url, sweepMs: 200 })
      const isBack = new Promise<void>((resolve) => after.on('restored', (name) => name === queue.name && resolve()))
      await after.attach(queue)
      await atMost(10_000, isBack)
      await after.close()
      const ids: string[] = []
      for await (const page of queue.listAllRaw()) ids.push(...page.map(({ id }) => id))
      return ids.sort()
    } finally {
      raw.disconnect()
      await client.shutdown()
      await redis.stop()
      await server.stop()
    }
  }

  it('is noticed although others have written since, so that its last entry is a later one', async () => {
    const ids = await afterSnapshot(async (raw, stream, { text }) => {
      for (let n = 0; n < 3; n++) await raw.xadd(stream, '*', 'changes', text.replace(/b$/, 'c'))
    })
    expect(ids).to.deep.equal(['a', 'b'])
  })

  it('is noticed although another entry has the id of the last one that SQL has', async () => {
    const ids = await afterSnapshot(async (raw, stream, { id, text }) => {
      await raw.xadd(stream, id, 'changes', text.replace(/b$/, 'c'))
      await raw.xadd(stream, '*', 'changes', text.replace(/b$/, 'd'))
    })
    expect(ids).to.deep.equal(['a', 'b'])
  })
})
