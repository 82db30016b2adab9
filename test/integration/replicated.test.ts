import { expect } from 'chai'
import { AuthError, ConnectionError, InvalidArgumentError, RedelayedError, codecs } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { freePort, requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import { startProxy } from '../support/tcp-proxy.js'
import { cleanUp, expectError, makeClient, makePair, numbers, onCleanup, rawTo, rejection, track } from './fixtures.js'

describe('Replicated nodes without sentinels', function () {
  let servers: RedisServer[]

  before(async function () {
    requireServerBin(this)
    servers = [await startRedis(), await startRedis()]
    const [replica, master] = servers.map(({ port }) => port) as [number, number]
    await become(replica, master)
    await rawTo(master).call('WAIT', 1, 5_000)
    await cleanUp()
  })
  after(() => Promise.all((servers ?? []).map((server) => server.stop())))
  afterEach(cleanUp)

  async function become(replica: number, master: number): Promise<void> {
    await rawTo(master).call('REPLICAOF', 'NO', 'ONE')
    await rawTo(replica).call('REPLICAOF', '127.0.0.1', master)
    await eventually(async () => {
      expect(await rawTo(replica).info('replication')).to.include('master_link_status:up')
    }, 10_000)
  }

  async function roles(): Promise<{ master: number; replica: number }> {
    const [first, second] = servers.map(({ port }) => port) as [number, number]
    const [role] = await rawTo(first).role()
    return role === 'master' ? { master: first, replica: second } : { master: second, replica: first }
  }

  async function subscribersAt(port: number, channel: string): Promise<number> {
    const [, count] = (await rawTo(port).pubsub('NUMSUB', channel)) as [string, number]
    return count
  }

  const nodes = () => servers.map(({ port }) => ({ host: '127.0.0.1', port }))

  it('the one that calls itself master is used, wherever it is in the list', async () => {
    const { master } = await roles()
    for (const replicated of [nodes(), nodes().reverse(), nodes().map(({ host, port }) => `redis://${host}:${port}`)]) {
      const { delayed, queue, name } = makePair('redisson', { replicated })
      const waiting = queue.take()
      await delayed.offer('a', 20)
      expect(await waiting).to.equal('a')
      await queue.offer('stays')
      expect(await rawTo(master).lrange(name, 0, -1)).to.deep.equal(['stays'])
    }
  })

  it('a node that does not answer does not delay the client', async () => {
    const gone = { host: '127.0.0.1', port: await freePort() }
    const { delayed, queue } = makePair('compact', { replicated: [gone, ...nodes()] })
    await delayed.offer('a', 10)
    expect(await queue.take()).to.equal('a')
  })

  it('when the roles change and all connections stay, the next call goes to the new master', async () => {
    const { master, replica } = await roles()
    const { client, delayed, queue } = makePair('redisson', { replicated: nodes() })
    client.on('error', () => {})
    const waiting = track(queue.take())
    await delayed.offer('offered before', 3_600_000)
    const ticket = await delayed.offer('pending', 3_600_000)
    expect(await rawTo(master).call('WAIT', 1, 5_000)).to.equal(1)

    await become(master, replica)
    expect((await roles()).master).to.equal(replica)
    expect(await delayed.reschedule(ticket, 20)).to.be.a('string')
    expect(await waiting.promise).to.equal('pending')
    await delayed.offerAll([{ value: 'after', delay: 20 }])
    expect(await queue.take()).to.equal('after')
    expect(await delayed.size()).to.equal(1)
    await delayed.clear()
  }).timeout(20_000)

  it('also the bulk that comes first after the change, and the subscription', async () => {
    const { master, replica } = await roles()
    const { client, delayed, queue, keys } = makePair('compact', { replicated: nodes() })
    client.on('error', () => {})
    const waiting = track(queue.take())
    await delayed.offer('before', 3_600_000)
    await eventually(async () => expect(await subscribersAt(master, keys.channel)).to.equal(1))
    await become(master, replica)
    const tickets = await delayed.offerAll(numbers(300).map((value) => ({ value, delay: 3_600_000 })))
    expect(tickets).to.have.length(300)
    expect(await delayed.size()).to.be.at.least(300)
    await eventually(async () => expect(await subscribersAt(replica, keys.channel)).to.equal(1), 8_000)
    await delayed.offer('now', 5)
    expect(await waiting.promise).to.equal('now')
    await delayed.clear()
  }).timeout(20_000)

  it('a node that is silent holds up no call for long', async () => {
    const { master, replica } = await roles()
    const proxy = await startProxy({ targetPort: master })
    onCleanup(() => proxy.stop())
    proxy.blackhole(true)
    const pair = makePair('redisson', {
      replicated: [
        { host: '127.0.0.1', port: proxy.port },
        { host: '127.0.0.1', port: replica },
      ],
      connectTimeout: 4_000,
    })
    pair.client.on('error', () => {})
    const offered = pair.delayed.offer('x', 3_600_000)
    // the first search has found a replica and silence; the next one finds the master that the silent node is
    await eventually(() => expect(proxy.accepted).to.be.greaterThan(0))
    proxy.blackhole(false)
    expect(await offered).to.be.a('string')
    await pair.delayed.clear()
  })

  it('a shutdown in the middle of the search ends it', async () => {
    const proxy = await startProxy({ targetPort: servers[0]!.port })
    onCleanup(() => proxy.stop())
    proxy.blackhole(true)
    const { client, delayed } = makePair('redisson', { replicated: [{ host: '127.0.0.1', port: proxy.port }] })
    client.on('error', () => {})
    const offered = rejection(delayed.offer('x', 5))
    await eventually(() => expect(proxy.accepted).to.be.greaterThan(0))
    const started = performance.now()
    await client.shutdown()
    expect(performance.now() - started).to.be.below(1_000)
    expect(await offered).to.be.instanceOf(RedelayedError)
  })

  it('no master among them: a ConnectionError with the role of each', async () => {
    const { replica } = await roles()
    const gone = await freePort()
    const replicated = [
      { host: '127.0.0.1', port: replica },
      { host: '127.0.0.1', port: gone },
    ]
    const pair = makePair('redisson', { replicated, connectTimeout: 300 })
    pair.client.on('error', () => {})
    const says = [`127.0.0.1:${replica} is a slave`, `ECONNREFUSED`]
    await expectError([ConnectionError, { code: 'ERR_CONNECTION', queue: pair.name, says }], () =>
      pair.delayed.offer('x', 5),
    )
  })

  it('one master under two names is one', async () => {
    const { master } = await roles()
    const replicated = ['127.0.0.1', 'localhost'].map((host) => ({ host, port: master }))
    const { delayed, queue } = makePair('redisson', { replicated })
    await delayed.offer('a', 10)
    expect(await queue.take()).to.equal('a')
  })

  it('when takes wait at another address than commands go to, where nothing can interrupt them, they wait shortly', async () => {
    const { master: targetPort } = await roles()
    const [one, other] = [await startProxy({ targetPort }), await startProxy({ targetPort })]
    onCleanup(() => Promise.all([one.stop(), other.stop()]))
    const replicated = [one, other].map(({ port }) => ({ host: '127.0.0.1', port }))
    const client = makeClient({ replicated, consumersDeliver: false })
    const queue = client.getBlockingQueue<string>(uniqueName(), { codec: codecs.string() })
    other.refuse(true)
    expect(await queue.size()).to.equal(0)
    other.refuse(false)
    one.refuse(true)
    const started = performance.now()
    expect(await queue.poll(300)).to.equal(null)
    expect(performance.now() - started).to.be.within(300, 4_000)
    expect([one, other].map(({ connections }) => connections)).to.deep.equal([1, 1])
    const waiting = queue.take()
    await queue.offer('a')
    expect(await waiting).to.equal('a')
  })

  it('two masters: a ConnectionError that names both, and nothing is written', async () => {
    const { master } = await roles()
    const stranger = await startRedis()
    onCleanup(() => stranger.stop())
    const replicated = [master, stranger.port].map((port) => ({ host: '127.0.0.1', port }))
    const pair = makePair('redisson', { replicated, connectTimeout: 400 })
    pair.client.on('error', () => {})
    const says = [`127.0.0.1:${master}`, `127.0.0.1:${stranger.port}`, 'several nodes']
    await expectError([ConnectionError, { code: 'ERR_CONNECTION', queue: pair.name, says }], () =>
      pair.delayed.offer('x', 5),
    )
    expect(await rawTo(stranger.port).dbsize()).to.equal(0)
  })

  it('wrong credentials: an AuthError at once', async () => {
    const { master } = await roles()
    const plain = rawTo(master)
    await plain.config('SET', 'requirepass', 'right')
    onCleanup(() => plain.config('SET', 'requirepass', ''))
    const pair = makePair('redisson', { replicated: [{ host: '127.0.0.1', port: master }], password: 'wrong' })
    pair.client.on('error', () => {})
    const started = performance.now()
    await expectError([AuthError, { code: 'ERR_AUTH', queue: pair.name, says: [] }], () => pair.delayed.offer('x', 5))
    expect(performance.now() - started).to.be.below(5_000)
  })

  it('bad lists are refused at the call', () => {
    for (const replicated of [[], [{ host: '' }], [{ host: 'a', port: 0 }], 7]) {
      expect(() => makeClient({ replicated: replicated as never })).to.throw(InvalidArgumentError, 'replicated')
    }
    expect(() => makeClient({ replicated: nodes(), host: 'x' })).to.throw(InvalidArgumentError, 'host and replicated')
  })
}).timeout(20_000)
