/** Another program with a connection to Redis writes into a change stream that a journal reads. */
import { expect } from 'chai'
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { codecs, createClient, type RedelayedClient, type ReliableQueue } from 'redelayed'
import { reliableKeys } from '../../keys.js'
import { createJournal, type Journal, type JournalQueue } from '../index.js'
import { startSqlite, type TestServer } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const MOST = '18446744073709551615'

describe('foreign entries in a change stream with a journal', function () {
  this.timeout(60_000)
  let server: TestServer
  let redis: LosableRedis
  let client: RedelayedClient
  let raw: Redis
  let journal: Journal
  let queue: ReliableQueue<string>
  let mails: JournalQueue<string>
  let stream: string

  before(async () => {
    server = startSqlite()
    redis = await LosableRedis.start()
  })
  after(async () => {
    await redis?.stop()
    await server?.stop()
  })
  beforeEach(async () => {
    raw = new Redis(redis.url)
    client = createClient({ url: redis.url })
    client.on('error', () => undefined).on('quarantined', () => undefined)
    queue = client.getReliableQueue<string>(`mails-${randomUUID()}`, { codec: codecs.string() })
    journal = await createJournal({ url: await server.fresh(), sweepMs: 200 })
    journal.on('error', () => undefined)
    mails = await journal.attach(queue)
    stream = reliableKeys(queue.name).changes
    await mails.add('x', { id: 'a', delay: HOUR })
    await mails.drain()
  })
  afterEach(async () => {
    await journal.close()
    await client.shutdown()
    raw.disconnect()
  })

  async function handle(id: string): Promise<void> {
    await mails.add('x', { id })
    const message = await queue.poll({ timeout: 10_000 })
    expect(message?.id).to.equal(id)
    expect(await message?.acknowledge()).to.equal(true)
  }

  async function differences(): Promise<string[]> {
    const found: string[] = []
    for await (const { id, what } of mails.verify()) found.push(`${id}: ${what}`)
    return found
  }

  /** The epoch of the entry with which the queue's scripts added a message. */
  async function epochOf(): Promise<string> {
    const [first] = await raw.xrange(stream, '-', '+', 'COUNT', 1)
    return first?.[1][1]?.split(' ')[0] ?? ''
  }

  for (const id of [`${MOST}-1`, `${MOST}-${MOST}`, '10000000000000-5']) {
    it(`with the id ${id}, behind which nothing follows, neither stop the queue nor keep a change from SQL`, async () => {
      const isBack = new Promise((resolve) => journal.on('restored', resolve))
      await raw.xadd(stream, id, 'any', 'thing')
      await handle('c')
      // the stream has begun anew; a restore that has read a message may add it once more after it was cancelled
      await isBack
      await mails.add('x', { id: 'b', delay: HOUR })
      expect(await mails.cancel('a')).to.equal(true)
      await eventually(async () => {
        await mails.drain()
        const rows = await Promise.all(['a', 'b', 'c'].map((one) => mails.get(one)))
        expect(rows.map((row) => row?.state)).to.deep.equal(['removed', 'open', 'handled'])
        for (const row of rows) expect(row?.updatedAt).to.be.below(Date.now() + 2 * DAY)
      })
      expect(await differences()).to.deep.equal([])
      expect((await raw.xrevrange(stream, '+', '-', 'COUNT', 1))[0]?.[0]).to.match(/^\d{13}-\d+$/)
    })
  }

  it('from a time that a clock can have, years ahead, keep no row longer than others', async () => {
    await raw.xadd(stream, `${Date.now() + 50 * 365 * DAY}-0`, 'any', 'thing')
    await handle('c')
    await eventually(async () => {
      await mails.drain()
      expect((await mails.get('c'))?.state).to.equal('handled')
    })
    expect((await mails.get('c'))?.updatedAt).to.be.below(Date.now() + 2 * DAY)
    expect(await differences()).to.deep.equal([])
  })

  it('that say a message is handled which is not: it is delivered, and what really happens to it is in SQL', async () => {
    await mails.add('x', { id: 'd' })
    await raw.xadd(stream, '*', 'changes', `${await epochOf()} stranger\nk,,,,1,2,0\nad`)
    await mails.drain()
    expect((await mails.get('a'))?.state).to.equal('handled')
    const found = await differences()
    expect(found).to.include('a: final in SQL')
    const message = await queue.poll({ timeout: 10_000 })
    expect(message?.id).to.equal('d')
    await mails.drain()
    expect((await mails.get('d'))?.state).to.equal('open')
    await message?.acknowledge()
    await queue.reschedule('a', 2 * HOUR)
    await mails.drain()
    expect((await mails.get('a'))?.state).to.equal('open')
    expect((await mails.get('d'))?.state).to.equal('handled')
    expect(await differences()).to.deep.equal([])
  })

  it('that say a handled message was added: no consumer gets it, and it is listed as missing', async () => {
    await handle('c')
    await mails.drain()
    await raw.xadd(stream, '*', 'changes', `${await epochOf()} stranger\na,,1,0,1,1,0\nc`)
    await mails.drain()
    expect(await differences()).to.deep.equal(['c: missing in Redis'])
    expect(await queue.contains('c')).to.equal(false)
    expect(await queue.poll()).to.equal(null)
  })
})
