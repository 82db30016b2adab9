import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService, type Answer, type TestService } from './support/service.js'

describe('the legacy routes', function () {
  this.timeout(120_000)
  let dir: string
  let redis: LosableRedis
  let server: TestService
  let topic: string

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-legacy-'))
    redis = await LosableRedis.start()
    server = await startTestService({
      redis: redis.url,
      journal: `sqlite:${join(dir, 'journal.db')}`,
      legacyRoutes: true,
      ids: 'snowflake',
    })
    topic = server.topic()
  })
  afterEach(async () => {
    await server.stop()
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const ask: TestService['ask'] = (...args) => server.ask(...args)
  const push = (message: object): Promise<Answer> => ask('POST', '/push', { topic, ...message })
  const get = (query = ''): Promise<Answer> => ask('GET', `/get/${topic}?wait=20000${query}`)
  const total = async (): Promise<number> => (await ask('GET', `/v1/topics/${topic}`)).body.counts.total

  it('push a message, and give it to one consumer, with its lease in a header', async () => {
    const pushed = await push({ bizKey: 'order:7', priority: 2, ttl: 60_000, delay: 10, body: { order: 7 } })
    expect([pushed.status, pushed.body.outcome]).to.deep.equal([200, 'added'])
    expect(pushed.body.id).to.match(/^\d{19}$/)
    const { status, headers, body } = await get()
    expect([status, headers.get('cache-control')]).to.deep.equal([200, 'no-store'])
    expect(body).to.deep.include({
      id: pushed.body.id,
      topic,
      status: 'inFlight',
      bizKey: 'order:7',
      priority: 2,
      body: { order: 7 },
      attempt: 1,
    })
    expect(body).to.not.have.property('lease')
    expect((await ask('GET', `/get/${topic}?wait=0`)).status, 'another consumer gets nothing').to.equal(204)
    const stored = await ask('GET', `/v1/topics/${topic}/messages/${body.id}`)
    expect(stored.body.state).to.equal('inFlight')
    const lease = headers.get('redelayed-lease')
    expect((await ask('POST', '/v1/leases/acknowledge', { leases: [lease] })).body.results).to.deep.equal(['ok'])
    expect(await total()).to.equal(0)
  })

  it('acknowledge by themselves on request', async () => {
    await push({ body: 1 })
    const { body, headers } = await get('&ack=auto')
    expect([body.body, body.status, headers.get('redelayed-lease')]).to.deep.equal([1, 'handled', null])
    expect(await total()).to.equal(0)
  })

  it('take no message by a HEAD', async () => {
    await push({ id: 'a' })
    for (const path of [`/get/${topic}?ack=auto`, '/delete?id=a', '/reStore'])
      expect((await ask('HEAD', path)).status, path).to.equal(405)
    expect(await total()).to.equal(1)
  })

  it('name the topics where a message was not deleted because a consumer has it', async () => {
    const other = server.topic()
    await push({ id: 'a' })
    await ask('POST', '/push', { topic: other, id: 'a', delay: 60_000 })
    expect((await get()).status).to.equal(200)
    const some = await ask('GET', '/delete?id=a')
    expect([some.status, some.body]).to.deep.equal([200, { id: 'a', topics: [other], inFlight: [topic] }])
    const none = await ask('GET', '/delete?id=a')
    expect([none.status, none.body.code]).to.deep.equal([409, 'message-in-flight'])
  })

  it('delete a message by its id alone, or in one topic', async () => {
    const other = server.topic()
    await push({ id: 'a', delay: 60_000 })
    await ask('POST', '/push', { topic: other, id: 'b', delay: 60_000 })
    expect((await ask('GET', '/delete?id=a')).body).to.deep.equal({ id: 'a', topics: [topic] })
    const again = await ask('GET', '/delete?id=a')
    expect([again.status, again.body.code]).to.deep.equal([404, 'message-not-found'])
    expect((await ask('GET', `/delete?id=b&topic=${topic}`)).status).to.equal(404)
    expect((await ask('GET', `/delete?id=b&topic=${other}`)).status).to.equal(200)
    await push({ id: 'c' })
    await get()
    expect((await ask('GET', '/delete?id=c')).body.code, 'a consumer has it').to.equal('message-in-flight')
  })

  it('put back a message of the journal that Redis lacks, and on request expired ones', async () => {
    await push({ id: 'short', ttl: 1, body: 1 })
    await push({ id: 'long', delay: 60_000 })
    // a receive notices expired messages
    await eventually(async () => {
      await ask('GET', `/get/${topic}?wait=0`)
      expect((await ask('GET', `/v1/topics/${topic}/messages/short`)).body.state).to.equal('expired')
    })
    expect((await ask('GET', `/reStore?expire=false&topic=${topic}`)).body).to.deep.equal({
      checked: 1,
      restored: 0,
      refused: 0,
    })
    expect((await ask('GET', `/reStore/short?topic=${topic}&expire=true`)).body).to.deep.equal({
      checked: 1,
      restored: 1,
      refused: 0,
    })
    expect((await get()).body).to.include({ id: 'short', body: 1 })
    expect((await ask('GET', '/reStore?expire=true')).status).to.equal(200)
  })

  it('need the scopes and the topics of the paths that they stand for', async () => {
    const reader = server.addKey(['read', 'consume'])
    const narrow = server.addKey(['push', 'admin'], ['elsewhere*'])
    await push({ id: 'x', delay: 60_000 })
    const asked = async (method: string, path: string, key: string, body?: object): Promise<[number, string]> => {
      const answer = await ask(method, path, body, { key })
      return [answer.status, answer.body.code]
    }
    expect(await asked('POST', '/push', reader, { topic })).to.deep.equal([403, 'forbidden'])
    expect(await asked('POST', '/push', narrow, { topic })).to.deep.equal([403, 'forbidden'])
    expect(await asked('GET', '/delete?id=x', reader)).to.deep.equal([403, 'forbidden'])
    expect(await asked('GET', `/delete?id=x&topic=${topic}`, narrow)).to.deep.equal([403, 'forbidden'])
    expect(await asked('GET', '/delete?id=x', narrow), 'it does not see the topic').to.deep.equal([
      404,
      'message-not-found',
    ])
    expect(await asked('GET', `/reStore?topic=${topic}`, narrow)).to.deep.equal([403, 'forbidden'])
    expect(await asked('GET', `/get/${topic}`, narrow)).to.deep.equal([403, 'forbidden'])
    expect(await total()).to.equal(1)
  })
})

it('the legacy routes are off unless they are asked for, and have nothing to restore without a journal', async function () {
  this.timeout(60_000)
  const plain = await startTestService()
  const legacy = await startTestService({ legacyRoutes: true })
  try {
    for (const path of ['/delete?id=a', '/reStore', '/reStore/a', '/get/a'])
      expect((await plain.ask('GET', path)).status, path).to.equal(404)
    expect((await plain.ask('POST', '/push', { topic: 'a' })).status).to.equal(404)
    const { status, body } = await legacy.ask('GET', '/reStore')
    expect([status, body.code]).to.deep.equal([409, 'no-journal'])
  } finally {
    await plain.stop()
    await legacy.stop()
  }
})
