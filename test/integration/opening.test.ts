import { expect } from 'chai'
import { Redis } from 'ioredis'
import { ConnectionError, codecs, type ClientOptions, type ReconnectingEvent } from '../../src/index.js'
import { once } from '../support/events.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, makePair, onCleanup, rawKeys, rejection, track, type Pair } from './fixtures.js'

const LIMIT = 400
const LATER = 600_000
type Connected = Pick<Pair, 'client' | 'name' | 'queue'>
type Stage = Parameters<TcpProxy['muteNew']>[0]

/** A server that accepts a connection and then says nothing any more, on that connection, for ever. */
describe('A connection that falls silent while it is opened', () => {
  let proxy: TcpProxy

  beforeEach(async () => {
    const { hostname, port } = new URL(redisUrl())
    proxy = await startProxy({ targetHost: hostname, targetPort: Number(port) })
    onCleanup(() => proxy.stop())
  })
  afterEach(cleanUp)

  /** Its command connection works; it opens no other one by itself. */
  async function connected(options: ClientOptions = {}): Promise<Connected> {
    const url = `redis://127.0.0.1:${proxy.port}`
    const limits = { connectTimeout: LIMIT, sweepInterval: 3_600_000, consumersDeliver: false }
    const client = makeClient({ url, ...limits, ...options })
    client.on('error', () => {})
    const name = uniqueName()
    onCleanup(() => rawClient().unlink(...listed(rawKeys(name))))
    const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
    await queue.size()
    return { client, name, queue }
  }

  /** Resolves when so many attempts to open it were given up because of the silence. */
  const givenUp = ({ client }: Connected, role: ReconnectingEvent['connection'], attempts = 2) =>
    once<ReconnectingEvent>(
      client,
      'reconnecting',
      ({ connection, attempt, error }) =>
        connection === role && attempt >= attempts && /was silent for 0.4 s/.test(String(error?.message)),
    )

  const roles: Record<
    'blocking' | 'durable' | 'subscriber',
    { stages: Stage[]; use: (pair: Connected) => Promise<unknown> }
  > = {
    blocking: {
      stages: ['accept', 'HELLO', 'INFO', 'ID'],
      use: async ({ queue, name }) => {
        const taken = queue.take()
        await rawClient().rpush(name, 'it')
        expect(await taken).to.equal('it')
      },
    },
    durable: {
      stages: ['accept', 'HELLO', 'INFO', 'LOAD'],
      use: async ({ client, queue }) => {
        const delayed = client.getDelayedQueue(queue, { deliver: false })
        const offer = () => delayed.offer('it', LATER, { durability: { replicas: 1, timeoutMs: 1 } })
        // no replica is there: the wait ends at once, and the offer was made
        for (let error = await rejection(offer()); error instanceof ConnectionError; error = await rejection(offer())) {
          expect(error.outcome).to.equal('not-applied')
        }
        expect(await delayed.size()).to.equal(1)
      },
    },
    subscriber: {
      stages: ['accept', 'HELLO', 'INFO', 'SUBSCRIBE'],
      use: async ({ client, queue }) => {
        const subscribed = once(client, 'subscribed')
        const delayed = client.getDelayedQueue(queue)
        await delayed.offer('it', 1)
        await subscribed
        expect(await queue.poll(5_000)).to.equal('it')
      },
    },
  }
  for (const [role, { stages, use }] of Object.entries(roles)) {
    for (const stage of stages) {
      it(`after ${stage}: the ${role} connection is given up and opened again`, async () => {
        const pair = await connected()
        proxy.muteNew(stage)
        const lost = givenUp(pair, role as ReconnectingEvent['connection'])
        const used = track(use(pair))
        const { error } = await lost
        expect(error).to.be.instanceOf(ConnectionError)
        expect(used.settled).to.equal(false)
        proxy.muteNew(undefined) // those that were accepted stay silent
        await used.promise
        expect(proxy.muted).to.be.at.least(2)
      })
    }
  }

  for (const stage of ['accept', 'HELLO', 'INFO', 'MEMORY'] as const) {
    it(`after ${stage}: the command connection is given up, and calls end in time`, async () => {
      proxy.muteNew(stage)
      const pair = makePair('redisson', { url: `redis://127.0.0.1:${proxy.port}`, connectTimeout: LIMIT })
      pair.client.on('error', () => {})
      const lost = givenUp(pair, 'commands')
      const started = performance.now()
      const error = await rejection(pair.queue.size())
      expect(performance.now() - started).to.be.within(LIMIT - 5, 4 * LIMIT)
      expect(error).to.be.instanceOf(ConnectionError).with.property('outcome', 'not-applied')
      await lost
      proxy.muteNew(undefined)
      expect(await pair.queue.size().catch(() => pair.queue.size())).to.equal(0)
    })
  }

  for (const stage of ['accept', 'HELLO', 'ID'] as const) {
    it(`after ${stage}: a shutdown does not wait for it`, async () => {
      const pair = await connected({ connectTimeout: 60_000 })
      proxy.muteNew(stage)
      const waiting = [
        rejection(pair.queue.take()),
        rejection(
          pair.client.getDelayedQueue(pair.queue).offer('x', LATER, { durability: { replicas: 1, timeoutMs: 1 } }),
        ),
      ]
      await once(proxy.events, 'muted')
      const started = performance.now()
      await Promise.all([pair.client.shutdown(), pair.client.shutdown()])
      expect(performance.now() - started).to.be.below(2_500)
      await Promise.all(waiting)
    })
  }

  for (const whose of ['its own client', 'a client of the user']) {
    it(`after the request for the memory policy, on ${whose}: calls and a shutdown end in time`, async () => {
      proxy.muteNew('MEMORY')
      const lent = new Redis(proxy.port, '127.0.0.1', { lazyConnect: true })
      lent.on('error', () => {})
      onCleanup(() => lent.disconnect())
      const limits = { connectTimeout: LIMIT, commandTimeout: LIMIT }
      const target = whose === 'its own client' ? { host: '127.0.0.1', port: proxy.port } : { redis: lent }
      const client = makeClient({ ...target, ...limits })
      client.on('error', () => {})
      const queue = client.getBlockingQueue<string>(uniqueName(), { codec: codecs.string() })
      const started = performance.now()
      expect(await rejection(queue.size())).to.be.instanceOf(ConnectionError)
      const ending = rejection(queue.take())
      await client.shutdown()
      expect(performance.now() - started).to.be.below(LIMIT * 4 + 2_500)
      await ending
      expect(proxy.muted).to.be.at.least(1)
    })
  }

  it('a take with a timeout or a signal ends by them meanwhile', async () => {
    const pair = await connected()
    proxy.muteNew('HELLO')
    const aborting = new AbortController()
    const taken = rejection(pair.queue.take({ signal: aborting.signal }))
    const started = performance.now()
    expect(await pair.queue.poll(100)).to.equal(null)
    expect(performance.now() - started).to.be.below(2_000)
    aborting.abort(new Error('enough'))
    expect((await taken).message).to.equal('enough')
  })

  it('TLS to a port without it: the error asks whether the port speaks TLS', async () => {
    const { hostname, port } = new URL(redisUrl())
    const client = makeClient({ host: hostname, port: Number(port), tls: true, connectTimeout: 500 })
    const { message } = await rejection(client.getQueue(uniqueName()).size())
    expect(message).to.match(/no connection to Redis within 0\.5 s at .*by TLS: does this port speak TLS\?/)
  })

  it('thousands of queues are subscribed in parts, each of which has the time', async () => {
    const { client } = await connected({ connectTimeout: 3_500 })
    const names = Array.from({ length: 3_000 }, () => uniqueName())
    const subscribed = new Set<string>()
    client.on('subscribed', ({ queue }) => subscribed.add(queue))
    client.on('reconnecting', ({ error }) => expect.fail(String(error)))
    proxy.delay(300)
    for (const name of names) client.getDelayedQueue(client.getQueue(name))
    await once(client, 'subscribed', () => subscribed.size === names.length, 25_000)
    proxy.delay(0)
  })
})

function listed(keys: object): string[] {
  return Object.values(keys) as string[]
}
