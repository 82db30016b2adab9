import { expect } from 'chai'
import { Redis } from 'ioredis'
import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook as Verifier } from 'standardwebhooks'
import { Delivery, type Delivered } from '../delivery/delivery.js'
import { EgressPolicy } from '../delivery/egress-policy.js'
import type { Endpoint } from '../delivery/endpoint.js'
import { EndpointGate } from '../delivery/endpoint-gate.js'
import { Lane } from '../delivery/lane.js'
import { Pump, type PumpParts } from '../delivery/pump.js'
import { Sender } from '../delivery/sender.js'
import { newSecret, readSecret } from '../delivery/webhook-secret.js'

const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'

describe('an endpoint that asks for a long pause', () => {
  it('leaves messages in the queue meanwhile, and then takes one to try', async () => {
    const polls: number[] = []
    const held = [40, 40, 0]
    let asked = 0
    const done = new AbortController()
    const message = { id: 'a', payload: Buffer.from('1'), attempt: 1, headers: {}, polledAt: 0, visibleAt: 0 }
    const queue = {
      pollMany: async ({ count, signal }: { count: number; signal: AbortSignal }) => {
        polls.push(count)
        if (polls.length === 1) return [message]
        expect(asked, 'it was asked until nothing was held').to.equal(held.length)
        done.abort()
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        return []
      },
      negativeAcknowledge: async () => [true],
    }
    const delivery = {
      deliver: async (): Promise<Delivered> => ({ is: 'held', waitMs: 1_001 }),
      heldMs: async () => held[asked++] ?? 0,
    }
    const parts = { topic: { queue }, endpoint: { timeoutMs: 1_000 }, delivery, lane: new Lane(16) }
    const errors: unknown[] = []
    const pump = new Pump({
      ...(parts as unknown as PumpParts),
      ...{ other: async () => undefined, onDelivered: () => undefined, onError: (error) => errors.push(error) },
    })
    await new Promise((resolve) => done.signal.addEventListener('abort', resolve, { once: true }))
    await pump.stop(1_000)
    expect([polls, errors]).to.deep.equal([[16, 1], []])
  })
})

