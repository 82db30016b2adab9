import { expect } from 'chai'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DelayClient, NoAnswerError, ProblemError, type Push, type TopicClient } from '../client/index.js'
import { eventually } from './support/eventually.js'
import { startTestService, type TestService } from './support/service.js'

interface Order {
  readonly order: number
}

/** Keeps no connection open behind a test. */
const unkept: typeof fetch = (input, init) =>
  fetch(input, { ...init, headers: { ...(init?.headers as Record<string, string>), connection: 'close' } })

describe('the Node client', function () {
  this.timeout(60_000)
  let server: TestService
  let client: DelayClient
  let orders: TopicClient<Order>
  beforeEach(async () => {
    server = await startTestService()
    client = new DelayClient({ url: server.url, key: server.key, fetch: unkept })
    orders = client.topic<Order>(server.topic())
  })
  afterEach(() => server.stop())

  const thrownBy = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => undefined,
      (error: unknown) => error,
    )

  it('pushes, waits, receives and acknowledges', async () => {
    const pushed = await orders.push({ id: 'close:7', delay: 500, body: { order: 7 }, headers: { trace: 'x' } })
    expect(pushed).to.include({ id: 'close:7', outcome: 'added' })
    const [message] = await orders.receive({ wait: 20_000 })
    expect(message).to.deep.include({ id: 'close:7', body: { order: 7 }, headers: { trace: 'x' }, attempt: 1 })
    expect(await client.acknowledge([message!])).to.deep.equal(['ok'])
    expect(await client.acknowledge([message!.lease])).to.deep.equal(['lost'])
    expect(await orders.get('close:7')).to.equal(null)
  })

  it('gives back, extends, and rejects', async () => {
    await orders.push({ id: 'a', body: { order: 1 } })
    const [first] = await orders.receive({ wait: 20_000 })
    expect(await client.extend([first!], { visibilityTimeout: 60_000 })).to.deep.equal(['ok'])
    expect(await client.negativeAcknowledge([first!], { delay: 0, error: 'locked' })).to.deep.equal(['ok'])
    const [second] = await orders.receive({ wait: 20_000 })
    expect(second).to.include({ id: 'a', attempt: 2 })
    await client.negativeAcknowledge([second!], { reject: true })
    const dead = []
    for await (const { id, state } of orders.deadLetters()) dead.push({ id, state })
    expect(dead).to.deep.equal([{ id: 'a', state: 'dead' }])
    expect(await orders.redrive({ ids: ['a'] })).to.equal(1)
  })

  it('finds, counts, moves back and deletes the dead letters that match, of a topic and of all', async () => {
    const reject = async (ids: readonly string[], error: string): Promise<void> => {
      for (let at = 0; at < ids.length; at += 1_000)
        await orders.pushMany(ids.slice(at, at + 1_000).map((id, order) => ({ id, body: { order } })))
      for (let left = ids.length; left > 0;) {
        const messages = await orders.receive({ max: 500, wait: 20_000 })
        left -= messages.length
        await client.negativeAcknowledge(messages, { reject: true, error })
      }
    }
    const many = Array.from({ length: 1_100 }, (_, at) => `m${at}`)
    await reject(many, 'timeout')
    await reject(['a', 'b', 'c'], 'broken')
    const topic = orders.name
    const found = []
    for await (const { id } of client.deadLetters.find({ topic, reason: 'broken' })) found.push(id)
    expect(found).to.have.members(['a', 'b', 'c'])
    expect(await client.deadLetters.count({ topic, reason: 'timeout' })).to.equal(1_100)
    expect(await orders.redrive({ reason: 'broken', count: 2 })).to.equal(2)
    expect(await orders.redrive({ reason: 'timeout' })).to.equal(1_100)
    expect(await client.deadLetters.delete({ topic, reason: 'broken' })).to.equal(1)
    expect(await client.deadLetters.redrive({ topic })).to.equal(0)
    expect((await orders.info())?.counts).to.include({ total: 1_102, dead: 0 })
  })

  it('pushes many messages, and reports the outcome of each', async () => {
    const [good, bad] = await orders.pushMany([
      { id: 'a', body: { order: 1 } },
      { delay: 1, dueAt: 1, body: { order: 2 } },
    ])
    expect(good).to.include({ id: 'a', outcome: 'added' })
    expect(bad).to.be.instanceOf(ProblemError).and.to.include({ code: 'invalid-message', status: 400 })
  })

  it('shows, changes, lists and removes, over several pages', async () => {
    await orders.pushMany(
      Array.from({ length: 250 }, (_, order) => ({ id: `m${order}`, delay: 60_000, body: { order } })),
    )
    const ids = new Set<string>()
    for await (const { id } of orders.list({ state: 'delayed' })) ids.add(id)
    expect(ids.size).to.equal(250)
    expect(await orders.change('m1', { priority: 5, body: { order: -1 } })).to.deep.include({
      priority: 5,
      body: { order: -1 },
    })
    expect(await orders.remove('m1')).to.equal(true)
    expect(await orders.remove('m1')).to.equal(false)
    expect(await orders.purge()).to.equal(249)
  })

  it('makes topics with settings, pauses and deletes them', async () => {
    const made = await orders.put({ visibilityTimeout: 5_000, deliveryLimit: 3 })
    expect(made.settings).to.include({ visibilityTimeout: 5_000, deliveryLimit: 3 })
    await orders.pause('push')
    expect(await thrownBy(orders.push({ body: { order: 1 } })))
      .to.be.instanceOf(ProblemError)
      .and.to.include({ code: 'topic-paused', status: 409 })
    await orders.resume('push')
    const names = []
    for await (const { name } of client.topics()) names.push(name)
    expect(names).to.include(orders.name)
    await orders.delete()
    expect(await orders.info()).to.equal(null)
  })

  it('makes endpoints and rotates their secrets', async () => {
    const { id, secret } = await client.endpoints.create({ url: 'https://example.com/hook' })
    const rotated = await client.endpoints.rotateSecret(id)
    expect(rotated.secret).to.not.equal(secret)
    expect(await client.endpoints.secret(id)).to.deep.equal(rotated)
    expect((await client.endpoints.change(id, { enabled: false })).disabled).to.include({ reason: 'operator' })
    await client.endpoints.delete(id)
    expect(await thrownBy(client.endpoints.get(id))).to.include({ code: 'endpoint-not-found' })
  })

  it('throws errors with the fields of the problem', async () => {
    const wrong = new DelayClient({ url: server.url, key: 'rdk_no', fetch: unkept }).topic('orders')
    const error = await thrownBy(wrong.push({ body: 1 }))
    expect(error).to.be.instanceOf(ProblemError).and.to.include({ status: 401, code: 'unauthorized' })
    expect((error as ProblemError).requestId).to.match(/^[0-9a-f-]{36}$/)
    const invalid = (await thrownBy(orders.push({ priority: 10, body: { order: 1 } }))) as ProblemError
    expect(invalid.code).to.equal('invalid-request')
    expect(invalid.errors[0]?.path).to.equal('body/priority')
  })

  it('ends a wait by its signal, and the message stays for others', async () => {
    const leaving = new AbortController()
    const waiting = thrownBy(orders.receive({ wait: 30_000, signal: leaving.signal }))
    await eventually(async () => {
      const text = (await server.ask('GET', '/metrics')).body
      expect(text).to.match(/^redelayed_waiting_receives 1$/m)
    })
    leaving.abort(new Error('the consumer stops'))
    expect(await waiting).to.have.property('message', 'the consumer stops')
    await orders.push({ body: { order: 1 } })
    const [message] = await orders.receive({ wait: 20_000 })
    expect(message).to.deep.include({ body: { order: 1 }, attempt: 1 })
  })

  it('iterates over messages as they become due, until its signal aborts', async () => {
    const done = new AbortController()
    await orders.pushMany([3, 1, 2].map((order) => ({ delay: order * 100, body: { order } })))
    const seen = []
    for await (const message of orders.messages({ signal: done.signal, wait: 5_000 })) {
      await client.acknowledge([message])
      seen.push(message.body?.order)
      if (seen.length === 3) done.abort()
    }
    expect(seen).to.deep.equal([1, 2, 3])
  })

  it('iterates over events, and continues where it was', async () => {
    await orders.push({ id: 'first', body: { order: 1 } })
    const done = new AbortController()
    const seen: string[] = []
    let lastId = ''
    const watching = (async () => {
      for await (const { event, data, lastId: id } of client.events([orders.name], { signal: done.signal })) {
        seen.push(`${event} ${String(data['id'])}`)
        lastId = id
        done.abort()
      }
    })()
    const pushing = (async () => {
      for (let at = 0; seen.length === 0; at++) {
        await orders.push({ id: `m${at}`, body: { order: at } })
        await new Promise((resolve) => setTimeout(resolve, 100)) // the stream begins after one of these messages
      }
    })()
    await Promise.all([watching, pushing])
    expect(seen[0]).to.match(/^added m\d+$/)
    await orders.push({ id: 'later', body: { order: 2 } })
    for await (const { data } of client.events([orders.name], { lastId })) if (data['id'] === 'later') break
  })

  describe('against a service that fails', () => {
    let fake: Server
    afterEach(() => {
      fake.closeAllConnections()
      return new Promise((resolve) => fake.close(resolve))
    })
    const listen = async (listener: RequestListener, timeout?: number): Promise<TopicClient<number>> => {
      fake = createServer(listener)
      await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve))
      const url = `http://127.0.0.1:${(fake.address() as AddressInfo).port}/below`
      return new DelayClient({ url, key: 'k', fetch: unkept, ...(timeout !== undefined && { timeout }) }).topic<number>(
        't',
      )
    }

    it('repeats a push under the same id until there is an answer', async () => {
      const bodies: string[] = []
      const topic = await listen((request, response) => {
        let body = ''
        request.on('data', (bytes: Buffer) => (body += bytes.toString()))
        request.on('end', () => {
          bodies.push(`${request.url} ${body}`)
          if (bodies.length === 1) request.socket.destroy()
          else if (bodies.length === 2) response.writeHead(502, { 'content-type': 'text/html' }).end('<html>')
          else response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"x","outcome":"added"}')
        })
      })
      const message: Push<number> = Object.assign({ id: undefined }, { body: 1 }) // as one gets it where an id is optional
      expect(await topic.push(message)).to.deep.equal({ id: 'x', outcome: 'added' })
      expect(bodies).to.have.length(3)
      expect(new Set(bodies).size).to.equal(1)
      expect(bodies[0]).to.match(/^\/below\/v1\/topics\/t\/messages \{"id":"[0-9a-f-]{36}","body":1\}$/)
    })

    it('continues with events after a 503', async () => {
      let count = 0
      await listen((_, response) => {
        if (++count === 1) response.writeHead(503).end('{"code":"redis-unavailable"}')
        else
          response
            .writeHead(200, { 'content-type': 'text/event-stream' })
            .write('event: added\nid: 1\ndata: {"topic":"t"}\n\n')
      })
      const { port } = fake.address() as AddressInfo
      const delays = new DelayClient({ url: `http://127.0.0.1:${port}`, key: 'k', fetch: unkept })
      const done = new AbortController()
      const seen: string[] = []
      for await (const { event } of delays.events(['t'], { signal: done.signal })) {
        seen.push(event)
        done.abort()
      }
      expect([count, seen]).to.deep.equal([2, ['added']])
    })

    it('iterates over messages although the service is away for a while, and ends when the service refuses the request', async () => {
      const message = { id: 'a', lease: 'l', attempt: 1, body: 7 }
      const answers = [
        [503, '{"code":"shutting-down"}'],
        [0, ''],
        [200, JSON.stringify({ messages: [message] })],
        [403, '{}'],
      ] as const
      let count = 0
      const topic = await listen((request, response) => {
        const [status, text] = answers[Math.min(count++, 3)] ?? [500, '']
        if (status === 0) request.socket.destroy()
        else response.writeHead(status).end(text)
      })
      const seen: (number | undefined)[] = []
      const reading = (async () => {
        for await (const { body } of topic.messages()) seen.push(body)
      })()
      expect(await thrownBy(reading)).to.include({ status: 403 })
      expect([seen, count]).to.deep.equal([[7], 4])
    })

    it('does not repeat a receive, nor a request that the service refused', async () => {
      let count = 0
      const topic = await listen((_, response) => {
        count++
        response.writeHead(count === 1 ? 503 : 429, { 'retry-after': '7' }).end('{"code":"shutting-down","title":"No"}')
      })
      expect(await thrownBy(topic.receive())).to.include({ status: 503, code: 'shutting-down', retryAfter: 7_000 })
      expect(await thrownBy(topic.push({ body: 1 }))).to.include({ status: 429 })
      expect(count).to.equal(2)
    })

    it('gives up after its timeout, beyond the wait', async () => {
      const topic = await listen(() => {}, 50)
      const startedAt = performance.now()
      expect(await thrownBy(topic.receive({ wait: 300 })))
        .to.be.instanceOf(NoAnswerError)
        .and.to.have.property('message', 'no answer within 350 ms')
      expect(performance.now() - startedAt).to.be.greaterThan(340)
    })
  })
})
