import { expect } from 'chai'
import { readFileSync, writeFileSync } from 'node:fs'
import { eventually } from './support/eventually.js'
import { startTestService, type TestService } from './support/service.js'

type Body = Record<string, unknown>
describe('the requests of the page over all topics', function () {
  this.timeout(60_000)
  let server: TestService
  beforeEach(async () => {
    server = await startTestService()
  })
  afterEach(() => server.stop())

  const get = async (path: string, key = server.key): Promise<{ status: number; body: Body }> => {
    const { status, body } = await server.ask('GET', path, undefined, { key })
    return { status, body: body as unknown as Body }
  }

  async function push(topic: string, message: object): Promise<void> {
    expect((await server.ask('POST', `/v1/topics/${topic}/messages`, message)).status).to.equal(201)
  }

  /** Dead letters with these ids and reasons. */
  async function makeDeadLetters(
    topic: string,
    letters: readonly (readonly [id: string, error: string])[],
  ): Promise<void> {
    for (const [id, error] of letters) {
      await push(topic, { id })
      const { body } = await server.ask('POST', `/v1/topics/${topic}/receive`, {})
      const leases = body.messages.map(({ lease }) => lease)
      await server.ask('POST', '/v1/leases/negative-acknowledge', { leases, reject: true, error })
    }
  }

  /** A key for one topic: other tests use the same Redis. */
  async function keyFor(topic: string, ...scopes: ('read' | 'admin')[]): Promise<string> {
    const key = server.addKey(scopes, [topic])
    await eventually(async () => {
      expect((await server.ask('GET', '/ui/session', undefined, { key: '-' })).status).to.equal(401)
      expect((await server.ask('POST', '/ui/session', { key }, { key: '-' })).status).to.equal(200)
    })
    return key
  }

  it('has the counts and the oldest message that is due, of the topics of the key only', async () => {
    const topic = server.topic()
    const hidden = server.topic()
    await push(topic, { id: 'due' })
    await push(topic, { id: 'later', delay: 60_000 })
    await push(hidden, { id: 'not yours' })
    await makeDeadLetters(server.topic(), [['x', 'y']])
    const key = await keyFor(topic, 'read')
    await eventually(async () => {
      const { body } = await get('/v1/overview', key)
      expect(body['counts']).to.deep.equal({ total: 2, visible: 1, delayed: 1, inFlight: 0, dead: 0 })
      expect((body['oldestDue'] as Body)['topic']).to.equal(topic)
      expect((body['oldestDue'] as Body)['overdueMs']).to.be.at.least(0)
      expect((body['busiest'] as Body[]).map((each) => each['topic'])).to.deep.equal([topic])
      expect(JSON.stringify(body)).to.not.contain(hidden)
    })
    const { body } = await get('/v1/instances')
    expect((body['instances'] as Body[]).map((each) => each['pid'])).to.include(process.pid)
    expect((await get('/v1/instances', key)).status).to.equal(403)
  })

  it('lists problems, such as pauses and disabled endpoints, and shows the lateness and Redis', async () => {
    const topic = server.topic()
    await push(topic, { id: 'a' })
    // the lateness counts messages handed out from now on
    expect((await get('/v1/overview')).body['lateness']).to.equal(null)
    await server.ask('POST', `/v1/topics/${topic}/receive`, {})
    const { body: endpoint } = await server.ask('POST', '/v1/endpoints', { url: 'https://example.com/hook' })
    await server.ask('PATCH', `/v1/endpoints/${endpoint.id}`, { enabled: false })
    await server.ask('POST', `/v1/topics/${topic}/pause`, {})
    const key = await keyFor(topic, 'read')
    await eventually(async () => {
      const { body } = await get('/v1/overview')
      expect(body['problems']).to.deep.include({
        ...{ severity: 'warning', code: 'endpoint-disabled', endpoint: endpoint.id },
        text: 'The endpoint https://example.com/hook is disabled by an operator',
      })
      expect((body['redis'] as Body)['version']).to.match(/^\d+\.\d+\.\d+/)
      expect((body['redis'] as Body)['usedMemory']).to.be.above(100_000)
      const { p50, p99 } = body['lateness'] as { p50: number; p99: number }
      expect(p50).to.be.at.least(0)
      expect(p99).to.be.at.least(p50)
      const own = (await get('/v1/overview', key)).body
      const text = `The topic ${topic}: receiving is paused`
      expect(own['problems']).to.deep.equal([{ severity: 'warning', code: 'topic-paused', text, topic }])
      expect((own['busiest'] as Body[]).map((each) => each['paused'])).to.deep.equal([['receive']])
      expect(own['redis']).to.deep.include({ version: null, usedMemory: null })
    })
    await server.ask('DELETE', `/v1/endpoints/${endpoint.id}`)
  })

  it('shows whether webhooks flow to endpoints with the last one, and how busy the instances are', async () => {
    const { body: endpoint } = await server.ask('POST', '/v1/endpoints', { url: 'https://example.com/hook' })
    const { body } = await get(`/v1/endpoints/${endpoint.id}`)
    expect(body).to.deep.include({ gate: { state: 'closed', tried: 0, failed: 0 }, last: null })
    const { body: list } = await get('/v1/endpoints?limit=1000')
    expect((list['endpoints'] as Body[]).find(({ id }) => id === endpoint.id)).to.deep.include({ last: null })
    await server.ask('DELETE', `/v1/endpoints/${endpoint.id}`)
    const { instances } = (await get('/v1/instances')).body as { instances: Body[] }
    const own = instances.find(({ url }) => url === server.url)
    expect(own).to.include({ pid: process.pid, waiting: 0 })
    expect(own?.['connections']).to.be.a('number')
    expect(own?.['eventLoopMs']).to.be.at.least(0)
  })

  it('sorts topics by their messages, in pages', async () => {
    const topics = [server.topic(), server.topic(), server.topic()]
    const [few, most, none] = topics as [string, string, string]
    await server.ask('PUT', `/v1/topics/${none}`, {})
    await push(few, { id: 'a', delay: 60_000 })
    await push(most, { id: 'b' })
    await push(most, { id: 'c', delay: 60_000 })
    const part = `test-${process.pid}-`
    const sorted = async (sort: string): Promise<string[]> => {
      const names: string[] = []
      let cursor = ''
      do {
        const { body } = await get(`/v1/topics?search=${part}&sort=${sort}&limit=1${cursor}`)
        names.push(...(body['topics'] as Body[]).map(({ name }) => String(name)))
        cursor = body['cursor'] === undefined ? '' : `&cursor=${body['cursor'] as string}`
      } while (cursor !== '')
      return names.filter((name) => topics.includes(name))
    }
    await eventually(async () => {
      expect(await sorted('total')).to.deep.equal([most, few, none])
      expect((await sorted('oldest'))[0]).to.equal(most)
    })
    expect(await sorted('name')).to.deep.equal([...topics].sort())
    expect((await get('/v1/topics?sort=other')).status).to.equal(400)
  })

  it('ends the stream of a key that is removed', async () => {
    const topic = server.topic()
    await push(topic, { id: 'a' })
    const key = await keyFor(topic, 'read')
    const response = await fetch(`${server.url}/v1/overview/stream`, { headers: { authorization: `Bearer ${key}` } })
    const events: string[] = []
    for await (const chunk of response.body ?? []) {
      events.push(Buffer.from(chunk).toString())
      // only the first key
      if (events.length === 1)
        writeFileSync(server.keysPath, readFileSync(server.keysPath, 'utf8').split('\n')[0] ?? '')
    }
    expect(events[0]).to.contain('event: overview')
  })

  it('streams the overview', async () => {
    const stop = new AbortController()
    const headers = { authorization: `Bearer ${server.key}` }
    const response = await fetch(`${server.url}/v1/overview/stream`, { headers, signal: stop.signal })
    expect(response.headers.get('content-type')).to.equal('text/event-stream')
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      if (text.split('event: overview').length > 2) break
    }
    stop.abort()
    const [, first = ''] = /data: (.*)\n/.exec(text) ?? []
    expect(JSON.parse(first)).to.include.keys('at', 'counts', 'rates', 'series', 'redis', 'journal', 'problems')
  })

  it('counts exactly what is due when', async () => {
    const topic = server.topic()
    const from = Math.ceil(Date.now() / 1_000) * 1_000 + 100_000
    for (const [id, offset, priority] of [
      ['a', 0, 0],
      ['b', 999, 9],
      ['c', 1_000, 3],
      ['d', 59_999, 0],
      ['e', 60_000, 0],
    ] as const)
      await push(topic, { id, dueAt: from + offset, priority })
    await push(topic, { id: 'overdue' })
    const { body } = await get(`/v1/agenda?topic=${topic}&from=${from}&to=${from + 60_000}&buckets=60`)
    const buckets = body['buckets'] as { from: number; to: number; count: number }[]
    expect(buckets).to.have.length(60)
    expect(buckets.filter(({ count }) => count > 0)).to.deep.equal([
      { from, to: from + 1_000, count: 2 },
      { from: from + 1_000, to: from + 2_000, count: 1 },
      { from: from + 59_000, to: from + 60_000, count: 1 },
    ])
    expect(body).to.deep.include({ bucketMs: 1_000, later: 1, exact: true, overdue: 1 })
    expect(
      (await get(`/v1/agenda?topic=${topic}&from=${from}&to=${from + 7}&buckets=500`)).body['buckets'],
    ).to.have.length(7)
    for (const wrong of ['from=-1', 'buckets=0', 'buckets=501', 'from=x', 'topic=a/b', 'from=1e99'])
      expect((await get(`/v1/agenda?${wrong}`)).status, wrong).to.equal(400)
    expect((await get(`/v1/agenda?topic=${topic}-none`)).status).to.equal(404)
  })

  it('redrives and deletes all matching dead letters, and none of other topics, with an entry in the audit log', async () => {
    const [topic, other] = [server.topic(), server.topic()]
    await makeDeadLetters(topic, [
      ['a', 'broken'],
      ['b', 'timeout'],
      ['c', 'broken'],
    ])
    await makeDeadLetters(other, [['z', 'broken']])
    const key = await keyFor(topic, 'admin', 'read')
    const bulk = async (action: string, body: object) =>
      (await server.ask('POST', `/v1/dead-letters/${action}`, body, { key })).body as unknown as Body
    expect(await bulk('redrive', { reason: 'broken', dryRun: true })).to.deep.equal({ matched: 2, done: 0 })
    expect(await bulk('redrive', { reason: 'broken' })).to.deep.equal({ matched: 2, done: 2 })
    expect(await bulk('redrive', { reason: 'broken' })).to.deep.equal({ matched: 0, done: 0 })
    expect(await bulk('delete', { reason: 'timeout' })).to.deep.equal({ matched: 1, done: 1 })
    const { body } = await server.ask('GET', `/v1/topics/${topic}`)
    expect(body.counts).to.deep.include({ total: 2, dead: 0 })
    expect((await server.ask('GET', `/v1/topics/${other}`)).body.counts).to.deep.include({ dead: 1 })
    const audit = JSON.stringify((await get('/v1/audit?limit=10')).body)
    expect(audit).to.contain('/v1/dead-letters/redrive').and.contain('/v1/dead-letters/delete')
    expect((await server.ask('POST', '/v1/dead-letters/delete', { topic: other }, { key })).status).to.equal(403)
    for (const wrong of [{ more: 1 }, { since: -1 }, { cursor: 'x' }])
      expect((await server.ask('POST', '/v1/dead-letters/delete', wrong, { key })).status).to.equal(400)
  })

  it('finds topics by a part of their name, with their counts', async () => {
    const topic = server.topic()
    await push(topic, { id: 'a' })
    const part = topic.slice(5).toUpperCase()
    const { body } = await get(`/v1/topics?search=${part}&counts=1`)
    const [found] = body['topics'] as Body[]
    expect(found).to.deep.include({ name: topic })
    expect(found?.['counts']).to.deep.include({ total: 1, visible: 1 })
    expect((await get(`/v1/topics?search=${part}.%2A`)).body['topics']).to.deep.equal([])
  })
})