describe('the gate before an endpoint', () => {
  let redis: Redis
  let gate: EndpointGate
  let id: string
  beforeEach(() => {
    redis = new Redis(url)
    gate = new EndpointGate(redis)
    id = randomUUID()
  })
  afterEach(async () => {
    await redis.del(keyOf(id))
    await redis.quit()
  })
  const keyOf = (endpoint: string) => `redelayed:service:endpoint:{${endpoint}}`
  const fail = async (times: number, of = gate) => {
    const left = []
    for (let i = 0; i < times; i++) left.push(await of.leave(id, 'failed'))
    return left
  }
  /** Moves the times of the endpoint into the past, as if `ms` had passed. */
  const age = async (ms: number, ...fields: string[]) => {
    for (const field of fields) if (await redis.hexists(keyOf(id), field)) await redis.hincrby(keyOf(id), field, -ms)
  }

  it('is open for an unknown endpoint', async () => {
    expect(await gate.enter(id)).to.equal(0)
  })

  it('opens the breaker at 70 % failures of at least ten, once, for all instances', async () => {
    const other = new EndpointGate(redis)
    for (let i = 0; i < 3; i++) await gate.leave(id, 'delivered')
    expect((await fail(6)).map(({ hasOpened }) => hasOpened)).to.deep.equal(Array(6).fill(false))
    expect(await other.enter(id)).to.equal(0)
    expect((await gate.leave(id, 'failed')).hasOpened).to.equal(true)
    expect((await other.leave(id, 'failed')).hasOpened).to.equal(false)
    expect(await other.enter(id)).to.be.within(25_000, 30_000)
  })

  it('stays open for other messages if an endpoint refuses some because of their content', async () => {
    for (let i = 0; i < 30; i++) expect((await gate.leave(id, 'refused')).hasOpened).to.equal(false)
    expect(await gate.enter(id)).to.equal(0)
    expect(await gate.state(id, Date.now())).to.include({ state: 'closed', tried: 30, failed: 0 })
    // still no webhook was delivered
    await redis.hset(`redelayed:service:endpoint:{${id}}`, 'failingSince', Date.now() - 60_000)
    expect((await gate.leave(id, 'refused')).failingMs).to.be.within(30_000, 90_000)
    // an endpoint that answers so is there again
    await fail(100)
    expect(await gate.enter(id)).to.be.greaterThan(0)
    await gate.leave(id, 'refused')
    expect(await gate.enter(id)).to.equal(0)
  })

  it('reports its state: closed with the counts of a minute, open, half open, held by a pause', async () => {
    await fail(9)
    expect(await gate.state(id, Date.now())).to.deep.equal({ state: 'closed', tried: 9, failed: 9 })
    await gate.leave(id, 'failed', 60_000)
    const { state, until = 0, pausedUntil = 0 } = await gate.state(id, Date.now())
    expect(state).to.equal('open')
    expect(until).to.be.within(Date.now() + 20_000, Date.now() + 30_000)
    expect(pausedUntil).to.be.above(until)
    expect((await gate.state(id, until)).state).to.equal('half-open')
    expect(await gate.state(id, until + 60_000)).to.include({ tried: 0, failed: 0 })
  })

  it('reports for how long it is held, and lets no webhook through by that', async () => {
    expect(await gate.heldMs(id)).to.equal(0)
    await gate.leave(id, 'failed', 60_000)
    expect(await gate.heldMs(id)).to.be.within(55_000, 60_000)
    await age(60_001, 'pausedUntil')
    await fail(9)
    await age(30_001, 'openUntil')
    expect(await gate.heldMs(id), 'the next webhook tries').to.equal(0)
    expect(await gate.enter(id)).to.equal(0)
    expect(await gate.heldMs(id)).to.be.within(25_000, 30_000)
  })

  it('stays open below ten, and below 70 %', async () => {
    await fail(9)
    expect(await gate.enter(id)).to.equal(0)
    for (let i = 0; i < 5; i++) await gate.leave(id, 'delivered')
    await fail(2)
    expect(await gate.enter(id)).to.equal(0)
  })

  it('forgets the counts after a minute', async () => {
    await fail(9)
    await age(60_000, 'since')
    expect((await fail(9)).some(({ hasOpened }) => hasOpened)).to.equal(false)
  })

  it('lets one through when the breaker has been open long enough, and a delivery closes it', async () => {
    await fail(10)
    await age(30_000, 'openUntil')
    expect(await gate.enter(id)).to.equal(0)
    expect(await gate.enter(id)).to.be.within(25_000, 30_000)
    await gate.leave(id, 'delivered')
    expect(await gate.enter(id)).to.equal(0)
    expect(await gate.enter(id)).to.equal(0)
  })

  it('keeps the breaker open when the one that was let through fails', async () => {
    await fail(10)
    await age(30_000, 'openUntil')
    await gate.enter(id)
    expect((await gate.leave(id, 'failed')).hasOpened).to.equal(false)
    expect(await gate.enter(id)).to.be.within(25_000, 30_000)
  })

  it('keeps the longer of two pauses', async () => {
    await gate.leave(id, 'failed', 20_000)
    await gate.leave(id, 'failed', 5_000)
    expect(await gate.enter(id)).to.be.within(15_000, 20_000)
  })

  it('reports for how long no webhook was delivered', async () => {
    expect((await gate.leave(id, 'failed')).failingMs).to.equal(0)
    await age(432_000_000, 'failingSince')
    expect((await gate.leave(id, 'failed')).failingMs).to.be.within(432_000_000, 432_060_000)
    expect((await gate.leave(id, 'delivered')).failingMs).to.equal(0)
    expect((await gate.leave(id, 'failed')).failingMs).to.equal(0)
  })

  for (const [perSecond, atOnce, most] of [
    [2, 2, 500],
    [0.5, 1, 2_000],
  ] as const) {
    it(`spaces ${perSecond} a second: ${atOnce} at once after a pause`, async () => {
      const startedAt = performance.now()
      for (let i = 0; i < atOnce; i++) expect(await gate.enter(id, perSecond), String(i)).to.equal(0)
      const wait = await gate.enter(id, perSecond)
      // a machine that was slow for so long has let the time pass
      const tookMs = performance.now() - startedAt
      expect(wait).to.be.within(Math.max(0, most - tookMs - 5), most)
    })
  }

  it('has no limit of its own if an endpoint allows many', async () => {
    for (let i = 0; i < 50; i++) expect(await gate.enter(id, 1_000), String(i)).to.equal(0)
  })

  it('works after the server has forgotten its scripts, and reports other errors', async () => {
    await redis.script('FLUSH')
    expect(await gate.enter(id)).to.equal(0)
    const fail = (): Promise<never> => Promise.reject(new Error('OOM command not allowed'))
    const other = new EndpointGate({
      evalsha: fail,
      eval: () => expect.fail('it knows the script'),
      del: fail,
      hmget: fail,
    })
    const error: unknown = await other.enter(id).catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(Error).with.property('message').that.includes('OOM')
  })
})

