import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redelayed'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'
import { startTestService, type Answer, type TestService } from './support/service.js'

interface Flow {
  readonly flow: readonly { readonly change: string; readonly at: number; readonly attempt?: number }[]
  readonly source: string
}

describe('the service with a journal', function () {
  this.timeout(240_000)
  let redis: LosableRedis
  let dir: string
  let test: TestService

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'redelayed-journal-'))
    redis = await LosableRedis.start()
    test = await startTestService({ redis: redis.url, journal: `sqlite:${join(dir, 'journal.db')}` })
  })
  afterEach(async () => {
    await test.stop()
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const receiveAll = async (topic: string, count: number): Promise<Set<string>> => {
    const got = new Set<string>()
    await eventually(async () => {
      const { body } = await test.ask('POST', `/v1/topics/${topic}/receive`, { max: 500, wait: 500 })
      const messages = body.messages ?? []
      if (messages.length > 0)
        await test.ask('POST', '/v1/leases/acknowledge', { leases: messages.map(({ lease }) => lease) })
      for (const { id } of messages) got.add(id)
      expect(got.size).to.be.at.least(count)
    }, 120_000)
    return got
  }

  it('has every message that was answered with 201 after Redis was killed and lost all its data', async () => {
    const topic = test.topic()
    await test.ask('PUT', `/v1/topics/${topic}`, { shards: 2, visibilityTimeout: 45_000, deliveryLimit: 3 })
    const accepted = new Set<string>()
    const note = ({ status, body }: Answer): void => {
      if (status === 201) accepted.add(body.id)
      for (const result of status === 200 ? (body.results ?? []) : []) if (result.id) accepted.add(result.id)
    }
    const batch = Array.from({ length: 200 }, (_, at) => ({ id: `b${at}`, delay: 3_000, body: at }))
    note(await test.ask('POST', `/v1/topics/${topic}/messages/batch`, batch))
    const push = async (at: number): Promise<void> =>
      note(await test.ask('POST', `/v1/topics/${topic}/messages`, { id: `s${at}`, delay: 1_000, body: at }))
    for (let at = 0; at < 30; at++) await push(at)
    await redis.kill()
    const whileAway = [30, 31, 32].map(push)
    await redis.startEmpty()
    await Promise.all(whileAway)
    for (let at = 33; at < 60; at++) await push(at)
    expect(accepted.size).to.be.greaterThan(220)

    const got = await receiveAll(topic, accepted.size)
    expect([...accepted].filter((id) => !got.has(id))).to.deep.equal([])
    const { body } = await test.ask('GET', `/v1/topics/${topic}`)
    expect(body.settings).to.include({ shards: 2, visibilityTimeout: 45_000, deliveryLimit: 3 })
  })

  it('purges the messages of a business key, and no others', async () => {
    const topic = test.topic()
    await test.ask('PUT', `/v1/topics/${topic}`, { shards: 2, visibilityTimeout: 600_000 })
    const of = (bizKey: string, ids: readonly string[], more = {}) => ids.map((id) => ({ id, bizKey, ...more }))
    const many = Array.from({ length: 450 }, (_, at) => `m${at}`)
    const messages = [
      ...of('order-7', ['held'], { priority: 9 }),
      ...of('order-7', many, { delay: 600_000 }),
      ...of('order-8', ['other'], { delay: 600_000 }),
    ]
    const pushed = await test.ask('POST', `/v1/topics/${topic}/messages/batch`, { messages })
    expect(pushed.body.failed).to.equal(0)
    expect((await test.ask('POST', `/v1/topics/${topic}/receive`)).body.messages.map(({ id }) => id)).to.deep.equal([
      'held',
    ])
    const purge = async (how: object): Promise<number> => {
      let purged = 0
      for (let cursor: string | undefined; ;) {
        const { status, body } = await test.ask('POST', `/v1/topics/${topic}/purge`, {
          ...how,
          ...(cursor && { cursor }),
        })
        expect(status, JSON.stringify(body)).to.equal(200)
        purged += (body as unknown as { purged: number }).purged
        cursor = body.cursor
        if (cursor === undefined) return purged
      }
    }
    expect(await purge({ bizKey: 'order-7', dueTo: 1_000 })).to.equal(0)
    expect(await purge({ bizKey: 'order-7' })).to.equal(450)
    expect(await purge({ bizKey: 'order-7', state: 'inFlight' })).to.equal(1)
    const { counts } = (await test.ask('GET', `/v1/topics/${topic}`)).body
    expect(counts).to.include({ total: 1, delayed: 1 })
    // and they do not come back with what SQL knows
    await redis.kill()
    await redis.startEmpty()
    await eventually(async () => {
      const { body } = await test.ask('GET', `/v1/topics/${topic}`)
      expect(body.counts).to.include({ total: 1, delayed: 1 })
    }, 60_000)
  })

  it('takes a message with an endpoint of its own while Redis is away', async () => {
    const topic = test.topic()
    const { body: endpoint } = await test.ask('POST', '/v1/endpoints', { url: 'https://hooks.example/' })
    await test.ask('PUT', `/v1/topics/${topic}`, { endpoint: endpoint.id })
    const push = (endpoint: string, id: string): Promise<Answer> =>
      test.ask('POST', `/v1/topics/${topic}/messages`, { id, endpoint, delay: 3_600_000 })
    expect((await push(endpoint.id, 'before')).body.outcome).to.equal('added')
    await redis.kill()
    try {
      const answer = await push(endpoint.id, 'meanwhile')
      expect([answer.status, answer.body.outcome], JSON.stringify(answer.body)).to.deep.equal([201, 'journalled'])
    } finally {
      await redis.startEmpty()
    }
    // Redis gets it when no other instance can be about to bring it
    await eventually(async () => {
      const { body } = await test.ask('GET', `/v1/topics/${topic}/messages/meanwhile`)
      expect(body.state).to.be.oneOf(['accepted', 'delayed'])
      expect(body).to.have.property('endpoint', endpoint.id)
    }, 60_000)
    await test.ask('DELETE', `/v1/endpoints/${endpoint.id}?force`)
  })

  it('gives a message the delay that its topic has just got', async () => {
    const topic = test.topic()
    await test.ask('PUT', `/v1/topics/${topic}`, { delay: 1 })
    await test.ask('POST', `/v1/topics/${topic}/messages`, { id: 'before', body: 1 })
    expect(await receiveAll(topic, 1)).to.deep.equal(new Set(['before']))
    await test.ask('PUT', `/v1/topics/${topic}`, { delay: 3_600_000 })
    await test.ask('POST', `/v1/topics/${topic}/messages`, { id: 'after', body: 1 })
    const { body } = await test.ask('GET', `/v1/topics/${topic}/messages/after`)
    expect(body).to.include({ id: 'after', state: 'delayed' })
  })

  it('shows the history of a message that is gone from Redis, and its journal in readiness and metrics', async () => {
    const topic = test.topic()
    await test.ask('POST', `/v1/topics/${topic}/messages`, { id: 'a', body: 1 })
    expect(await receiveAll(topic, 1)).to.deep.equal(new Set(['a']))
    await eventually(async () => {
      const { body } = await test.ask('GET', `/v1/topics/${topic}/messages/a`)
      expect(body.state).to.equal('handled')
      expect(body.flow.map(({ change }) => change)).to.include('acknowledged')
    }, 30_000)
    const path = `/v1/topics/${topic}/messages`
    const { flow, source } = (await test.ask('GET', `${path}/a/flow`)).body as unknown as Flow
    expect(source).to.equal('journal')
    expect(flow.map(({ change }) => change)).to.deep.equal(['added', 'polled', 'acknowledged'])
    expect(flow[1]).to.include({ attempt: 1 })
    for (const { at } of flow) expect(at).to.be.within(Date.now() - 60_000, Date.now() + 1_000)
    expect((await test.ask('GET', `${path}/never/flow`)).body).to.deep.equal({ flow: [], source: 'journal' })
    expect((await test.ask('GET', '/readyz')).body).to.deep.equal({ status: 'ok', journal: 'ok' })
    await eventually(async () => {
      const { body } = await test.ask('GET', '/metrics')
      expect(body).to.match(/^redelayed_journal_up 1$/m)
      expect(body).to.include(`redelayed_journal_lag_changes{topic="${topic}"} 0`)
    }, 30_000)
  })

  it('counts the messages that it did not read when a queue of many began anew', async () => {
    const topic = test.topic()
    for (let from = 0; from < 10_500; from += 1_000) {
      const batch = Array.from({ length: Math.min(1_000, 10_500 - from) }, () => ({ delay: 3_600_000, body: 1 }))
      expect((await test.ask('POST', `/v1/topics/${topic}/messages/batch`, batch)).status).to.equal(200)
    }
    expect((await test.ask('GET', '/metrics')).body).to.match(/^redelayed_journal_left_out_total 0$/m)
    await using client = createClient({ url: redis.url })
    await client.getReliableQueue(topic).setConfig({ changes: false })
    await eventually(async () => {
      const { body } = await test.ask('GET', '/metrics')
      expect(body).to.match(/^redelayed_journal_left_out_total 500$/m)
    }, 60_000)
  })

  it('finds messages by their business key, also final ones, over topics and shards in pages', async () => {
    const [one, two] = [test.topic(), test.topic()]
    await test.ask('PUT', `/v1/topics/${two}`, { shards: 3 })
    const push = (topic: string, id: string, bizKey?: string): Promise<Answer> =>
      test.ask('POST', `/v1/topics/${topic}/messages`, { id, bizKey, delay: id === 'over' ? 0 : 3_600_000, body: 1 })
    for (const id of ['a', 'b', 'c', 'd', 'e']) await push(two, id, 'order 1/ü')
    await push(two, 'f', 'order 2')
    await push(two, 'g')
    await push(one, 'over', 'order 1/ü')
    expect(await receiveAll(one, 1)).to.deep.equal(new Set(['over']))
    const list = async (query: string, path = '/v1/messages'): Promise<string[]> => {
      const found: string[] = []
      for (let cursor = ''; ;) {
        const { status, body } = await test.ask('GET', `${path}?${query}${cursor}`)
        expect(status, JSON.stringify(body)).to.equal(200)
        found.push(...body.messages.map(({ id, state }) => `${id} ${state}`))
        if (body.cursor === undefined) return found
        cursor = `&cursor=${body.cursor}`
      }
    }
    const key = `bizKey=${encodeURIComponent('order 1/ü')}`
    const waiting = ['a', 'b', 'c', 'd', 'e'].map((id) => `${id} delayed`)
    await eventually(async () => expect(await list(`${key}&limit=2`)).to.have.members([...waiting, 'over handled']))
    expect(await list(`${key}&topic=${two}&limit=2`)).to.deep.equal(waiting)
    expect(await list(`${key}&state=delayed&limit=1`)).to.have.members(waiting)
    expect(await list('bizKey=order%203')).to.deep.equal([])
    expect(await list(`${key}&id=a`)).to.deep.equal(['a delayed'])
    expect(await list(`${key}&id=f`)).to.deep.equal([])
    const path = (topic: string): string => `/v1/topics/${topic}/messages`
    expect(await list(`${key}&limit=2`, path(two))).to.deep.equal(waiting)
    expect(await list(`${key}&limit=1&state=visible`, path(two))).to.deep.equal([])
    expect(await list(key, path(one))).to.deep.equal(['over handled'])
    const { body: page } = await test.ask('GET', `${path(two)}?${key}&limit=1`)
    expect(page.messages[0]).to.include({ id: 'a', body: 1, bizKey: 'order 1/ü' })
    const blind = test.addKey(['read'], ['*'], true)
    await eventually(async () => {
      const { status } = await test.ask('GET', `${path(two)}?${key}`, undefined, { key: blind })
      expect(status).to.equal(403)
    })
  })

  it('refuses replace and postpone, which the journal cannot order', async () => {
    const answer = await test.ask('POST', `/v1/topics/${test.topic()}/messages`, { id: 'a', existing: 'replace' })
    expect([answer.status, answer.body.code]).to.deep.equal([409, 'not-with-journal'])
  })
})
