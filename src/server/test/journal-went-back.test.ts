import { expect } from 'chai'
import { createClient } from 'redelayed'
import { createJournal } from '../index.js'
import { startSqlite } from './support/databases.js'
import { LosableRedis } from './support/losable-redis.js'

const HOUR = 3_600_000

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
})
