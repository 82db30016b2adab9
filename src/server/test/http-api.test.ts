import { expect } from 'chai'
import { Redis } from 'ioredis'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { codecs, createClient } from 'redelayed'
import { redisUrl } from '../../../test/support/redis.js'
import { eventually } from './support/eventually.js'
import { startTestService, type AnsweredMessage, type Answer, type TestService } from './support/service.js'

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('the HTTP API', function () {
  this.timeout(30_000)
  let server: TestService
  let topic: string
  beforeEach(async () => {
    server = await startTestService()
    topic = server.topic()
  })
  afterEach(() => server.stop())

  const ask: TestService['ask'] = (...args) => server.ask(...args)
  const push = (message: object): Promise<Answer> => ask('POST', `/v1/topics/${topic}/messages`, message)
  const receive = (how: object = {}): Promise<Answer> => ask('POST', `/v1/topics/${topic}/receive`, how)
  const one = async (how: object = {}): Promise<AnsweredMessage> =>
    (await receive({ wait: 10_000, ...how })).body.messages[0]!
  const leases = (what: string, body: object): Promise<Answer> => ask('POST', `/v1/leases/${what}`, body)

  function expectProblem(answer: Answer, status: number, code: string): void {
    expect([answer.status, answer.body.code], JSON.stringify(answer.body)).to.deep.equal([status, code])
    expect(answer.headers.get('content-type')).to.match(/^application\/problem\+json/)
    expect(answer.body).to.include({ type: `urn:redelayed:problem:${code}`, status })
    expect(answer.body.requestId).to.equal(answer.headers.get('x-request-id'))
  }

  describe('pushing and receiving', () => {
    it('gives a consumer the pushed message, and removes it when it is acknowledged', async () => {
      const before = Date.now()
      const pushed = await push({ body: { order: 7 }, headers: { trace: 'x' }, bizKey: 'order:7', priority: 3 })
      expect(pushed.status).to.equal(201)
      expect(pushed.body.id).to.match(UUID_7)
      expect(pushed.body).to.include({ outcome: 'added' })
      expect(pushed.body.dueAt).to.be.within(before - 5_000, Date.now() + 5_000)
      expect(pushed.headers.get('location')).to.equal(`/v1/topics/${topic}/messages/${pushed.body.id}`)
      const message = await one()
      expect(message).to.deep.include({
        id: pushed.body.id,
        body: { order: 7 },
        headers: { trace: 'x' },
        bizKey: 'order:7',
      })
      expect(message).to.include({ attempt: 1, priority: 3 })
      expect((await leases('acknowledge', { leases: [message.lease] })).body).to.deep.equal({ results: ['ok'] })
      expect((await leases('acknowledge', { leases: [message.lease] })).body).to.deep.equal({ results: ['lost'] })
      expect((await ask('GET', `/v1/topics/${topic}`)).body.counts).to.include({ total: 0 })
    })

    it('is on time: not before the delay, by the clock of Redis', async () => {
      await push({ delay: 3_000, body: 'later' })
      expect((await receive()).body.messages).to.deep.equal([])
      const message = await one()
      expect(message.body).to.equal('later')
      const pushed = await push({ dueAt: new Date(Date.now() + 60_000).toISOString(), body: 1 })
      const { body: stored } = await ask('GET', `/v1/topics/${topic}/messages/${pushed.body.id}`)
      expect(stored).to.include({ state: 'delayed', dueAt: pushed.body.dueAt })
    })

    it('keeps JSON values of all kinds, and bytes, as they are', async () => {
      const values = [null, true, 0, -1.5, '', 'ü €', [], {}, [{ a: [1] }], { ü: { b: null } }]
      for (const [n, body] of values.entries()) await push({ id: String(n), body })
      const bytes = Buffer.from([0, 255, 1, 254])
      await push({ id: 'bytes', bodyBase64: bytes.toString('base64') })
      await push({ id: 'none' })
      const { body } = await receive({ max: 100 })
      const got = new Map<string, Record<string, unknown>>(body.messages.map((each: { id: string }) => [each.id, each]))
      values.forEach((value, n) => expect(got.get(String(n))?.['body']).to.deep.equal(value))
      expect(got.get('bytes'))
        .to.include({ bodyBase64: bytes.toString('base64') })
        .and.not.have.property('body')
      expect(got.get('none')?.['body']).to.equal(null)
    })

    it('shares the queue with programs that use the library', async () => {
      const client = createClient({ url: redisUrl() })
      try {
        await push({ body: { from: 'http' }, id: 'a' })
        const queue = client.getReliableQueue<{ from: string }>(topic, { codec: codecs.json<{ from: string }>() })
        const message = await queue.poll()
        expect(message?.payload).to.deep.equal({ from: 'http' })
        await message?.acknowledge()
        await queue.add({ from: 'library' }, { id: 'b' })
        expect(await one()).to.deep.include({ id: 'b', body: { from: 'library' } })
        await client
          .getReliableQueue<Uint8Array>(topic, { codec: codecs.bytes() })
          .add(Buffer.from('{no JSON'), { id: 'c' })
        expect(await one()).to.deep.include({ id: 'c', bodyBase64: Buffer.from('{no JSON').toString('base64') })
      } finally {
        await client.shutdown()
      }
    })

    it('keeps, replaces or postpones a message with the same id', async () => {
      expect((await push({ id: 'x', body: 1, delay: 60_000 })).status).to.equal(201)
      const kept = await push({ id: 'x', body: 2 })
      expect([kept.status, kept.body]).to.deep.equal([200, { id: 'x', outcome: 'kept' }])
      expect((await push({ id: 'x', body: 3, delay: 90_000, existing: 'postpone' })).body.outcome).to.equal('postponed')
      expect((await push({ id: 'x', body: 4, existing: 'replace' })).body.outcome).to.equal('replaced')
      expect((await one()).body).to.equal(4)
    })

    it('a long poll gets a message that is pushed while it waits', async () => {
      await push({ body: 0 })
      await one()
      const waiting = one()
      await eventually(async () =>
        expect((await ask('GET', '/metrics')).body).to.include('redelayed_waiting_receives 1'),
      )
      await push({ body: 'now' })
      expect((await waiting).body).to.equal('now')
    })

    it('gives messages back, later or at once, and makes dead letters of those that fail too often', async () => {
      await ask('PUT', `/v1/topics/${topic}`, { retryDelays: [60_000, 1], deliveryLimit: 2 })
      await push({ id: 'x', body: 1 })
      const first = await one()
      expect(
        (await leases('negative-acknowledge', { leases: [first.lease], error: 'busy' })).body.results,
      ).to.deep.equal(['ok'])
      const { body: stored } = await ask('GET', `/v1/topics/${topic}/messages/x`)
      expect(stored).to.include({ state: 'delayed', attempts: 1 })
      expect(stored.dueAt - Date.now()).to.be.within(40_000, 61_000)
      expect(stored.failures[0]?.reason).to.include('busy')
      expect((await ask('PATCH', `/v1/topics/${topic}/messages/x`, { delay: 0 })).status).to.equal(200)
      const second = await one()
      expect(second.attempt).to.equal(2)
      await leases('negative-acknowledge', { leases: [second.lease] })
      expect((await ask('GET', `/v1/topics/${topic}/messages/x`)).body.state).to.equal('dead')
      const dead = await ask('GET', `/v1/topics/${topic}/dead-letters`)
      expect(dead.body.messages.map(({ id, state }) => [id, state])).to.deep.equal([['x', 'dead']])
      expect((await ask('POST', `/v1/topics/${topic}/dead-letters/redrive`, { ids: ['x', 'y'] })).body).to.deep.equal({
        redriven: 1,
      })
      expect((await one()).attempt).to.equal(1)
    })

    it('applies the retry delays of a message when it is given back', async () => {
      await ask('PUT', `/v1/topics/${topic}`, { retryDelays: [100_000] })
      const retryDelays = [0, 3_600_000]
      await push({ id: 'own', body: 1, retryDelays })
      await push({ id: 'other', body: 2, priority: 1, retryDelays: [] })
      const waits: number[] = []
      for (const id of ['other', 'own', 'own']) {
        const received = await one()
        expect(received).to.include({ id })
        if (id === 'own') expect(received).to.deep.include({ retryDelays, headers: {} })
        const given = await leases('negative-acknowledge', { leases: [received.lease] })
        expect(given.body.results).to.deep.equal(['ok'])
        waits.push((await ask('GET', `/v1/topics/${topic}/messages/${id}`)).body.dueAt - Date.now())
      }
      expect(waits[0]).to.be.within(50_000, 100_500)
      expect(waits[1]).to.be.below(500)
      expect(waits[2]).to.be.within(3_550_000, 3_600_500)
    })

    it('extends a lease, and rejects', async () => {
      await push({ id: 'x' })
      const { lease, leasedUntil } = await one({ visibilityTimeout: 5_000 })
      expect((await leases('extend', { leases: [lease], visibilityTimeout: 60_000 })).body.results).to.deep.equal([
        'ok',
      ])
      const { body: stored } = await ask('GET', `/v1/topics/${topic}/messages/x`)
      expect(stored.state).to.equal('inFlight')
      expect(stored.dueAt).to.be.greaterThan(leasedUntil + 30_000)
      await leases('negative-acknowledge', { leases: [lease], reject: true })
      expect((await ask('POST', `/v1/topics/${topic}/dead-letters/redrive`)).body).to.deep.equal({ redriven: 1 })
    })

    it('leases of several topics are answered in their order', async () => {
      await push({ body: 1 })
      const a = await one()
      topic = server.topic()
      await push({ body: 2 })
      const b = await one()
      await leases('acknowledge', { leases: [a.lease] })
      const answer = await leases('acknowledge', {
        leases: [b.lease, a.lease, b.lease.replace(topic, `${topic}-none`)],
      })
      expect(answer.body.results).to.deep.equal(['ok', 'lost', 'lost'])
    })
  })

  describe('messages', () => {
    it('are shown, changed and removed while no consumer has them', async () => {
      await push({ id: 'a/b ü', body: 1, delay: 60_000 })
      const path = `/v1/topics/${topic}/messages/${encodeURIComponent('a/b ü')}`
      expect((await ask('GET', path)).body).to.include({ id: 'a/b ü', body: 1, priority: 0 })
      const dueAt = Date.now() + 3_600_000
      const changed = await ask('PATCH', path, { priority: 9, body: [2], dueAt })
      expect(changed.body).to.deep.include({ priority: 9, body: [2] })
      expect(changed.body.dueAt).to.equal(dueAt)
      const onlyPriority = await ask('PATCH', path, { priority: 1 })
      expect(onlyPriority.body.dueAt).to.equal(dueAt)
      expect((await ask('DELETE', path)).status).to.equal(204)
      expectProblem(await ask('DELETE', path), 404, 'message-not-found')
      expectProblem(await ask('GET', path), 404, 'message-not-found')
      expectProblem(await ask('PATCH', path, { delay: 0 }), 404, 'message-not-found')
    })

    it('of bytes get no JSON in their place, which consumers would read as bytes', async () => {
      await push({ id: 'bytes', bodyBase64: 'AAE=', delay: 60_000 })
      const answer = await ask('PATCH', `/v1/topics/${topic}/messages/bytes`, { body: { a: 1 } })
      expect([answer.status, answer.body.code]).to.deep.equal([409, 'message-has-bytes'])
      const { body } = await ask('GET', `/v1/topics/${topic}/messages/bytes`)
      expect(body.bodyBase64).to.equal('AAE=')
    })

    it('stay as they are while a consumer has them, unless they are removed by force', async () => {
      await push({ id: 'x', body: 1 })
      const { lease } = await one()
      const path = `/v1/topics/${topic}/messages/x`
      expectProblem(await ask('PATCH', path, { delay: 0 }), 409, 'message-in-flight')
      expectProblem(await ask('DELETE', path), 409, 'message-in-flight')
      expect((await ask('DELETE', `${path}?force`)).status).to.equal(204)
      expect((await leases('acknowledge', { leases: [lease] })).body.results).to.deep.equal(['lost'])
    })

    it('are listed in pages, each once', async () => {
      const messages = Array.from({ length: 25 }, (_, n) => ({ id: `m${n}`, delay: 60_000 + n }))
      await ask('POST', `/v1/topics/${topic}/messages/batch`, messages)
      const ids: string[] = []
      let query = '?limit=10'
      for (let pages = 0; pages < 3; pages++) {
        const { body } = await ask('GET', `/v1/topics/${topic}/messages${query}`)
        ids.push(...body.messages.map(({ id }: { id: string }) => id))
        query = `?limit=10&cursor=${body.cursor}`
        if (pages === 2) expect(body).not.to.have.property('cursor')
      }
      expect(ids).to.deep.equal(messages.map(({ id }) => id))
      expect((await ask('GET', `/v1/topics/${topic}/messages?state=visible`)).body).to.deep.equal({ messages: [] })
      const forged = ['0;1000001;', '256;0;', '0;9007199254740992;', '0;1;1;', '0;'].map((place) =>
        Buffer.from(place).toString('base64url'),
      )
      for (const cursor of ['x', 'WzFd', 'WyJhIiwxXQ', 'Wy0xLDBd', ...forged])
        expectProblem(await ask('GET', `/v1/topics/${topic}/messages?cursor=${cursor}`), 400, 'invalid-cursor')
    })
  })

  describe('batches', () => {
    it('accept or refuse each message by itself, in order', async () => {
      const { status, body } = await ask('POST', `/v1/topics/${topic}/messages/batch`, {
        messages: [
          { id: 'a' },
          { id: 'a' },
          { priority: 10 },
          7,
          { id: 'b', bodyBase64: '*' },
          { id: 'c', existing: 'replace' },
        ],
      })
      expect(status).to.equal(200)
      const shown = body.results.map((each) => each.outcome ?? each.problem?.code)
      expect(shown).to.deep.equal(['added', 'kept', 'invalid-request', 'invalid-request', 'invalid-message', 'added'])
      expect(body.failed).to.equal(3)
    })

    it('come as lines too', async () => {
      const raw = '{"id":"a","body":1}\r\n\n{"id":"b","id":"c"}\n{"id"\n{"id":"d"}'
      const headers = { 'content-type': 'application/x-ndjson' }
      const { body } = await ask('POST', `/v1/topics/${topic}/messages/batch`, undefined, { raw, headers })
      const shown = body.results.map((each) => each.id ?? each.problem?.code)
      expect(shown).to.deep.equal(['a', 'repeated-key', 'malformed-json', 'd'])
      expectProblem(
        await ask('POST', `/v1/topics/${topic}/messages`, undefined, { raw, headers }),
        415,
        'unsupported-media-type',
      )
    })

    it('of lines with too many values together are refused whole, as an array of them is', async () => {
      const message = JSON.stringify({ body: Array(1_000).fill(1) })
      const path = `/v1/topics/${topic}/messages/batch`
      await ask('PUT', `/v1/topics/${topic}`, {})
      const lines = Array<string>(500).fill(message)
      const headers = { 'content-type': 'application/x-ndjson' }
      expectProblem(await ask('POST', path, undefined, { raw: lines.join('\n'), headers }), 400, 'json-too-many-values')
      expectProblem(await ask('POST', path, undefined, { raw: `[${lines.join()}]` }), 400, 'json-too-many-values')
      expect((await ask('GET', `/v1/topics/${topic}`)).body.counts).to.include({ total: 0 })
      const fewer = lines.slice(0, 490).join('\n')
      expect((await ask('POST', path, undefined, { raw: fewer, headers })).body.failed).to.equal(0)
    })

    it('of more than the limit, of none, and of no messages are refused whole', async () => {
      const path = `/v1/topics/${topic}/messages/batch`
      expectProblem(await ask('POST', path, Array(1_001).fill({})), 400, 'invalid-request')
      for (const body of [[], {}, { messages: {} }, { messages: [], other: 1 }, 'x', null])
        expectProblem(await ask('POST', path, body), 400, 'invalid-request')
      expect((await ask('POST', path, Array(1_000).fill({ body: 1 }))).body.failed).to.equal(0)
    })
  })

  describe('idempotency keys', () => {
    const pushWith = (key: string, message: object): Promise<Answer> =>
      ask('POST', `/v1/topics/${topic}/messages`, message, { headers: { 'idempotency-key': key } })

    it('the same request again gets the same answer, and adds nothing, also when the message was handled', async () => {
      const first = await pushWith('k', { body: { a: 1, b: 2 }, delay: 50 })
      expect([first.status, first.headers.get('idempotency-replayed')]).to.deep.equal([201, null])
      const second = await pushWith('k', { delay: 50, body: { b: 2, a: 1 } })
      expect([second.status, second.body]).to.deep.equal([201, first.body])
      expect(second.headers.get('idempotency-replayed')).to.equal('true')
      const { lease } = await one()
      await leases('acknowledge', { leases: [lease] })
      expect((await pushWith('k', { body: { a: 1, b: 2 }, delay: 50 })).body).to.deep.equal(first.body)
      expect((await ask('GET', `/v1/topics/${topic}`)).body.counts.total).to.equal(0)
    })

    it('another key adds a message whose id another key had, once that one is handled', async () => {
      for (const key of ['k1', 'k2']) {
        expect((await pushWith(key, { id: 'order-7', body: key })).body).to.include({ id: 'order-7', outcome: 'added' })
        const message = await one()
        expect(message.body).to.equal(key)
        await leases('acknowledge', { leases: [message.lease] })
      }
    })

    it('a replacement that was refused replaces when it is repeated', async () => {
      await push({ id: 'a', body: 'old' })
      await ask('POST', `/v1/topics/${topic}/pause`, { what: 'push' })
      const message = { id: 'a', body: 'new', existing: 'replace' }
      expectProblem(await pushWith('k', message), 409, 'topic-paused')
      await ask('POST', `/v1/topics/${topic}/resume`, { what: 'push' })
      expect((await pushWith('k', message)).status).to.be.oneOf([200, 201])
      expect((await one()).body).to.equal('new')
    })

    it('requests at the same time add one message', async () => {
      const answers = await Promise.all(Array.from({ length: 10 }, () => pushWith('same', { body: 1 })))
      const shown = answers.map(({ status, body }) => `${status} ${body.id} ${body.code}`)
      expect([...new Set(shown)]).to.have.length(1)
      expect((await ask('GET', `/v1/topics/${topic}`)).body.counts.total).to.equal(1)
    })

    it('another message under the same key is refused; another topic has keys of its own', async () => {
      await pushWith('k', { body: 1 })
      expectProblem(await pushWith('k', { body: 2 }), 422, 'idempotency-mismatch')
      topic = server.topic()
      expect((await pushWith('k', { body: 2 })).status).to.equal(201)
    })
  })

  describe('topics', () => {
    it('a visibility timeout may be as long as that of a reliable queue, and no longer', async () => {
      const visibilityTimeout = 365 * 86_400_000
      const longer = { visibilityTimeout: visibilityTimeout + 1 }
      expect((await ask('PUT', `/v1/topics/${topic}`, { visibilityTimeout })).status).to.equal(201)
      await push({ body: 1 })
      const { lease } = await one({ visibilityTimeout })
      const extended = await leases('extend', { leases: [lease], visibilityTimeout })
      expect(extended.body.results).to.deep.equal(['ok'])
      const answers = [
        await ask('PUT', `/v1/topics/${topic}`, longer),
        await receive(longer),
        await leases('extend', { leases: [lease], ...longer }),
      ]
      for (const answer of answers) expectProblem(answer, 400, 'invalid-request')
    })

    it('are made, shown, changed and listed', async () => {
      const made = await ask('PUT', `/v1/topics/${topic}`, { visibilityTimeout: 1_234, maxSize: 2 })
      expect(made.status).to.equal(201)
      expect(made.body.settings).to.include({ visibilityTimeout: 1_234, maxSize: 2, deliveryLimit: 10, shards: 1 })
      const [second, minute, hour] = [1_000, 60_000, 3_600_000]
      expect(made.body.settings, 'as docs/design-comparison.md has it').to.deep.include({
        retryDelays: [
          15 * second,
          ...[3, 10, 30, 30].map((each) => each * minute),
          ...[1, 2, 6, 15].map((each) => each * hour),
        ],
      })
      const changed = await ask('PUT', `/v1/topics/${topic}`, { deliveryLimit: 3 })
      expect(changed.status).to.equal(200)
      expect(changed.body.settings).to.include({ visibilityTimeout: 30_000, maxSize: null, deliveryLimit: 3 })
      const { body } = await ask('GET', `/v1/topics?limit=1000`)
      expect(body.topics.map(({ name }) => name)).to.include(topic)
      const other = server.topic()
      await ask('PUT', `/v1/topics/${other}`, {})
      const names: string[] = []
      for (let cursor = ''; ;) {
        const page = (await ask('GET', `/v1/topics?limit=1${cursor && `&cursor=${cursor}`}`)).body
        names.push(...page.topics.map(({ name }) => name))
        if (page.cursor === undefined) break
        cursor = page.cursor
      }
      expect(names).to.include.members([topic, other])
      expect([...names].sort()).to.deep.equal(names)
    })

    it('refuse messages beyond their size', async () => {
      await ask('PUT', `/v1/topics/${topic}`, { maxSize: 1 })
      await push({ id: 'a' })
      expectProblem(await push({ id: 'b' }), 429, 'topic-full')
    })

    it('are spread over shards, and look the same', async () => {
      await ask('PUT', `/v1/topics/${topic}`, { shards: 4 })
      expectProblem(await ask('PUT', `/v1/topics/${topic}`, { shards: 5 }), 409, 'topic-shards')
      const ids = Array.from({ length: 40 }, (_, n) => `m${n}`)
      await ask(
        'POST',
        `/v1/topics/${topic}/messages/batch`,
        ids.map((id) => ({ id, body: id })),
      )
      expect((await ask('GET', `/v1/topics/${topic}/messages/m7`)).body.body).to.equal('m7')
      const listed: string[] = []
      for (let cursor = ''; ;) {
        const page = (await ask('GET', `/v1/topics/${topic}/messages?limit=7${cursor && `&cursor=${cursor}`}`)).body
        listed.push(...page.messages.map(({ id }: { id: string }) => id))
        if (page.cursor === undefined) break
        cursor = page.cursor
      }
      expect(listed.sort()).to.deep.equal([...ids].sort())
      const got: { id: string; lease: string }[] = []
      while (got.length < 40) got.push(...(await receive({ max: 40, wait: 10_000 })).body.messages)
      const { body } = await leases('acknowledge', { leases: got.map(({ lease }) => lease) })
      expect(new Set(body.results)).to.deep.equal(new Set(['ok']))
    })

    it('are deleted when they are empty, or by force', async () => {
      await push({ id: 'a' })
      expectProblem(await ask('DELETE', `/v1/topics/${topic}`), 409, 'topic-not-empty')
      expect((await push({ id: 'b' })).status, 'it is not paused').to.equal(201)
      expect((await ask('DELETE', `/v1/topics/${topic}?force=true`)).status).to.equal(204)
      expectProblem(await ask('GET', `/v1/topics/${topic}`), 404, 'topic-not-found')
      expectProblem(await ask('DELETE', `/v1/topics/${topic}`), 404, 'topic-not-found')
      expect((await push({ id: 'a' })).status, 'made anew').to.equal(201)
      expect((await ask('GET', `/v1/topics/${topic}`)).body.counts.total).to.equal(1)
    })

    it('a push through an instance that does not know yet that the topic was deleted makes it anew', async () => {
      const other = await startTestService()
      try {
        await push({ id: 'a' })
        const path = `/v1/topics/${topic}/messages`
        await other.ask('POST', path, { id: 'b' }, {})
        await ask('DELETE', `/v1/topics/${topic}?force`)
        expect((await other.ask('POST', path, { id: 'c' })).status).to.equal(201)
        expect((await ask('GET', `/v1/topics/${topic}`)).body.counts.total).to.equal(1)
      } finally {
        await other.stop()
      }
    })

    it('stay paused when their deletion is refused', async () => {
      await push({ body: 1 })
      await ask('POST', `/v1/topics/${topic}/pause`, { what: 'push' })
      expectProblem(await ask('DELETE', `/v1/topics/${topic}`), 409, 'topic-not-empty')
      expectProblem(await ask('POST', `/v1/topics/${topic}/messages`, { body: 2 }), 409, 'topic-paused')
      await ask('POST', `/v1/topics/${topic}/resume`, { what: 'push' })
    })

    it('have no names of shards of other topics', async () => {
      expectProblem(await ask('PUT', `/v1/topics/${topic}:0:17`, {}), 400, 'invalid-topic')
    })

    it('are paused for pushes or for consumers, and emptied', async () => {
      await push({ id: 'a' })
      expect((await ask('POST', `/v1/topics/${topic}/pause`)).body).to.deep.equal({ what: 'receive' })
      expect((await receive()).body.messages).to.deep.equal([])
      const pausedIn = async (): Promise<string[]> => {
        const text = (await ask('GET', '/metrics')).body as unknown as string
        const values = new RegExp(`^redelayed_topic_paused\\{topic="${topic}",side="(\\w+)"\\} ([01])$`, 'gm')
        return Array.from(text.matchAll(values), ([, side, value]) => `${side} ${value}`)
      }
      expect(await pausedIn()).to.deep.equal(['receive 1', 'push 0'])
      await ask('POST', `/v1/topics/${topic}/pause`, { what: 'push' })
      expect(await pausedIn()).to.deep.equal(['receive 1', 'push 1'])
      expectProblem(await push({ id: 'b' }), 409, 'topic-paused')
      await ask('PUT', `/v1/topics/${topic}`, {})
      expectProblem(await push({ id: 'b' }), 409, 'topic-paused')
      await ask('POST', `/v1/topics/${topic}/resume`, { what: 'push' })
      expect((await push({ id: 'b' })).status).to.equal(201)
      expect((await ask('POST', `/v1/topics/${topic}/purge`)).body).to.deep.equal({ purged: 2 })
      await ask('POST', `/v1/topics/${topic}/resume`, { what: 'receive' })
      expect(await pausedIn()).to.deep.equal(['receive 0', 'push 0'])
      expect((await receive()).body.messages).to.deep.equal([])
    })

    it('are purged of some messages or dead letters by their ids', async () => {
      const purge = (how: object) => ask('POST', `/v1/topics/${topic}/purge`, how)
      await ask('PUT', `/v1/topics/${topic}`, { shards: 2 })
      for (const id of ['a', 'b', 'c', 'd', 'e']) await push({ id, delay: id === 'e' ? 60_000 : 0 })
      const { messages } = (await receive({ max: 4 })).body
      const leaseOf = (id: string) => messages.find((message) => message.id === id)?.lease
      await leases('negative-acknowledge', { leases: [leaseOf('a'), leaseOf('b')], reject: true })
      // a message that a consumer has, one that is not due, and a dead letter
      expect((await purge({ ids: ['c', 'e', 'e', 'unknown', 'a'] })).body).to.deep.equal({ purged: 2 })
      expect((await purge({ what: 'dead-letters', ids: ['b', 'd', 'unknown'] })).body).to.deep.equal({ purged: 1 })
      expect((await ask('GET', `/v1/topics/${topic}`)).body.counts).to.include({ total: 1, dead: 1 })
      const answered = await leases('acknowledge', { leases: [leaseOf('c'), leaseOf('d')] })
      expect(answered.body.results).to.deep.equal(['lost', 'ok'])
    })

    it('are purged of messages that match a filter, and of no others', async () => {
      const purge = async (how: object) => {
        const { status, body } = await ask('POST', `/v1/topics/${topic}/purge`, how)
        expect(status, JSON.stringify(body)).to.equal(200)
        return body
      }
      const counts = async () => (await ask('GET', `/v1/topics/${topic}`)).body.counts
      await ask('PUT', `/v1/topics/${topic}`, { shards: 3, visibilityTimeout: 600_000 })
      const year = 31_536_000_000
      const now = Date.now()
      const messages = [
        ...Array.from({ length: 40 }, (_, at) => ({ id: `due-${at}`, priority: at % 10 })),
        ...Array.from({ length: 40 }, (_, at) => ({ id: `soon-${at}`, dueAt: now + 600_000 + at, priority: at % 10 })),
        ...Array.from({ length: 40 }, (_, at) => ({ id: `year-${at}`, dueAt: now + year + at })),
      ]
      expect((await ask('POST', `/v1/topics/${topic}/messages/batch`, { messages })).body.failed).to.equal(0)
      const taken: AnsweredMessage[] = []
      while (taken.length < 10) taken.push(...(await receive({ max: 10 - taken.length })).body.messages)
      // messages that consumers have stay, whenever they become visible again
      expect(await purge({ dueTo: now + 600_009 })).to.deep.equal({ purged: 40 })
      expect(await counts()).to.include({ total: 80, visible: 0, delayed: 70, inFlight: 10 })
      expect(await purge({ state: 'delayed', dueFrom: now + year - 1_000, dueTo: now + year + 9 })).to.deep.equal({
        purged: 10,
      })
      expect(await purge({ state: 'visible' })).to.deep.equal({ purged: 0 })
      expect(await purge({ what: 'dead-letters', state: 'delayed' })).to.deep.equal({ purged: 0 })
      expect(await purge({ dueFrom: 1 })).to.deep.equal({ purged: 60 })
      expect(await counts()).to.include({ total: 10, inFlight: 10 })
      expect(await purge({ state: 'inFlight' })).to.deep.equal({ purged: 10 })
      const answered = await leases('acknowledge', { leases: taken.map(({ lease }) => lease) })
      expect(new Set(answered.body.results)).to.deep.equal(new Set(['lost']))
      expect(await counts()).to.include({ total: 0 })
    })

    it('are purged of many matching messages by several requests, each from where the last one ended', async () => {
      await ask('PUT', `/v1/topics/${topic}`, { shards: 2 })
      for (let from = 0; from < 2_500; from += 500) {
        const messages = Array.from({ length: 500 }, (_, at) => ({ id: `m${from + at}`, delay: 600_000 }))
        expect((await ask('POST', `/v1/topics/${topic}/messages/batch`, { messages })).body.failed).to.equal(0)
      }
      await push({ id: 'stays' })
      let [sum, requests] = [0, 0]
      for (let cursor: string | undefined; ; requests++) {
        const how = { state: 'delayed', ...(cursor && { cursor }) }
        const { body } = await ask('POST', `/v1/topics/${topic}/purge`, how)
        const { purged } = body as unknown as { purged: number }
        expect(purged).to.be.below(1_300)
        sum += purged
        cursor = body.cursor
        if (cursor === undefined) break
      }
      expect([sum, requests >= 2]).to.deep.equal([2_500, true])
      expect((await ask('GET', `/v1/topics/${topic}`)).body.counts).to.include({ total: 1, delayed: 0 })
    })

    it('keep all messages when a purge does not say which ones it means', async () => {
      await push({ id: 'a', bizKey: 'order-7' })
      const purge = (how: object) => ask('POST', `/v1/topics/${topic}/purge`, how)
      expectProblem(await purge({ ids: ['a'], state: 'visible' }), 400, 'invalid-request')
      expectProblem(await purge({ cursor: 'MDs' }), 400, 'invalid-cursor')
      expectProblem(await purge({ state: 'visible', cursor: 'MTo' }), 400, 'invalid-cursor')
      expectProblem(await purge({ state: 'dead' }), 400, 'invalid-request')
      expectProblem(await purge({ bizKey: 'order-7' }), 409, 'no-journal')
      expect((await ask('GET', `/v1/topics/${topic}`)).body.counts).to.include({ total: 1 })
    })

    it("cannot have the names of the service's own queues", async () => {
      for (const name of ['redelayed-server:topics', `${topic}:dead`, '.x', '%7Bx%7D', 'a%2Fb', 'x'.repeat(129)]) {
        const answer = await ask('PUT', `/v1/topics/${name}`, {})
        expect([answer.status, answer.body.code], name).to.satisfy(
          ([status, code]: [number, string]) => status === 400 && /^invalid-(topic|request)$/.test(code),
        )
      }
    })
  })

  it('a push does not make a topic if the service does not allow that', async () => {
    const strict = await startTestService({ createTopics: false })
    try {
      expectProblem(await strict.ask('POST', `/v1/topics/${topic}/messages`, {}), 404, 'topic-not-found')
      expectProblem(await strict.ask('POST', `/v1/topics/${topic}/receive`, {}), 404, 'topic-not-found')
    } finally {
      await strict.stop()
    }
  })

  describe('keys', () => {
    it('are needed, and open only what they are for', async () => {
      for (const key of ['', 'x', server.key.slice(0, -1), `${server.key.slice(0, -2)}AA`]) {
        const answer = await ask('GET', '/v1/topics', undefined, { key })
        expectProblem(answer, 401, 'unauthorized')
        expect(answer.headers.get('www-authenticate')).to.equal('Bearer')
      }
      await push({})
      const pusher = server.addKey(['push'], [topic])
      await eventually(async () => {
        const { status } = await ask('POST', `/v1/topics/${topic}/messages`, {}, { key: pusher })
        expect(status).to.equal(201)
      })
      expectProblem(await ask('POST', `/v1/topics/${topic}/receive`, {}, { key: pusher }), 403, 'forbidden')
      expectProblem(await ask('POST', `/v1/topics/${topic}-other/messages`, {}, { key: pusher }), 403, 'forbidden')
      expectProblem(await ask('DELETE', `/v1/topics/${topic}`, undefined, { key: pusher }), 403, 'forbidden')
      const consumer = server.addKey(['consume', 'read'], ['nothing-*'])
      await eventually(async () => {
        const { status, body } = await ask('GET', '/v1/topics', undefined, { key: consumer })
        expect([status, body]).to.deep.equal([200, { topics: [] }])
      })
      const { lease } = await one()
      expectProblem(
        await ask('POST', '/v1/leases/acknowledge', { leases: [lease] }, { key: consumer }),
        403,
        'forbidden',
      )
    })

    it('may give a topic another endpoint only if they are for all topics', async () => {
      const hooked = server.topic()
      const admin = server.addKey(['admin'], [hooked])
      const { id } = (await ask('POST', '/v1/endpoints', { url: 'https://example.com/hook' })).body
      await eventually(async () => {
        const { status } = await ask('PUT', `/v1/topics/${hooked}`, {}, { key: admin })
        expect(status).to.be.oneOf([200, 201])
      })
      const withEndpoint = { endpoint: id }
      expectProblem(await ask('PUT', `/v1/topics/${hooked}`, withEndpoint, { key: admin }), 403, 'forbidden')
      expect((await ask('PUT', `/v1/topics/${hooked}`, withEndpoint)).status).to.equal(200)
      expect((await ask('PUT', `/v1/topics/${hooked}`, withEndpoint, { key: admin })).status).to.equal(200)
      await ask('PUT', `/v1/topics/${hooked}`, {})
      expect((await ask('DELETE', `/v1/endpoints/${id}`)).status).to.equal(204)
    })

    it('have a rate', async () => {
      const slow = await startTestService({ rateLimit: 5 })
      try {
        const answers = await Promise.all(Array.from({ length: 30 }, () => slow.ask('GET', '/v1/topics')))
        const refused = answers.filter(({ status }) => status === 429)
        expect(refused.length).to.be.within(1, 25)
        expectProblem(refused[0] as Answer, 429, 'rate-limited')
        expect(Number(refused[0]?.headers.get('retry-after'))).to.be.at.least(1)
      } finally {
        await slow.stop()
      }
    })
  })

  describe('operations', () => {
    it('says that it is alive and ready, and shows metrics and its description', async () => {
      expect((await ask('GET', '/livez', undefined, { key: 'none' })).body).to.deep.equal({ status: 'ok' })
      expect((await ask('GET', '/readyz', undefined, { key: 'none' })).body).to.deep.equal({ status: 'ok' })
      await push({ id: 'a' })
      const { body } = await ask('GET', '/metrics')
      expect(body)
        .to.include('redelayed_messages_pushed_total{outcome="added"}')
        .and.include('redelayed_receive_lateness_seconds')
      expectProblem(await ask('GET', '/metrics', undefined, { key: 'none' }), 401, 'unauthorized')
      const { body: api } = await ask('GET', '/openapi.json', undefined, { key: 'none' })
      expect(api.openapi).to.match(/^3\.1\./)
      expect(api.paths['/v1/topics/{topic}/messages/batch']?.['post']).to.have.property('requestBody')
      const operations = Object.values(api.paths).flatMap((path) =>
        Object.values(path).map(({ operationId }) => operationId),
      )
      expect(new Set(operations).size).to.equal(operations.length)
      expect(operations).to.include.members([
        'pushMessage',
        'pushMessages',
        'receiveMessages',
        'acknowledge',
        'watchEvents',
      ])
      const page = await ask('GET', '/docs', undefined, { key: 'none' })
      expect([page.status, page.headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8'])
      const html = page.body as unknown as string
      for (const id of operations) expect(html, id).to.include(`<section id="${id}">`)
      for (const [path] of Object.entries(api.paths)) expect(html).to.include(`</b> ${path}</h3>`)
      expect(html).to.include('href="#type-MessageInput"').and.include('id="type-MessageInput"')
      // it runs no scripts and makes no further requests
      expect(html).to.not.match(/<script|<img|<link|\bon\w+=|https?:\/\//)
      expect(page.headers.get('content-security-policy')).to.match(
        /^default-src 'none'; style-src 'sha256-[^']+'; base/,
      )
      expectProblem(await ask('GET', '/v1/nothing'), 404, 'not-found')
      const other = await ask('POST', '/v1/topics', {})
      expectProblem(other, 405, 'method-not-allowed')
      expect(other.headers.get('allow')).to.equal('GET, HEAD')
      expectProblem(await ask('DELETE', '/v1/topics/a/receive'), 405, 'method-not-allowed')
    })

    it('idle long polls cost no connection to Redis each, and all get their answer when the service stops', async () => {
      const many = await startTestService({ maxConnections: 1_000 })
      const name = many.topic()
      await many.ask('PUT', `/v1/topics/${name}`, {})
      const redis = new Redis(redisUrl(), { protocol: 2 })
      try {
        const connections = async (): Promise<number> =>
          Number(/connected_clients:(\d+)/.exec(await redis.info('clients'))?.[1])
        await many.ask('POST', `/v1/topics/${name}/receive`, { wait: 1 })
        const before = await connections()
        const waiting = Array.from({ length: 200 }, () =>
          many.ask('POST', `/v1/topics/${name}/receive`, { wait: 60_000 }),
        )
        await eventually(async () =>
          expect((await many.ask('GET', '/metrics')).body).to.include('redelayed_waiting_receives 200'),
        )
        expect((await connections()) - before).to.be.at.most(2)
        await ask('DELETE', `/v1/topics/${name}?force`)
        await many.stop()
        const answers = await Promise.all(waiting)
        expect(new Set(answers.map(({ status, body }) => `${status} ${JSON.stringify(body)}`))).to.deep.equal(
          new Set(['200 {"messages":[]}']),
        )
      } finally {
        redis.disconnect()
        await many.stop()
      }
    })
  })

  it('gives back messages whose client hung up, and the delivery does not count', async () => {
    await push({ id: 'first' })
    await one()
    const gone = new AbortController()
    const waiting = ask('POST', `/v1/topics/${topic}/receive`, { wait: 60_000 }, { signal: gone.signal }).catch(
      () => undefined,
    )
    await eventually(async () => expect((await ask('GET', '/metrics')).body).to.include('redelayed_waiting_receives 1'))
    gone.abort()
    await waiting
    await eventually(async () => expect((await ask('GET', '/metrics')).body).to.include('redelayed_waiting_receives 0'))
    await push({ id: 'second' })
    expect(await one()).to.include({ id: 'second', attempt: 1 })
  })

  describe('events', () => {
    async function* eventsOf(
      response: Response,
    ): AsyncGenerator<{ event: string; id: string; data: Record<string, unknown> }, undefined> {
      let text = ''
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(chunk).toString()
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          const lines = new Map(
            text
              .slice(0, end)
              .split('\n')
              .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
          )
          text = text.slice(end + 2)
          const data = lines.get('data')
          if (data !== undefined)
            yield {
              event: lines.get('event') ?? '',
              id: lines.get('id') ?? '',
              data: JSON.parse(data) as Record<string, unknown>,
            }
        }
      }
    }

    const watch = (query: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> =>
      fetch(`${server.url}/v1/events?${query}`, {
        headers: { authorization: `Bearer ${server.key}`, ...headers },
        signal,
      })

    it('show changes, and resume where a client was', async () => {
      await ask('PUT', `/v1/topics/${topic}`, {})
      const end = new AbortController()
      try {
        const events = eventsOf(await watch(`topic=${topic}`, {}, end.signal))
        // the reader begins after this change, and the first event shows that
        let first: unknown
        const begun = events.next().then((event) => (first = event))
        for (let n = 0; first === undefined; n++) {
          await push({ id: `w${n}`, delay: 600_000 })
          await new Promise((resolve) => setTimeout(resolve, 50)) // one of these messages is the first that it reports
        }
        await begun
        await push({ id: 'a' })
        const { lease } = await one()
        await leases('acknowledge', { leases: [lease] })
        const seen: string[] = []
        let position = ''
        while (seen.length < 3) {
          const { value } = await events.next()
          if (value?.data['id'] !== 'a') continue
          seen.push(`${value?.event} ${value?.data['id']}`)
          if (seen.length === 1) position = value?.id ?? ''
        }
        expect(seen).to.deep.equal(['added a', 'polled a', 'acknowledged a'])
        const again = eventsOf(await watch(`topic=${topic}`, { 'last-event-id': position }, end.signal))
        const { value } = await again.next()
        expect(value).to.deep.include({ event: 'polled' })
        expect(value?.data).to.include({ topic, id: 'a', attempt: 1 })
      } finally {
        end.abort()
      }
    })

    /** Resolves when the service has ended the stream. */
    async function ended(stream: Response): Promise<void> {
      const reader = stream.body!.getReader()
      while (!(await reader.read()).done);
    }

    for (const [what, changed] of [
      ['is removed', () => ''],
      ['may read no more', (line: string) => line.replace(' read ', ' push ')],
      ['has other topics', (line: string) => line.replace(` ${topic}`, ' other')],
    ] as const) {
      it(`end when their key ${what}, and those of other keys continue`, async () => {
        await ask('PUT', `/v1/topics/${topic}`, {})
        const key = server.addKey(['read'], [topic])
        await eventually(async () => expect((await ask('GET', '/v1/topics', undefined, { key })).status).to.equal(200))
        const end = new AbortController()
        try {
          const others = eventsOf(await watch(`topic=${topic}`, {}, end.signal))
          const stream = await watch(`topic=${topic}`, { authorization: `Bearer ${key}` }, end.signal)
          expect(stream.status).to.equal(200)
          const id = key.split('_')[1] ?? ''
          const lines = readFileSync(server.keysPath, 'utf8').split('\n')
          writeFileSync(server.keysPath, lines.map((line) => (line.startsWith(id) ? changed(line) : line)).join('\n'))
          await ended(stream)
          const next = others.next()
          await push({ id: 'later', delay: 600_000 })
          expect((await next).value?.data).to.include({ id: 'later' })
        } finally {
          end.abort()
        }
      })
    }

    it('hide answers of endpoints from when their key may not see them any more', async function () {
      this.timeout(60_000)
      await ask('PUT', `/v1/topics/${topic}`, {})
      const key = server.addKey(['consume', 'read'], [topic], true)
      await eventually(async () => expect((await ask('GET', '/v1/topics', undefined, { key })).status).to.equal(200))
      const end = new AbortController()
      const client = createClient({ url: redisUrl() })
      try {
        const events = eventsOf(await watch(`topic=${topic}`, { authorization: `Bearer ${key}` }, end.signal))
        const queue = client.getReliableQueue(topic, { codec: codecs.bytes() })
        // like the reason of a webhook
        const error = Object.assign(new Error('500 an answer'), { name: 'Webhook' })
        let last: unknown
        void (async () => {
          for await (const { data } of events) last = data['error'] ?? last
        })().catch(() => undefined)
        const see = (expected: string) =>
          eventually(async () => {
            await push({})
            const messages = await queue.pollMany({ count: 10 })
            await queue.negativeAcknowledge(messages, { delay: 600_000, error })
            expect(last).to.equal(expected)
          })
        await see('Webhook: 500 an answer')
        const lines = readFileSync(server.keysPath, 'utf8')
        // never half of a file: a key that is missing at one check ends the stream
        writeFileSync(`${server.keysPath}.new`, lines.replace(` consume,read ${topic}`, ` read ${topic}`))
        renameSync(`${server.keysPath}.new`, server.keysPath)
        await see('Webhook: 500')
      } finally {
        end.abort()
        await client.shutdown()
      }
    })

    it('end with the session of the page that asked for them', async () => {
      await ask('PUT', `/v1/topics/${topic}`, {})
      const signedIn = await ask('POST', '/ui/session', { key: server.key }, { key: '-' })
      const cookie = signedIn.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
      const end = new AbortController()
      try {
        const stream = await fetch(`${server.url}/v1/events?topic=${topic}`, {
          headers: { cookie },
          signal: end.signal,
        })
        expect(stream.status).to.equal(200)
        const out = await fetch(`${server.url}/ui/session`, {
          method: 'DELETE',
          headers: { cookie, 'x-redelayed-page': '1' },
        })
        expect(out.status).to.equal(204)
        await ended(stream)
      } finally {
        end.abort()
      }
    })

    it('exist only for topics that keep them', async () => {
      await ask('PUT', `/v1/topics/${topic}`, { events: false })
      expectProblem(await ask('GET', `/v1/events?topic=${topic}`), 409, 'no-events')
      expectProblem(await ask('GET', '/v1/events'), 400, 'invalid-request')
      expect((await ask('HEAD', `/v1/events?topic=${topic}`)).status).to.equal(405)
      expectProblem(await ask('GET', `/v1/events?topic=${topic}-none`), 404, 'topic-not-found')
    })
  })
})
