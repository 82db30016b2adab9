import { expect } from 'chai'
import { codecs, createClient } from 'redelayed'
import { createJournal, JournalError } from '../index.js'
import { startMariadb, statement } from './support/databases.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService } from './support/service.js'

const HOUR = 3_600_000
const LARGE = 'x'.repeat(400_000)

describe('payloads that come by the change stream and are larger than MariaDB takes', function () {
  this.timeout(60_000)

  it('are left out and reported, and keep no later changes from SQL', async function () {
    const server = await startMariadb()
    if (server === undefined) return this.skip()
    const url = await server.fresh()
    await statement(url, 'set global max_allowed_packet = 1048576') // 320 KiB of a payload
    const redis = await LosableRedis.start()
    const client = createClient({ url: redis.url })
    client.on('error', () => undefined)
    const journal = await createJournal({ url, background: false })
    const said: string[] = []
    journal.on('error', (error) => {
      expect(error).to.be.instanceOf(JournalError).with.property('code', 'ERR_JOURNAL_TOO_LARGE')
      said.push(/"(\w+)"/.exec((error as JournalError).message)?.[1] ?? '')
    })
    try {
      const queue = client.getReliableQueue<string>('mails', { codec: codecs.string() })
      const mails = await journal.attach(queue)
      await mails.drain()
      await queue.add('small', { id: 'first', delay: HOUR })
      await queue.add('small', { id: 'updated', delay: HOUR })
      await mails.add('small', { id: 'accepted', delay: HOUR })
      await queue.updatePayload('accepted', LARGE) // before SQL has read that Redis has it
      await queue.add('small', { id: 'reused' })
      expect(await (await queue.poll({ timeout: 5_000 }))?.acknowledge()).to.equal(true)
      await mails.drain()
      expect(String((await mails.get('accepted'))?.payload), 'what was accepted stays').to.equal('small')
      await queue.add(LARGE, { id: 'large', delay: HOUR })
      await queue.updatePayload('updated', LARGE)
      await queue.add(LARGE, { id: 'reused', delay: HOUR })
      await queue.add('small', { id: 'together', delay: HOUR })
      await queue.updatePayload('together', LARGE)
      await queue.updatePayload('together', `${LARGE}${LARGE}`)
      await queue.add('small', { id: 'last', delay: HOUR })
      await mails.drain()
      expect(said.sort()).to.deep.equal(['accepted', 'large', 'reused', 'together', 'updated'])
      expect(journal.tooLarge).to.equal(5)
      expect(await mails.get('last')).to.include({ state: 'open' })
      expect(await mails.get('large')).to.equal(null)
      expect(await mails.get('reused'), 'that was handled says nothing of this one').to.equal(null)
      expect(String((await mails.get('updated'))?.payload), 'what SQL has of it stays').to.equal('small')
      expect(String((await mails.get('together'))?.payload), 'what it had before').to.equal('small')
      const found: string[] = []
      for await (const { id, what } of mails.verify()) found.push(`${id}: ${what}`)
      expect([...new Set(found)].sort()).to.deep.equal([
        'accepted: too large for SQL',
        'large: too large for SQL',
        'reused: too large for SQL',
        'together: too large for SQL',
        'updated: too large for SQL',
      ])
      expect((await mails.add('small', { id: 'large', delay: HOUR })).outcome, 'the message in Redis stays').to.equal(
        'kept',
      )
      expect(await mails.get('large'), 'no row of a message that is nowhere').to.equal(null)
      await queue.remove('large')
      await mails.drain()
      expect((await queue.changeStatus()).groups[0]).to.include({ lag: 0 })
    } finally {
      await journal.close()
      await client.shutdown()
      await redis.stop()
      await server.stop()
    }
  })
  it('are counted by the metrics of a service', async function () {
    const server = await startMariadb()
    if (server === undefined) return this.skip()
    const url = await server.fresh()
    await statement(url, 'set global max_allowed_packet = 1048576')
    const redis = await LosableRedis.start()
    const service = await startTestService({ redis: redis.url, journal: url })
    const client = createClient({ url: redis.url })
    try {
      const topic = service.topic()
      expect((await service.ask('PUT', `/v1/topics/${topic}`, {})).status).to.equal(201)
      expect((await service.ask('GET', '/metrics')).body).to.match(/^redelayed_journal_too_large_total 0$/m)
      await client.getReliableQueue<string>(topic, { codec: codecs.string() }).add(LARGE, { delay: HOUR })
      await eventually(async () => {
        const { body } = await service.ask('GET', '/metrics')
        expect(body).to.match(/^redelayed_journal_too_large_total 1$/m)
      }, 30_000)
    } finally {
      await client.shutdown()
      await service.stop()
      await redis.stop()
      await server.stop()
    }
  })
})