describe('a delivery', () => {
  let redis: Redis
  let server: Server
  let sender: Sender
  let endpoint: Endpoint
  let status: number
  let seen: { headers: Record<string, string>; body: string }[]
  const secret = newSecret()
  const send = (over: { attempt?: number; headers?: Record<string, string> } = {}): Promise<Delivered> =>
    new Delivery(sender, new EndpointGate(redis)).deliver(endpoint, {
      id: 'm.1',
      body: Buffer.from('{"n":1}'),
      contentType: 'application/json',
      attempt: 1,
      ...over,
    })

  beforeEach(async () => {
    seen = []
    redis = new Redis(url)
    server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        seen.push({ headers: request.headers as Record<string, string>, body: Buffer.concat(chunks).toString() })
        response.writeHead(status, { 'retry-after': '7' }).end('answer')
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const policy = new EgressPolicy({ allowNetworks: ['127.0.0.1'], ports: [port] })
    sender = new Sender(policy)
    endpoint = {
      id: randomUUID(),
      url: policy.readUrl(`http://127.0.0.1:${port}/`),
      secrets: [readSecret(secret)],
      perSecond: 0,
      timeoutMs: 10_000,
    }
  })
  afterEach(async () => {
    await sender.close()
    await redis.del(`redelayed:service:endpoint:{${endpoint.id}}`)
    await redis.quit()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  it('is judged by its answer, even if the gate fails after it', async () => {
    const errors: unknown[] = []
    const gate = {
      enter: async () => 0,
      leave: async () => {
        throw new Error('READONLY')
      },
    } as unknown as EndpointGate
    status = 200
    const webhook = { id: 'm.1', body: Buffer.from('{}'), contentType: 'application/json', attempt: 1 }
    const delivered = await new Delivery(sender, gate, (error) => errors.push(error)).deliver(endpoint, webhook)
    expect(delivered.is).to.equal('delivered')
    expect(seen).to.have.length(1)
    expect(errors.map(String)).to.deep.equal(['Error: READONLY'])
  })

  it('waits while the gate does not answer, which does not count as an attempt', async () => {
    const errors: unknown[] = []
    const gate = { enter: () => new Promise(() => undefined) } as unknown as EndpointGate
    const webhook = { id: 'm.1', body: Buffer.from('{}'), contentType: 'application/json', attempt: 1 }
    const delivered = await new Delivery(sender, gate, (error) => errors.push(error)).deliver(endpoint, webhook)
    expect(delivered.is).to.equal('held')
    expect(seen).to.have.length(0)
    expect(errors).to.have.length(1)
  })

  it('is accepted by the verifier of Standard Webhooks, and carries the headers of the message under a prefix', async () => {
    status = 204
    const result = await send({
      attempt: 3,
      headers: { Host: 'évil', 'content-type': 'x', 'a b': 'c', trace: 'a\r\nb' },
    })
    expect(result.is).to.equal('delivered')
    const [{ headers, body }] = seen as [(typeof seen)[0]]
    expect(new Verifier(secret).verify(body, headers)).to.deep.equal({ n: 1 })
    expect(headers).to.include({
      'content-type': 'application/json',
      'redelayed-attempt': '3',
      'redelayed-header-host': '%C3%A9vil',
      'redelayed-header-content-type': 'x',
      'redelayed-header-trace': 'a%0D%0Ab',
    })
    expect(headers['host']).to.match(/^127\.0\.0\.1:/)
  })

  it('that fails keeps the answer; the endpoint that asks for a pause gets it', async () => {
    status = 500
    expect(await send()).to.deep.include({ is: 'failed', pauseMs: 0, failingMs: 0 })
    status = 503
    const result = await send()
    expect(result).to.include({ is: 'failed', pauseMs: 7_000 })
    expect(result).to.have.nested.property('answer.body').that.deep.equals(Buffer.from('answer'))
    status = 200
    expect(await send())
      .to.have.property('waitMs')
      .that.is.within(1, 7_000)
    expect(seen).to.have.length(2)
  })

  it('of an endpoint that is gone reports it', async () => {
    status = 410
    expect(await send()).to.include({ is: 'gone' })
  })
})
