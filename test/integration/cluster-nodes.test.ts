import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { CommandError, ConnectionError, DurabilityError, ShutdownError, codecs } from '../../src/index.js'
import { pause } from '../../src/timing/pause.js'
import { RequestReader } from '../liveness/request-reader.js'
import { eventually, once, timers } from '../support/events.js'
import { requireServerBin, startCluster, startRedis } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import { startProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, onCleanup, rawTo, rejection } from './fixtures.js'

const LIMITS = { connectTimeout: 500, commandTimeout: 500 }
/** For calls that are answered: a busy machine may take long. */
const LONG_LIMITS = { connectTimeout: 10_000, commandTimeout: 10_000 }

// An unhandled rejection or an uncaught exception fails these tests: see test/support/hooks.ts.
describe('nodes of a cluster', () => {
  let timersBefore: number

  before(function () {
    requireServerBin(this)
  })
  beforeEach(async () => {
    await Promise.resolve() // by now mocha has armed its own
    timersBefore = timers()
  })
  afterEach(async () => {
    await cleanUp()
    // ioredis keeps one for two seconds for a connection that it ends when it has ended already
    await eventually(() => expect(timers()).to.be.at.most(timersBefore))
  })

  for (const isBorrowed of [false, true]) {
    const whose = isBorrowed ? 'a Cluster of the user' : 'an own Cluster'
    it(`a slot moves to a node that has died: calls of ${whose} reject, and the process lives`, async function () {
      this.timeout(30_000)
      const setup = await startCluster({ masters: 2 })
      const { nodes, servers } = setup
      onCleanup(() => setup.stop())
      const name = uniqueName()
      const [from, to] = nodes.map(({ port }) => new Redis(port, { retryStrategy: () => null }))
      onCleanup(() => [from, to].forEach((redis) => redis!.disconnect()))
      const slot = await from!.cluster('KEYSLOT', name)
      const isSwapped = slot >= 8_192
      const [source, target] = isSwapped ? [to!, from!] : [from!, to!]
      const [sourceId, targetId] = [await source.cluster('MYID'), await target.cluster('MYID')]

      const own = isBorrowed ? new Cluster(nodes, { lazyConnect: true }) : undefined
      own?.on('error', () => {})
      onCleanup(() => own?.disconnect())
      const client = makeClient({ ...(own === undefined ? { cluster: nodes } : { redis: own }), ...LIMITS })
      const queue = client.getQueue<string>(name, { codec: codecs.string() })
      expect(await queue.size()).to.equal(0)

      await target.cluster('SETSLOT', slot, 'IMPORTING', sourceId)
      await source.cluster('SETSLOT', slot, 'MIGRATING', targetId)
      await servers[isSwapped ? 0 : 1]!.kill()
      for (let i = 0; i < 3; i++) expect(await rejection(queue.size())).to.be.instanceOf(ConnectionError)
    })
  }

  for (const isMapped of [false, true]) {
    for (const isBorrowed of [false, true]) {
      const whose = isBorrowed ? 'a Cluster of the user' : 'an own Cluster'
      const which = isMapped ? ' that knows the nodes by other addresses' : ''
      it(`a slot moves: ${whose}${which} is redirected once, and all calls reach the right node afterwards`, async function () {
        this.timeout(30_000)
        const setup = await startCluster({ masters: 3 })
        onCleanup(() => setup.stop())
        const proxies = await Promise.all(setup.nodes.map(({ port }) => startProxy({ targetPort: port })))
        onCleanup(() => Promise.all(proxies.map((proxy) => proxy.stop())))
        const outer = proxies.map(({ port }) => ({ host: '127.0.0.1', port }))
        const natMap = Object.fromEntries(setup.nodes.map(({ port }, at) => [`127.0.0.1:${port}`, outer[at]!]))
        const [nodes, options] = isMapped ? [outer, { natMap }] : [setup.nodes, {}]
        const lent = isBorrowed ? new Cluster(nodes, { lazyConnect: true, ...options }) : undefined
        lent?.on('error', () => {})
        onCleanup(() => lent?.disconnect())
        const client = makeClient(lent === undefined ? { cluster: nodes, ioredis: options } : { redis: lent })
        const queues = Array.from({ length: 60 }, () =>
          client.getQueue<string>(uniqueName(), { codec: codecs.string() }),
        )
        await Promise.all(queues.map((queue) => queue.size()))

        const servers = setup.nodes.map(({ port }) => rawTo(port))
        const slot = await servers[0]!.cluster('KEYSLOT', queues[0]!.getName())
        const from = Math.floor((slot * 3) / 16_384)
        const to = (from + 1) % 3
        const id = await servers[to]!.cluster('MYID')
        for (const at of [to, from, 3 - to - from]) await servers[at]!.cluster('SETSLOT', slot, 'NODE', id)
        const redirections = async (): Promise<number> => {
          const infos = await Promise.all(servers.map((redis) => redis.info('errorstats')))
          return infos.reduce((sum, info) => sum + Number(/errorstat_MOVED:count=(\d+)/.exec(info)?.[1] ?? 0), 0)
        }
        const before = await redirections()
        const calls = queues.map(async (queue) => {
          for (let n = 0; n < 40; n++) {
            await queue.size()
            await pause(20 + 20 * Math.random()) // so that some are under way whenever ioredis has asked for the slots
          }
        })
        await Promise.all(calls)
        expect((await redirections()) - before, 'of 2,400 calls').to.be.lessThan(10)
      })
    }
  }

  const TABLES = {
    'with slots up to 999,999,999': '*1\r\n*3\r\n:0\r\n:999999999\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n',
    'that is nil': '$-1\r\n',
    'of integers': '*2\r\n:1\r\n:2\r\n',
    'whose nodes are nil': '*1\r\n*3\r\n:0\r\n:16383\r\n$-1\r\n',
  }
  for (const [what, table] of Object.entries(TABLES)) {
    it(`a table of slots ${what} is asked for again, and ends nothing`, async () => {
      let asked = 0
      const server = createServer((socket) => {
        socket.on('error', () => {})
        socket.on('data', (bytes) => {
          for (const command of bytes
            .toString()
            .split(/^\*\d+\r\n/m)
            .slice(1)) {
            const isTable = /slots/i.test(command)
            if (isTable) asked++
            socket.write(isTable ? table : /hello/i.test(command) ? "-ERR unknown command 'HELLO'\r\n" : '+OK\r\n')
          }
        })
        onCleanup(() => socket.destroy())
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      onCleanup(() => server.close())
      const { port } = server.address() as AddressInfo

      const client = makeClient({ cluster: [{ host: '127.0.0.1', port }], ...LIMITS })
      const queue = client.getQueue<string>(uniqueName(), { codec: codecs.string() })
      for (let i = 0; i < 2; i++) expect(await rejection(queue.size())).to.be.instanceOf(ConnectionError)
      expect(asked, 'looks').to.be.at.least(2)
    })
  }

  it('the address of a node leads to a server that is no cluster: nothing is added, awaited or announced there', async function () {
    this.timeout(90_000)
    const setup = await startCluster({ masters: 3 })
    onCleanup(() => setup.stop())
    const stranger = await startRedis()
    onCleanup(() => stranger.stop())
    const proxies = await Promise.all(setup.nodes.map(({ port }) => startProxy({ targetPort: port })))
    onCleanup(() => Promise.all(proxies.map((proxy) => proxy.stop())))
    const outer = proxies.map(({ port }) => ({ host: '127.0.0.1', port }))
    const natMap = Object.fromEntries(setup.nodes.map(({ port }, at) => [`127.0.0.1:${port}`, outer[at]!]))
    const connect = () => {
      const client = makeClient({
        cluster: outer,
        ioredis: { natMap },
        connectTimeout: 2_000,
        commandTimeout: 2_000,
      }).on('error', () => {})
      // the slots of the names are at one node each
      const each = ['{bar}', '{c}', '{foo}'].map((tag) => {
        const name = `${prefix}${tag}`
        const queue = client.getBlockingQueue<string>(name, STRINGS)
        return {
          queue,
          delayed: client.getDelayedQueue(queue),
          durable: client.getDelayedQueue(client.getQueue<string>(`${name}:durable`, STRINGS)),
          reliable: client.getReliableQueue<string>(`${name}:reliable`, STRINGS),
          awaited: client.getBlockingQueue<string>(`${name}:awaited`, STRINGS),
        }
      })
      return { client, each }
    }
    const STRINGS = { codec: codecs.string() }
    const prefix = uniqueName()
    const { each } = connect()
    const added = { now: 0, later: 0, durably: 0, reliably: 0, elsewhere: 0 }
    const count = async (what: keyof typeof added, call: Promise<unknown>): Promise<void> => {
      try {
        await call
      } catch (thrown) {
        expect(thrown).to.be.instanceOf(thrown instanceof DurabilityError ? DurabilityError : ConnectionError)
        if (!(thrown instanceof DurabilityError)) return
      }
      added[what]++
    }
    const durability = { replicas: 1, timeoutMs: 50 } // no replica confirms it
    const addTo = async ({ queue, delayed, durable, reliable }: (typeof each)[number]): Promise<void> => {
      await Promise.all([
        count(queue.getName() === each[0]!.queue.getName() ? 'now' : 'elsewhere', queue.offer('a')),
        count('later', delayed.offer('a', '1h')),
        count('durably', durable.offer('a', '1h', { durability })),
        count('reliably', reliable.add('a')),
      ])
    }
    await Promise.all(each.map(addTo))
    expect(added).to.deep.equal({ now: 1, later: 3, durably: 3, reliably: 3, elsewhere: 2 })
    const taken = Promise.all(each.map(({ awaited }) => awaited.take()))
    taken.catch(() => {}) // when the test fails before

    proxies[0]!.retarget(stranger.port)
    proxies[0]!.cut()
    const began = performance.now()
    const acceptedBefore = proxies[0]!.accepted
    const addAll = async (of: typeof each): Promise<void> => {
      await Promise.all(
        of.map(async (one) => {
          while (performance.now() - began < 5_000) await addTo(one)
        }),
      )
    }
    await Promise.all([addAll(each), addAll(connect().each)])
    const seconds = (performance.now() - began) / 1_000
    expect(seconds, 'of the last calls').to.be.below(12)
    expect((proxies[0]!.accepted - acceptedBefore) / seconds, 'connections a second').to.be.below(60)
    expect(added.now, 'at the node').to.equal(1)
    expect(added.elsewhere, 'at the other nodes').to.be.above(20)
    const refused = await rejection(each[0]!.queue.offer('a'))
    expect(refused, refused.message).to.include({ name: 'ConnectionError', outcome: 'not-applied' })
    expect(refused.message).to.contain(`127.0.0.1:${proxies[0]!.port} leads to a server that is no node of a cluster`)
    const atStranger = rawTo(stranger.port)
    expect(await atStranger.keys('*')).to.deep.equal([])
    expect(await atStranger.pubsub('CHANNELS')).to.deep.equal([])
    expect(await atStranger.info('commandstats')).not.to.match(/cmdstat_(evalsha|rpush|blpop|blmpop|subscribe)/)

    proxies[0]!.retarget(setup.nodes[0]!.port)
    proxies[0]!.cut()
    await eventually(() => Promise.all(each.map(({ awaited }) => awaited.offer('taken'))), 15_000)
    expect(await taken).to.deep.equal(['taken', 'taken', 'taken'])
    const total = async (size: (one: (typeof each)[number]) => Promise<number>): Promise<number> =>
      (await Promise.all(each.map(size))).reduce((sum, one) => sum + one)
    expect(await total(({ queue }) => queue.size())).to.be.at.least(added.now + added.elsewhere)
    expect(await total(({ delayed }) => delayed.size())).to.be.at.least(added.later)
    expect(await total(({ durable }) => durable.size())).to.be.at.least(added.durably)
    expect(await total(({ reliable }) => reliable.size())).to.be.at.least(added.reliably)
  })

  for (const whose of ['an own Cluster', 'a Cluster of the user']) {
    async function setUp(answer: (port: number) => string, limits = LIMITS, table?: (port: number) => string) {
      const node = await startNode(answer, table)
      return { node, ...(await setUpAt([node], limits)) }
    }
    async function setUpAt(
      started: readonly { port: number }[],
      limits: typeof LIMITS,
      outer: Readonly<Record<string, number>> = {},
    ) {
      const nodes = started.map(({ port }) => ({ host: '127.0.0.1', port }))
      const mapped = Object.entries(outer).map(([address, port]) => [address, { host: '127.0.0.1', port }] as const)
      const options = mapped.length === 0 ? {} : { natMap: Object.fromEntries(mapped) }
      const lent = whose === 'an own Cluster' ? undefined : new Cluster(nodes, { lazyConnect: true, ...options })
      lent?.on('error', () => {})
      onCleanup(() => lent?.disconnect())
      const target = lent === undefined ? { cluster: nodes, ioredis: options } : { redis: lent }
      const client = makeClient({ ...target, ...limits }).on('warning', () => {})
      return { client, lent, queue: client.getQueue<string>(uniqueName(), { codec: codecs.string() }) }
    }

    for (const code of ['MOVED', 'ASK']) {
      for (const rest of ['', ' 5', ' 5 abc', ' 5 127.0.0.1:', ' 5 127.0.0.1:99999']) {
        it(`${whose} is redirected by "${code}${rest}": the call rejects, and the process lives`, async () => {
          const { queue } = await setUp(() => `-${code}${rest}\r\n`, LONG_LIMITS)
          expect(await rejection(queue.size())).to.be.instanceOf(CommandError)
        })
      }
    }

    it(`${whose} is redirected to the node that redirects: a few connections a second, however many calls`, async () => {
      const { node, queue } = await setUp((port) => `-MOVED 5 127.0.0.1:${port}\r\n`)
      const began = performance.now()
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          while (performance.now() - began < 1_500) await rejection(queue.size())
        }),
      )
      const seconds = (performance.now() - began) / 1_000
      // four to ask for the slots and four in the place of those that redirect, beside the first ones
      expect(node.accepted / seconds, 'connections a second').to.be.below(20)
    })

    for (const [what, host] of [
      ['', '127.0.0.1'],
      [' that does not know its address', ''],
    ] as const) {
      it(`${whose} is redirected to another cluster${what}: when that is over, it is used as before`, async function () {
        this.timeout(30_000)
        let answer = ':1\r\n'
        let asked = 0
        const table = (port: number): string => {
          asked++
          return slots(port, 'other', host)
        }
        const other = await startNode(() => ':2\r\n', table)
        const { queue } = await setUp(
          () => answer,
          LONG_LIMITS,
          (port) => slots(port, 'own'),
        )
        expect(await queue.size()).to.equal(1)
        answer = `-MOVED 5 127.0.0.1:${other.port}\r\n`
        // each redirection makes ioredis ask for the slots: by chance the other cluster's node first
        await eventually(
          async () => {
            expect(await queue.size()).to.equal(2)
            expect(asked, 'how often it asked for the slots').to.be.greaterThan(0)
          },
          15_000,
          100,
        )
        answer = ':1\r\n'
        await eventually(async () => expect(await queue.size()).to.equal(1), 10_000)
      })
    }

    it(`${whose} of a single node, which has met no other and does not know its address, works`, async () => {
      const setup = await startCluster({ masters: 1 })
      onCleanup(() => setup.stop())
      const { queue } = await setUpAt(setup.nodes, LONG_LIMITS)
      expect(await queue.offer('a')).to.equal(true)
      expect(await queue.poll()).to.equal('a')
    })

    it(`${whose} uses a proxy that calls itself no cluster and serves one`, async () => {
      const node = await startNode(() => ':1\r\n', slots, '', '', 'redis_mode:standalone\r\ncluster_enabled:0\r\n')
      const { queue } = await setUpAt([node], LONG_LIMITS)
      expect(await queue.size()).to.equal(1)
    })

    it(`${whose} gets a table that names a port only, of nodes that announce no address: it works`, async () => {
      const { queue } = await setUp(
        () => ':1\r\n',
        LONG_LIMITS,
        (port) => `*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$-1\r\n:${port}\r\n$3\r\nown\r\n`,
      )
      expect(await queue.size()).to.equal(1)
    })

    it(`${whose} finds a replica that no table has named, when it has taken over from a node that is silent now`, async function () {
      this.timeout(30_000)
      const master = await startNode(
        () => ':1\r\n',
        (port) => slots(port, 'master'),
      )
      let table = (): string => slots(master.port, 'master')
      const replica = await startNode(
        () => ':2\r\n',
        () => table(),
        'replica 127.0.0.1:1@2 myself,master\nmaster 127.0.0.1:3@4 fail\n',
      )
      const { queue } = await setUpAt([master, replica], LIMITS)
      expect(await queue.size()).to.equal(1)
      table = () => slots(replica.port, 'replica')
      master.mute()
      await eventually(async () => expect(await queue.size()).to.equal(2), 15_000)
    })

    if (whose === 'an own Cluster') {
      it(`${whose} whose only connection broke does not wait for the silent node that it asked for the slots before`, async function () {
        this.timeout(30_000)
        const master = await startNode(
          () => ':1\r\n',
          (port) => slots(port, 'master'),
        )
        let table = (): string => slots(master.port, 'master')
        const replica = await startNode(
          () => ':2\r\n',
          () => table(),
          'replica 127.0.0.1:1@2 myself,master\nmaster 127.0.0.1:3@4 fail\n',
        )
        // which gives each node 15 s to say the slots
        const { queue } = await setUpAt([master, replica], { connectTimeout: 30_000, commandTimeout: 500 })
        expect(await queue.size()).to.equal(1)
        table = () => slots(replica.port, 'replica')
        master.mute()
        const mutedAt = performance.now()
        await eventually(async () => expect(await queue.size()).to.equal(2), 25_000)
        expect(performance.now() - mutedAt).to.be.below(13_000)
      })
    }

    for (const [when, first] of [
      ['from the start', 'unknown'],
      ['later', 'own'],
    ] as const) {
      it(`${whose} gets tables ${when} that name an unknown node that is not there: it comes back within seconds`, async function () {
        this.timeout(30_000)
        let asked = 0
        let isForged = first === 'unknown'
        const node = await startNode(
          () => ':1\r\n',
          (port) => {
            asked++
            return isForged ? slots(1, 'unknown') : slots(port, 'own')
          },
          'own 127.0.0.1:1@2 myself,master\n',
        )
        const { queue } = await setUpAt([node], LIMITS)
        if (first === 'own') {
          expect(await queue.size()).to.equal(1)
          isForged = true
          asked = 0
          node.cut()
        }
        await eventually(async () => {
          await queue.size().catch(() => undefined)
          expect(asked).to.be.at.least(2)
        }, 10_000)
        isForged = false
        await eventually(async () => expect(await queue.size()).to.equal(1), 10_000)
      })
    }

    it(`${whose} comes back when its addresses have led to another cluster for a moment`, async function () {
      this.timeout(30_000)
      let answer = ':1\r\n'
      let tables = 0
      let table = (port: number): string => slots(port, 'own')
      const next = await startNode(
        () => ':2\r\n',
        (port) => slots(port, 'next'),
      )
      const { queue } = await setUp(
        () => answer,
        LONG_LIMITS,
        (port) => table(port),
      )
      expect(await queue.size()).to.equal(1)
      table = () => {
        tables++
        return slots(next.port, 'next')
      }
      answer = `-MOVED 5 127.0.0.1:${next.port}\r\n`
      const call = queue.size().catch(() => undefined)
      await eventually(() => expect(tables).to.be.at.least(2), 4_000)
      answer = ':1\r\n'
      table = (port) => slots(port, 'own')
      await call
      await eventually(async () => expect(await queue.size()).to.equal(1), 10_000)
    })

    it(`${whose} follows when another cluster has taken over the addresses of all nodes`, async function () {
      this.timeout(30_000)
      let answer = ':1\r\n'
      let table = (port: number): string => slots(port, 'own')
      const next = await startNode(
        () => ':2\r\n',
        (port) => slots(port, 'next'),
      )
      const { node, queue } = await setUp(
        () => answer,
        LONG_LIMITS,
        (port) => table(port),
      )
      expect(await queue.size()).to.equal(1)
      table = () => slots(next.port, 'next')
      answer = `-MOVED 5 127.0.0.1:${next.port}\r\n`
      await eventually(async () => {
        const before = node.calls
        expect(await queue.size()).to.equal(2)
        expect(node.calls, 'calls of the old node').to.equal(before)
      }, 10_000)
    })

    it(`${whose} that has followed another cluster comes back with its waits when the configured addresses lead back`, async function () {
      this.timeout(60_000)
      const own = await startCluster({ masters: 1 })
      onCleanup(() => own.stop())
      const other = await startCluster({ masters: 1 })
      onCleanup(() => other.stop())
      const [ownPort, otherPort] = [own.nodes[0]!.port, other.nodes[0]!.port]
      const proxy = await startProxy({ targetPort: ownPort })
      onCleanup(() => proxy.stop())
      const first = await setUpAt([proxy], LONG_LIMITS, { [`127.0.0.1:${ownPort}`]: proxy.port })
      const { queue, lent } = first
      let { client } = first
      const warnings: string[] = []
      client.on('warning', ({ code }) => warnings.push(code))
      const [atOwn, atOther] = [rawTo(ownPort), rawTo(otherPort)]
      expect(await queue.offer('before')).to.equal(true)
      const lead = (port: number): void => {
        proxy.retarget(port)
        proxy.cut()
      }
      lead(otherPort)
      let used = queue
      const comesTo = async (redis: Redis): Promise<void> => {
        await used.offer('a').catch(() => undefined)
        expect(await redis.llen(queue.getName())).to.be.at.least(2)
      }
      await eventually(() => comesTo(atOther), 20_000)
      if (lent !== undefined) {
        // the Cluster of the user lives on, and its next client comes back as well
        await client.shutdown()
        client = makeClient({ redis: lent, ...LONG_LIMITS }).on('warning', ({ code }) => warnings.push(code))
      }
      const options = { codec: codecs.string() }
      used = client.getQueue<string>(queue.getName(), options)
      const waiting = client.getBlockingQueue<string>(`${queue.getName()}:waiting`, options)
      const taken = waiting.take()
      await eventually(async () => expect(await atOther.info('clients')).to.match(/blocked_clients:1/), 10_000)
      lead(ownPort)
      await eventually(() => comesTo(atOwn), 25_000)
      expect(await used.peek(), 'of the first message').to.equal('before')
      await atOwn.rpush(waiting.getName(), 'taken')
      expect(await taken).to.equal('taken')
      expect(warnings).to.deep.equal(['REDELAYED_SERVERS', 'REDELAYED_SERVERS'])
    })

    it(`${whose} comes back when a table named nodes of another cluster with the ids of its own`, async function () {
      this.timeout(60_000)
      const [ownId, otherId] = ['a'.repeat(40), 'b'.repeat(40)]
      const other = await startNode(
        () => ':2\r\n',
        (port) => slots(port, otherId),
        '',
        otherId,
      )
      let table = (port: number): string => slots(port, ownId)
      const node = await startNode(
        () => ':1\r\n',
        (port) => table(port),
        '',
        ownId,
      )
      const { queue } = await setUpAt([node], LONG_LIMITS)
      expect(await queue.size()).to.equal(1)
      table = () => slots(other.port, ownId)
      node.cut()
      await eventually(async () => expect(await queue.size()).to.equal(2), 10_000)
      table = (port) => slots(port, ownId)
      await eventually(async () => expect(await queue.size()).to.equal(1), 30_000)
    })

    for (const [what, isTrue] of [
      ['its nodes name themselves', false],
      ['its nodes name the own ones', true],
    ] as const) {
      it(`${whose} comes back with its waits when all tables have named another cluster with the own ids for a while, and then ${what}`, async function () {
        this.timeout(90_000)
        const [ownId, otherId] = ['a'.repeat(40), 'b'.repeat(40)]
        let isForged = false
        let asked = 0
        const other = await startNode(
          () => ':2\r\n',
          (port) => {
            asked++
            if (isForged) return slots(port, ownId)
            return isTrue ? slots(node.port, ownId) : slots(port, otherId)
          },
          '',
          otherId,
        )
        const node = await startNode(
          () => ':1\r\n',
          (port) => (isForged ? slots(other.port, ownId) : slots(port, ownId)),
          '',
          ownId,
        )
        const { client, queue } = await setUpAt([node], LONG_LIMITS)
        expect(await queue.size()).to.equal(1)
        isForged = true
        node.cut()
        await eventually(async () => expect(await queue.size()).to.equal(2), 10_000)
        client.on('error', () => {}) // these nodes have no scripts
        const taken = rejection(client.getBlockingQueue(uniqueName()).take())
        await eventually(() => expect(other.waits).to.equal(1), 10_000)
        await eventually(() => expect(asked, 'tables, after the first comparison').to.be.at.least(1), 10_000)
        isForged = false
        await eventually(async () => expect(await queue.size()).to.equal(1), 50_000)
        await eventually(() => expect(node.waits).to.be.at.least(1), 10_000)
        await client.shutdown()
        expect(await taken).to.be.instanceOf(ShutdownError)
      })
    }

    it(`${whose} follows another cluster at the same addresses with the connections that have not broken too`, async function () {
      this.timeout(30_000)
      let table = ''
      let answer = ':1\r\n'
      const start = (replies: string[]) =>
        Promise.all(
          replies.map((reply, at) =>
            startNode(
              () => (reply === ':1\r\n' && at === 0 ? answer : reply),
              () => table,
            ),
          ),
        )
      const [olds, news] = [await start([':1\r\n', ':1\r\n']), await start([':2\r\n', ':2\r\n'])]
      const proxies = await Promise.all(olds.map(({ port }) => startProxy({ targetPort: port })))
      onCleanup(() => Promise.all(proxies.map((proxy) => proxy.stop())))
      const tableOf = (id: string): string =>
        `*2\r\n${proxies.map(({ port }, at) => slots(port, `${id}${at}`, '127.0.0.1', [at * 8_192, at * 8_192 + 8_191])).join('')}`
      table = tableOf('own')
      const { client } = await setUpAt(proxies, LONG_LIMITS)
      const ofBoth = Array.from({ length: 20 }, () => client.getQueue<string>(uniqueName(), { codec: codecs.string() }))
      const sizes = async (): Promise<Set<number>> => new Set(await Promise.all(ofBoth.map((each) => each.size())))
      expect(await sizes()).to.deep.equal(new Set([1]))
      proxies.forEach((proxy, at) => proxy.retarget(news[at]!.port))
      table = tableOf('next')
      answer = `-MOVED 5 127.0.0.1:${proxies[0]!.port}\r\n` // as a reason to ask for the slots
      await eventually(async () => expect(await sizes()).to.deep.equal(new Set([2])), 15_000)
    })
  }
})

