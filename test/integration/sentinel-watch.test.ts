import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ClientOptions } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startRedis, startSentinel, type SentinelSetup } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js'
import { cleanUp, connectionsNamed, expectRoundTrip, makePair, onCleanup, rawTo, track, type Pair } from './fixtures.js'

describe('The sentinels are listened to', function () {
  let setup: SentinelSetup
  let proxies: TcpProxy[]
  let connectionName: string

  before(function () {
    requireServerBin(this)
  })
  beforeEach(async function () {
    this.timeout(30_000)
    setup = await startSentinel()
    onCleanup(() => setup.stop())
    connectionName = uniqueName('watches')
    proxies = await Promise.all(setup.sentinels.map(({ port: targetPort }) => startProxy({ targetPort })))
    onCleanup(() => Promise.all(proxies.map((proxy) => proxy.stop())))
  })
  afterEach(cleanUp)

  /** A client that finds the sentinels behind proxies, when it listens to all of them. */
  async function listening({ ioredis, ...options }: ClientOptions = {}): Promise<Pair> {
    const pair = makePair('redisson', {
      sentinels: proxies.map(({ port }) => ({ host: '127.0.0.1', port })),
      name: setup.name,
      pingInterval: 200,
      ...options,
      ioredis: { connectionName, ...ioredis },
    })
    await expectRoundTrip(pair)
    for (const { port } of setup.sentinels) {
      const sentinel = rawTo(port) // no other client subscribes there
      await eventually(async () => expect(await sentinel.client('LIST')).to.match(/ sub=[12] /))
    }
    return pair
  }

  /** Resolves when all sentinels have said that this is the master now, and will not say it again. */
  async function announced(master: number): Promise<void> {
    for (const { port } of setup.sentinels) {
      const sentinel = rawTo(port)
      await eventually(async () => {
        const state = (await sentinel.call('SENTINEL', 'MASTER', setup.name)) as string[]
        const valueOf = (field: string) => state[state.indexOf(field) + 1]
        expect([valueOf('port'), valueOf('flags')]).to.deep.equal([`${master}`, 'master'])
      })
    }
  }

  /** The last command of each connection; a subscriber's later pings do not count. */
  const commandsAt = async (port: number): Promise<(string | undefined)[]> =>
    (await connectionsNamed(connectionName, rawTo(port))).map((line) =>
      / sub=[1-9]/.test(line) ? 'subscribe' : / cmd=(\w+)/.exec(line)?.[1],
    )

  const faults: [what: string, begin: (proxy: TcpProxy) => void, end: (proxy: TcpProxy) => void][] = [
    [
      'cannot be reached',
      (proxy) => {
        proxy.refuse(true)
        proxy.cut()
      },
      (proxy) => proxy.refuse(false),
    ],
    ['are silent on half-open sockets', (proxy) => proxy.halfOpen(['SUBSCRIBE']), () => {}],
  ]
  for (const [what, begin, end] of faults) {
    it(`a failover while they ${what} is caught up with, before the old master knows of it`, async () => {
      const { delayed, queue } = await listening()
      const waiting = track(queue.take())
      const ticket = await delayed.offer('pending', 3_600_000)
      await rawTo(await setup.masterPort()).call('WAIT', 1, 5_000)
      for (const proxy of proxies) begin(proxy)
      const old = await setup.promote()
      const master = await setup.masterPort()
      await announced(master)
      for (const proxy of proxies) end(proxy)
      await eventually(async () => {
        expect(await commandsAt(old), 'at the old master').to.deep.equal([])
        expect(await commandsAt(master)).to.include.members(['blmpop', 'subscribe'])
      }, 8_000)
      expect((await rawTo(old).role())[0], 'it still takes everything').to.equal('master')
      expect(await delayed.reschedule(ticket, 10)).to.be.a('string')
      expect(await waiting.promise).to.equal('pending')
    }).timeout(30_000)
  }

  it('a client goes where the sentinels are led by hand, without a failover, and back', async () => {
    const { delayed, queue } = await listening()
    const master = await setup.masterPort()
    const other = await startRedis()
    onCleanup(() => other.stop())
    for (const port of [other.port, master]) {
      for (const sentinel of setup.sentinels.map(({ port: at }) => rawTo(at))) {
        await sentinel.call('SENTINEL', 'REMOVE', setup.name)
        await sentinel.call('SENTINEL', 'MONITOR', setup.name, '127.0.0.1', port, 2)
      }
      await eventually(async () => {
        expect(await commandsAt(port === master ? other.port : master), 'at the other one').to.deep.equal([])
        expect(await delayed.offer(`at ${port}`, 10)).to.be.a('string')
        expect(await queue.poll(5, 'seconds')).to.equal(`at ${port}`)
      }, 10_000)
    }
  }).timeout(40_000)

  it('a client that is connected to the master by another address stays connected', async () => {
    const outer = await Promise.all(setup.servers.map(({ port: targetPort }) => startProxy({ targetPort })))
    onCleanup(() => Promise.all(outer.map((proxy) => proxy.stop())))
    const natMap = Object.fromEntries(
      setup.servers.map(({ port }, at) => [`127.0.0.1:${port}`, { host: 'localhost', port: outer[at]!.port }]),
    )
    const pair = await listening({ ioredis: { natMap, family: 4 } })
    const lost: unknown[] = []
    pair.client.on('reconnecting', (event) => lost.push(event))
    await expectRoundTrip(pair)
    expect(lost).to.deep.equal([])
    const connections = outer[0]!.connections
    expect(connections, 'commands, subscriber and take').to.equal(3)
    expect(outer[0]!.accepted).to.equal(connections)
  }).timeout(30_000)

  it('the rights that the documentation lists are enough for a user of the sentinels', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/wire-format.md'), 'utf8')
    const rights = /^A user of the sentinels needs `(.*?)`/m.exec(page)![1]!.split(' ')
    for (const { port } of setup.sentinels) {
      await rawTo(port).call('ACL', 'SETUSER', 'watcher', 'on', '>secret', '&+switch-master', ...rights)
    }
    await listening({ sentinelUsername: 'watcher', sentinelPassword: 'secret' })
  }).timeout(30_000)
})
