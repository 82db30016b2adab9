import { expect } from 'chai'
import { AuthError, ConnectionError, InvalidArgumentError } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { freePort, requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { cleanUp, expectError, makeClient, makePair, onCleanup, rawTo, track } from './fixtures.js'

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

  const nodes = () => servers.map(({ port }) => ({ host: '127.0.0.1', port }))

  it('the one that calls itself master is used, wherever it stands in the list', async () => {
    const { master } = await roles()
    for (const replicated of [nodes(), nodes().reverse(), nodes().map(({ host, port }) => `redis://${host}:${port}`)]) {
      const { delayed, queue, name } = makePair('list', { replicated })
      const waiting = queue.take()
      await delayed.offer('a', 20)
      expect(await waiting).to.equal('a')
      await queue.offer('stays')
      expect(await rawTo(master).lrange(name, 0, -1)).to.deep.equal(['stays'])
    }
  })

  it('a node that does not answer is no hindrance', async () => {
    const gone = { host: '127.0.0.1', port: await freePort() }
    const { delayed, queue } = makePair('none', { replicated: [gone, ...nodes()] })
    await delayed.offer('a', 10)
    expect(await queue.take()).to.equal('a')
  })

  it('when the roles change and all connections stay, the next call goes to the new master', async () => {
    const { master, replica } = await roles()
    const { client, delayed, queue } = makePair('list', { replicated: nodes() })
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

  it('no master among them: a ConnectionError that says what each is', async () => {
    const { replica } = await roles()
    const gone = await freePort()
    const replicated = [
      { host: '127.0.0.1', port: replica },
      { host: '127.0.0.1', port: gone },
    ]
    const pair = makePair('list', { replicated, connectTimeout: 300 })
    pair.client.on('error', () => {})
    const says = [`127.0.0.1:${replica} is a slave`, `ECONNREFUSED`]
    await expectError([ConnectionError, { code: 'ERR_CONNECTION', queue: pair.name, says }], () =>
      pair.delayed.offer('x', 5),
    )
  })

  it('wrong credentials: an AuthError at once', async () => {
    const { master } = await roles()
    const plain = rawTo(master)
    await plain.config('SET', 'requirepass', 'right')
    onCleanup(() => plain.config('SET', 'requirepass', ''))
    const pair = makePair('list', { replicated: [{ host: '127.0.0.1', port: master }], password: 'wrong' })
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
