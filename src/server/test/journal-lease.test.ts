import { expect } from 'chai'
import { createClient } from 'redelayed'
import { createJournal } from '../index.js'
import { parseJournalUrl } from '../config/journal-options.js'
import { JournalDatabase } from '../database/database.js'
import { Positions } from '../journal/positions.js'
import { DATABASES, startOrSkip, startSqlite, type TestServer } from './support/databases.js'
import { LosableRedis } from './support/losable-redis.js'

const HOUR = 3_600_000

for (const database of DATABASES) {
  describe(`the lease of whoever restores a queue, in ${database[0]}`, function () {
    this.timeout(60_000)
    let server: TestServer
    let sql: JournalDatabase

    before(async function () {
      server = await startOrSkip(this, database)
      sql = await JournalDatabase.open(parseJournalUrl(await server.fresh()), { migrate: true })
    })
    after(async () => {
      await sql?.close()
      await server?.stop()
    })

    it('belongs to one process at a time, and ends if that process does not renew it, also where a clock was set back', async () => {
      const positions = new Positions(sql)
      const queue = Buffer.from('mails')
      await positions.load(queue)
      const claim = async (owner: string): Promise<boolean> =>
        (await positions.claimRepair(queue, owner, { pending: false })) !== undefined
      const until = async (): Promise<number> => Number((await positions.row(queue))?.repair_until)
      const endsAt = async (ms: number): Promise<void> => {
        await sql.run((db) => db.updateTable('redelayed_positions').set({ repair_until: ms }).execute())
      }
      expect(await claim('one')).to.equal(true)
      const first = await until()
      expect(first - Date.now(), 'the servers are on this machine').to.be.within(-15_000, 15_500)
      expect([await claim('other'), await claim('one')]).to.deep.equal([false, true])
      expect(await positions.noteRepair(queue, { owner: 'one', generation: 1 }, { stage: 'open', id: null })).to.equal(
        true,
      )
      expect(await until()).to.be.at.least(first)
      expect(await claim('other')).to.equal(false)

      await endsAt(Date.now() - 5_000)
      expect([await claim('other'), await claim('one')]).to.deep.equal([true, false])
      await endsAt(Date.now() + 3_600_000)
      expect([await claim('one'), await claim('other')]).to.deep.equal([true, false])
      await positions.releaseRepair(queue, 'one')
      expect(await claim('other')).to.equal(true)
    })
  })
}

describe('the lease of whoever restores a queue', function () {
  this.timeout(60_000)

  it('ends with the restore: one by hand begins at once', async () => {
    const server = startSqlite()
    const redis = await LosableRedis.start()
    const client = createClient({ url: redis.url, commandTimeout: 1_000 })
    client.on('error', () => undefined)
    const journal = await createJournal({ url: await server.fresh(), sweepMs: 200 })
    try {
      const queue = client.getReliableQueue<string>('mails')
      const mails = await journal.attach(queue)
      await mails.add('x', { id: 'a', delay: HOUR })
      await mails.drain()
      const isBack = new Promise<void>((resolve) => journal.on('restored', (name) => name === queue.name && resolve()))
      await redis.kill()
      await redis.startEmpty()
      await isBack
      const startedAt = performance.now()
      await mails.restore()
      expect(performance.now() - startedAt, 'it waits for a lease of 15 s').to.be.below(10_000)
    } finally {
      await journal.close()
      await client.shutdown()
      await redis.stop()
      await server.stop()
    }
  })
})