/** The reply of one node that has all slots, with its id if it has one; with a `range`, only its part of a reply. */
function slots(port: number, id?: string, host = '127.0.0.1', range?: readonly [number, number]): string {
  const more = id === undefined ? '' : `$${id.length}\r\n${id}\r\n`
  const [first, last] = range ?? [0, 16_383]
  const node = `*${id === undefined ? 2 : 3}\r\n$${host.length}\r\n${host}\r\n:${port}\r\n${more}`
  return `${range === undefined ? '*1\r\n' : ''}*3\r\n:${first}\r\n:${last}\r\n${node}`
}

/** A cluster of one node, which answers `LLEN` with what `answer` returns, and `CLUSTER SLOTS` with `table`, until it is mute; `info`: more of its INFO. */
async function startNode(
  answer: (port: number) => string,
  table: (port: number) => string = slots,
  known = '',
  id = '',
  info = '',
) {
  let accepted = 0
  let calls = 0
  let waits = 0
  let isMute = false
  const sockets = new Set<Socket>()
  const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`
  const server = createServer((socket) => {
    accepted++
    const { port } = server.address() as AddressInfo
    const replies: Readonly<Record<string, () => string>> = {
      LLEN: () => {
        calls++
        return answer(port)
      },
      BLMPOP: () => {
        waits++
        return '' // nothing comes
      },
      HELLO: () => "-ERR unknown command 'HELLO'\r\n",
      INFO: () => bulk(`redis_version:7.2.0\r\nrun_id:0123\r\n${info}`),
      'CLUSTER INFO': () => bulk('cluster_state:ok\r\n'),
      'CLUSTER SLOTS': () => table(port),
      'CLUSTER NODES': () => bulk(known),
      'CLUSTER MYID': () => bulk(id),
      'CLIENT ID': () => ':1\r\n',
    }
    const reader = new RequestReader((command) => isMute || socket.write(replies[command]?.() ?? '+OK\r\n'))
    socket.on('error', () => {})
    socket.on('data', (bytes) => reader.push(bytes))
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    onCleanup(() => socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onCleanup(() => server.close())
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted
    },
    get calls() {
      return calls
    },
    get waits() {
      return waits
    },
    mute: () => (isMute = true),
    cut: () => sockets.forEach((socket) => socket.destroy()),
  }
}
