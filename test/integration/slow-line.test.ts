import { expect } from 'chai'
import { codecs, ConnectionError, type ClientOptions, type ReconnectingEvent } from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { startRedis, type RedisServer } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, onCleanup, rawTo, rejection, track } from './fixtures.js'

const RATE = 80_000
const string = { codec: codecs.string() }

/** Lines that are slow, but not dead: what a server has removed for a client must arrive there. */
describe('A slow line', function () {
  let server: RedisServer
  let proxy: TcpProxy

  this.timeout(30_000)
  afterEach(cleanUp)

  async function start(...args: string[]): Promise<void> {
    server = await startRedis({ args })
    onCleanup(() => server.stop())
    proxy = await startProxy({ targetPort: server.port })
    onCleanup(() => proxy.stop())
  }

  /** A take that waits at the server, and a slow line from then on. */
  async function taking(options: ClientOptions, signal?: AbortSignal) {
    const name = uniqueName()
    // a transfer beside the take can be overdue on such a line, which is an event that no listener of this test hears
    const client = makeClient({ host: '127.0.0.1', port: proxy.port, warnings: false, ...options })
    const queue = client.getBlockingQueue<string>(name, string)
    const taken = track(queue.take({ ...(signal !== undefined && { signal }) }))
    const plain = rawTo(server.port)
    await eventually(async () => expect(await plain.info('clients')).to.match(/^blocked_clients:1\r?$/m))
    proxy.throttle(RATE)
    /** The server has removed it then. */
    const put = async (bytes: number): Promise<string> => {
      const element = 'x'.repeat(bytes)
      await plain.rpush(name, element)
      await eventually(async () => expect(await plain.llen(name)).to.equal(0))
      return element
    }
    return { client, taken, put, plain, name }
  }

  it('brings an element whose bytes come long after its reply was due', async () => {
    // without CLIENT the wait at the server lasts one second instead of ten
    await start('--rename-command', 'CLIENT', '')
    const { taken, put } = await taking({ commandTimeout: 300 })
    const element = await put(250_000)
    expect((await taken.promise) === element, 'whether it is the element').to.equal(true)
  })

  it('brings an element to a take that is aborted while its bytes come', async () => {
    await start()
    const controller = new AbortController()
    const { taken, put } = await taking({ commandTimeout: 300 }, controller.signal)
    const element = await put(250_000)
    controller.abort(new Error('aborted'))
    expect((await taken.promise) === element, 'whether it is the element').to.equal(true)
  })

  it('brings an element whose bytes come when a shutdown begins', async () => {
    await start()
    const { client, taken, put } = await taking({ commandTimeout: 2_000 })
    const element = await put(270_000)
    await client.shutdown()
    expect((await taken.promise) === element, 'whether it is the element').to.equal(true)
  })

  it('does not hold up a shutdown with many calls whose replies come one by one', async () => {
    await start()
    const client = makeClient({ host: '127.0.0.1', port: proxy.port, commandTimeout: 1_000 })
    const queue = client.getQueue<string>(uniqueName(), string)
    expect(await queue.size()).to.equal(0)
    proxy.throttle(4_000)
    // more than a minute of bytes
    const adds = Array.from({ length: 300 }, () => queue.add('x'.repeat(1_000)).catch((error: unknown) => error))
    await eventually(async () => expect(await rawTo(server.port).llen(queue.name)).to.be.above(0))
    const startedAt = performance.now()
    await client.shutdown()
    expect(performance.now() - startedAt).to.be.below(20_000)
    const ends = await Promise.all(adds)
    expect(ends[0]).to.equal(true)
    expect(ends.at(-1)).to.be.instanceOf(ConnectionError).with.property('outcome', 'unknown')
  })

  it('does not hold up a shutdown for ever', async () => {
    await start()
    const { client, taken, put } = await taking({ commandTimeout: 300 })
    await put(10_000_000)
    const ended = rejection(taken.promise)
    const startedAt = performance.now()
    await client.shutdown()
    expect(performance.now() - startedAt).to.be.below(6_000)
    expect(await ended).to.be.instanceOf(Error)
  })

  it('is distinguished from a silent one, after which reconnecting names the missing bytes', async () => {
    await start('--rename-command', 'CLIENT', '')
    const { client, taken, name, plain } = await taking({ commandTimeout: 300 })
    const lost = once<ReconnectingEvent>(client, 'reconnecting', ({ connection }) => connection === 'blocking')
    proxy.halfOpen(['BLMPOP'])
    expect((await lost).error).to.be.instanceOf(ConnectionError)
    expect((await lost).error?.message).to.match(/sent no byte of it for 0.3 s/)
    await plain.rpush(name, 'a')
    expect(await taken.promise).to.equal('a')
  })

  it('carries a large reply to its end, and nothing is dropped', async () => {
    await start()
    const name = uniqueName()
    const client = makeClient({ host: '127.0.0.1', port: proxy.port, connectTimeout: 2_000, commandTimeout: 2_000 })
    client.on('reconnecting', ({ error }) => expect.fail(String(error)))
    const queue = client.getQueue<string>(name, string)
    await queue.size()
    const element = 'x'.repeat(300_000)
    await rawTo(server.port).rpush(name, element)
    proxy.throttle(RATE)
    expect((await queue.peek()) === element, 'whether it is the element').to.equal(true)
  })

  it('on which a reply trickles for ever is replaced, and other calls continue', async () => {
    await start()
    const name = uniqueName()
    const client = makeClient({ host: '127.0.0.1', port: proxy.port, connectTimeout: 5_000, commandTimeout: 500 })
    const queue = client.getQueue<string>(name, string)
    await rawTo(server.port).rpush(name, 'x'.repeat(10_000))
    await queue.size()
    const dropped = once<ReconnectingEvent>(client, 'reconnecting', ({ connection }) => connection === 'commands')
    proxy.throttle(20, 'toClient')
    const calls = [queue.peek(), queue.size()].map((call) => call.catch((error: unknown) => error))
    expect(String((await dropped).error?.message)).to.match(/less than 100 bytes a second for 0.5 s/)
    proxy.throttle(Infinity)
    expect(await queue.size()).to.equal(1)
    for (const outcome of await Promise.all(calls)) {
      if (outcome instanceof Error) expect(outcome).to.be.instanceOf(ConnectionError)
    }
  })
})
