import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import {
  ConnectionError,
  codecs,
  type ClientOptions,
  type RedelayedClient,
  type ReconnectingEvent,
} from '../../src/index.js'
import { eventually, once, timers } from '../support/events.js'
import { allowedFor, Lag } from '../support/lag.js'
import {
  freePort,
  requireServerBin,
  startCluster,
  startRedis,
  startSentinel,
  type ClusterSetup,
  type RedisServer,
  type SentinelSetup,
} from '../support/redis-server.js'
import { redisUrl, uniqueName } from '../support/redis.js'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, onCleanup, rawTo, rejection } from './fixtures.js'

const LATER = 600_000
const LIMITS = { connectTimeout: 500, commandTimeout: 500, sweepInterval: 1_000 }
/** A call ends within both limits, and one that is repeated within twice that; a machine with much to do is late. */
const CALL_MS = 2 * (LIMITS.connectTimeout + LIMITS.commandTimeout) + 1_500

/** Every kind of call, and how long each took. */
function everyCall(client: RedelayedClient, name: string): Promise<{ what: string; ms: number; outcome: unknown }[]> {
  const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
  const delayed = client.getDelayedQueue(queue)
  const reliable = client.getReliableQueue<string>(name, { codec: codecs.string() })
  const calls: Record<string, () => Promise<unknown>> = {
    offer: () => delayed.offer('an offer', LATER),
    offerAll: () => delayed.offerAll([{ value: 'one of many', delay: LATER }]),
    size: () => queue.size(),
    poll: () => queue.poll(),
    'poll with a timeout': () => queue.poll(300),
    'take with a signal': () => queue.take({ signal: AbortSignal.timeout(300) }),
    add: () => reliable.add('an addition'),
    'poll of a reliable queue': () => reliable.poll(),
    'poll of a reliable queue with a timeout': () => reliable.poll({ timeout: 300 }),
  }
  return Promise.all(
    Object.entries(calls).map(async ([what, call]) => {
      const startedAt = performance.now()
      const outcome = await call().catch((error: unknown) => error)
      return { what, ms: performance.now() - startedAt, outcome }
    }),
  )
}

/** Values, the typed error of a connection, or what the signal said. */
function expectSettled(calls: Awaited<ReturnType<typeof everyCall>>, withinMs = CALL_MS): void {
  for (const { what, ms, outcome } of calls) {
    const limit = /timeout|signal/.test(what) ? 3_500 + 1_500 : withinMs
    expect(ms, what).to.be.below(what.startsWith('offer') || what === 'add' ? 3 * limit : limit)
    if (!(outcome instanceof Error)) continue
    const cause =
      what === 'offerAll' && 'failures' in outcome ? (outcome.failures as { error: Error }[])[0]!.error : outcome
    if (cause.name === 'TimeoutError') continue
    expect(cause, what).to.be.instanceOf(ConnectionError)
    expect(cause.message, what).to.match(/127\.0\.0\.1:\d+/)
  }
}

const silence = (client: RedelayedClient) =>
  once<ReconnectingEvent>(
    client,
    'reconnecting',
    ({ error }) => /was silent for 0.5 s/.test(String(error?.message)),
    15_000,
  )

async function expectWorks(client: RedelayedClient, name: string): Promise<void> {
  const queue = client.getBlockingQueue<string>(`${name}:after`, { codec: codecs.string() })
  const delayed = client.getDelayedQueue(queue)
  await eventually(() => delayed.offer('after', 1), 15_000)
  await eventually(async () => expect(await queue.poll(1_000)).to.equal('after'), 15_000)
}

describe('A server that is silent on connections that are open', function () {
  let timersBefore: number

  this.timeout(60_000)
  before(function () {
    requireServerBin(this)
  })
  beforeEach(async () => {
    await Promise.resolve() // by now mocha has armed its own
    timersBefore = timers()
  })
  afterEach(async () => {
    await cleanUp()
    // those of two seconds that ioredis sets for the end of a silent socket
    await eventually(() => expect(timers()).to.be.at.most(timersBefore))
  })

  describe('in a cluster', () => {
    let setup: ClusterSetup
    let proxies: Map<number, TcpProxy>

    before(async () => {
      setup = await startCluster({ masters: 1, replicas: 1 })
      const started = await Promise.all(
        setup.servers.map(async ({ port }) => [port, await startProxy({ targetPort: port })] as const),
      )
      proxies = new Map(started)
    })
    after(async () => {
      for (const proxy of proxies?.values() ?? []) await proxy.stop()
      await setup?.stop()
    })

    // the sockets of those that are half-open
    beforeEach(() => onCleanup(() => proxies.forEach((proxy) => proxy.cut())))

    const natMap = (address: string) => {
      const port = proxies.get(Number(address.split(':')[1]))?.port
      return port === undefined ? null : { host: '127.0.0.1', port }
    }
    const nodes = () => [...proxies.values()].map(({ port }) => ({ host: '127.0.0.1', port }))

    const owners: Record<string, () => ClientOptions> = {
      'our own client': () => ({ cluster: nodes(), ioredis: { natMap } }),
      'a client of the user': () => {
        const cluster = new Cluster(nodes(), { natMap })
        cluster.on('error', () => {})
        onCleanup(() => cluster.disconnect())
        return { redis: cluster }
      },
    }

    async function roles(): Promise<[master: RedisServer, replica: RedisServer]> {
      const isMaster = await Promise.all(
        setup.servers.map(async ({ port }) => (await rawTo(port).role())[0] === 'master'),
      )
      const [first, second] = setup.servers as [RedisServer, RedisServer]
      return isMaster[0] ? [first, second] : [second, first]
    }

    for (const [whose, options] of Object.entries(owners)) {
      it(`${whose}: half-open sockets are given up, calls end in time, and new ones are used`, async () => {
        const client = makeClient({ ...options(), ...LIMITS })
        client.on('error', () => {})
        const name = uniqueName()
        await everyCall(client, name)
        const noticed = silence(client)
        expect(
          [...proxies.values()].reduce((sum, proxy) => sum + proxy.halfOpen({ but: ['SUBSCRIBE'] }), 0),
        ).to.be.above(1)
        expectSettled(await everyCall(client, name))
        await noticed
        await expectWorks(client, name)
        const startedAt = performance.now()
        await client.shutdown()
        expect(performance.now() - startedAt).to.be.below(8_000)
      })

      it(`${whose}: the master is frozen and its replica takes over: calls end in time, and the new one is used`, async () => {
        const [master, replica] = await roles()
        const client = makeClient({ ...options(), ...LIMITS })
        client.on('error', () => {})
        const name = uniqueName()
        await everyCall(client, name)
        const noticed = silence(client)
        await master.kill('SIGSTOP')
        onCleanup(async () => {
          await master.kill('SIGCONT')
          await eventually(async () => expect((await rawTo(master.port).role())[0]).to.equal('slave'), 15_000)
          await eventually(
            async () => expect(await rawTo(master.port).info('replication')).to.include('link_status:up'),
            15_000,
          )
        })
        const frozen = everyCall(client, name)
        await noticed
        await eventually(() => rawTo(replica.port).cluster('FAILOVER', 'TAKEOVER'))
        expectSettled(await frozen)
        await expectWorks(client, name)
        const startedAt = performance.now()
        await client.shutdown()
        expect(performance.now() - startedAt).to.be.below(8_000)
      })

      it(`${whose}: waits that begin while no node can be reached continue, as waits have worked before`, async () => {
        const client = makeClient({ ...options(), ...LIMITS })
        client.on('error', () => {})
        const queue = client.getBlockingQueue<string>(uniqueName(), { codec: codecs.string() })
        await queue.add('before')
        expect(await queue.take()).to.equal('before')

        const refuse = (on: boolean): void => proxies.forEach((proxy) => proxy.refuse(on))
        onCleanup(() => refuse(false))
        refuse(true)
        proxies.forEach((proxy) => proxy.cut())
        await eventually(async () => expect(await rejection(queue.size())).to.be.instanceOf(ConnectionError))
        const waits = [
          queue.take(),
          queue.poll(30_000),
          queue.takeMany(1, { timeout: 30_000 }).then(([value]) => value),
          queue.pollFromAny(30_000, 'milliseconds', uniqueName()),
        ].map((wait) => wait.catch((error: unknown) => error))
        await new Promise((resolve) => setTimeout(resolve, 3 * LIMITS.connectTimeout)) // several attempts fail
        refuse(false)
        await eventually(() => queue.addAll(['a', 'b', 'c', 'd']), 10_000)
        expect((await Promise.all(waits)).sort()).to.deep.equal(['a', 'b', 'c', 'd'])
      })

      it(`${whose}: while every connection is silent, new ones too, calls and a shutdown end in time`, async () => {
        const client = makeClient({ ...options(), ...LIMITS })
        client.on('error', () => {})
        const name = uniqueName()
        await everyCall(client, name)
        for (const proxy of proxies.values()) proxy.blackhole(true)
        onCleanup(() => proxies.forEach((proxy) => proxy.blackhole(false)))
        expectSettled(await everyCall(client, name))
        const under = everyCall(client, name)
        const startedAt = performance.now()
        await client.shutdown()
        expect(performance.now() - startedAt).to.be.below(8_000)
        await under
      })
    }
  })

  describe('of the user', () => {
    let proxy: TcpProxy

    beforeEach(async () => {
      const { hostname, port } = new URL(redisUrl())
      proxy = await startProxy({ targetHost: hostname, targetPort: Number(port) })
      onCleanup(() => proxy.stop())
    })

    function borrowed(options = {}): Redis {
      const redis = new Redis(proxy.port, '127.0.0.1', { ...options, retryStrategy: () => 20 })
      redis.on('error', () => {})
      onCleanup(async () => {
        proxy.blackhole(false)
        await eventually(() => expect(redis.status).to.be.oneOf(['ready', 'end']))
        redis.disconnect()
      })
      return redis
    }

    for (const autoResendUnfulfilledCommands of [true, false]) {
      it(`resending ${autoResendUnfulfilledCommands}: a half-open socket is given up, and calls end in time`, async () => {
        const client = makeClient({ redis: borrowed({ autoResendUnfulfilledCommands }), ...LIMITS })
        client.on('error', () => {})
        const name = uniqueName()
        await everyCall(client, name)
        const noticed = silence(client)
        expect(proxy.halfOpen({ but: ['SUBSCRIBE'] })).to.be.above(1)
        expectSettled(await everyCall(client, name))
        await noticed
        await expectWorks(client, name)
      })
    }

    it('a half-open socket is given up also where ioredis ends each call sooner', async () => {
      const client = makeClient({ redis: borrowed({ commandTimeout: LIMITS.commandTimeout / 5 }), ...LIMITS })
      client.on('error', () => {})
      const queue = client.getQueue<string>(uniqueName(), { codec: codecs.string() })
      await queue.size()
      const noticed = silence(client)
      expect(proxy.halfOpen({ but: ['SUBSCRIBE'] })).to.be.at.least(1)
      expect(await rejection(queue.size())).to.be.instanceOf(ConnectionError)
      await noticed
      await eventually(() => queue.size(), 15_000)
    })

    it('a command that ioredis has forgotten rejects when its socket breaks, and a shutdown ends', async () => {
      const client = makeClient({ redis: borrowed({ autoResendUnfulfilledCommands: false }) })
      client.on('error', () => {})
      const queue = client.getQueue<string>(uniqueName(), { codec: codecs.string() })
      await queue.size()
      proxy.blackhole('toClient')
      const forgotten = rejection(queue.offer('x'))
      await new Promise(setImmediate)
      const closing = client.shutdown()
      const startedAt = performance.now()
      proxy.cut()
      expect(await forgotten)
        .to.be.instanceOf(ConnectionError)
        .with.property('outcome', 'unknown')
      await closing
      expect(performance.now() - startedAt).to.be.below(3_000)
    })
  })

  describe('that sentinels watch', () => {
    let setup: SentinelSetup

    before(async () => {
      setup = await startSentinel()
    })
    after(() => setup?.stop())

    it('a sentinel that accepts and then is silent keeps no client from the master', async () => {
      const silent = await startProxy({ targetPort: setup.sentinels[0]!.port })
      onCleanup(() => silent.stop())
      silent.muteNew('accept')
      const sentinels = [{ host: '127.0.0.1', port: silent.port }, ...setup.sentinels.slice(1)]
      const client = makeClient({ sentinels, name: setup.name, connectTimeout: 2_000 })
      expect(await client.getQueue(uniqueName()).size()).to.equal(0)
      expect(silent.muted).to.be.at.least(1)
    })

    it('the master is frozen and its replica promoted: calls end in time, and the new one is used', async () => {
      const client = makeClient({ sentinels: setup.sentinels, name: setup.name, ...LIMITS })
      client.on('error', () => {})
      const name = uniqueName()
      await everyCall(client, name)
      await setup.master.kill('SIGSTOP')
      onCleanup(() => setup.master.kill('SIGCONT'))
      expectSettled(await everyCall(client, name))
      await expectWorks(client, name)
      await client.shutdown()
    })
  })
})

describe('A server that falls silent on each connection with an offer', () => {
  afterEach(cleanUp)

  for (const what of ['offer', 'offerAll'] as const) {
    it(`${what}: no attempt begins later than one call may take`, async () => {
      const { hostname, port } = new URL(redisUrl())
      const proxy = await startProxy({ targetHost: hostname, targetPort: Number(port) })
      onCleanup(() => proxy.stop())
      const client = makeClient({ host: '127.0.0.1', port: proxy.port, ...LIMITS })
      client.on('error', () => {})
      const queue = client.getQueue<string>(uniqueName(), { codec: codecs.string() })
      const delayed = client.getDelayedQueue(queue, { deliver: false })
      proxy.muteNew('EVALSHA')
      const sent = what === 'offer' ? delayed.offer('x', LATER) : delayed.offerAll([{ value: 'x', delay: LATER }])
      const error = await rejection(sent)
      const cause = 'failures' in error ? (error.failures as { error: Error }[])[0]!.error : error
      expect(cause).to.be.instanceOf(ConnectionError).with.property('outcome', 'unknown')
      expect(cause.message).to.match(/127\.0\.0\.1:\d+ broke: the server owed a reply and was silent for 0\.5 s/)
      // each takes `commandTimeout` at least, and there is time for two of those
      expect(proxy.muted).to.be.within(1, 2)
    })
  }
})

describe('A server that does not know a script, and then is silent', function () {
  this.timeout(30_000)
  const limits = { connectTimeout: 300, commandTimeout: 1_000 }
  /** When the answer that the script is unknown comes: so late that the text has less than the silence of a connection left. */
  const ANSWER_MS = 800
  let server: RedisServer
  let cluster: ClusterSetup
  let proxy: TcpProxy

  before(async function () {
    requireServerBin(this)
    server = await startRedis()
    cluster = await startCluster({ masters: 1, replicas: 0 })
  })
  after(async () => {
    await server?.stop()
    await cluster?.stop()
  })
  afterEach(cleanUp)

  const own = (): ClientOptions => ({ host: '127.0.0.1', port: proxy.port })
  const clients: Record<string, [port: () => number, options: () => ClientOptions]> = {
    "the client's own connection": [() => server.port, own],
    'an ioredis client of the user': [
      () => server.port,
      () => {
        const redis = new Redis({ host: '127.0.0.1', port: proxy.port })
        redis.on('error', () => {})
        onCleanup(() => redis.disconnect())
        return { redis }
      },
    ],
    'a cluster': [
      () => cluster.servers[0]!.port,
      () =>
        ({ cluster: [own()], ioredis: { natMap: () => ({ host: '127.0.0.1', port: proxy.port }) } }) as ClientOptions,
    ],
  }

  for (const [whose, [port, options]] of Object.entries(clients)) {
    const calls = ['poll', 'add', 'offer', 'offerAll'] as const
    const start = async (silentAt?: 'EVAL') => {
      proxy = await startProxy({ targetPort: port() })
      proxy.muteNew(silentAt)
      onCleanup(() => proxy.stop())
      const client = makeClient({ ...options(), ...limits })
      client.on('error', () => {})
      await rawTo(port()).script('FLUSH')
      const name = uniqueName()
      const queue = client.getQueue<string>(name, { codec: codecs.string() })
      const delayed = client.getDelayedQueue(queue, { deliver: false })
      const reliable = client.getReliableQueue<string>(name, { codec: codecs.string() })
      return {
        client,
        poll: () => reliable.poll(),
        add: () => reliable.add('x'),
        offer: () => delayed.offer('x', 1),
        offerAll: () => delayed.offerAll([{ value: 'x', delay: 1 }]),
      }
    }

    for (const what of calls)
      it(`${whose}: ${what} ends within the limit of one call, and its outcome is unknown`, async () => {
        const rig = await start('EVAL')
        await rig.client.ping()
        proxy.delay({ toClient: ANSWER_MS })
        const lag = new Lag()
        const startedAt = performance.now()
        const error = await rejection(rig[what]())
        const ms = performance.now() - startedAt - allowedFor(lag.stop())
        expect(proxy.muted, 'connections on which the text was sent').to.equal(1)
        const cause = 'failures' in error ? (error.failures as { error: Error }[])[0]!.error : error
        expect(cause).to.be.instanceOf(ConnectionError).with.property('outcome', 'unknown')
        expect(performance.now() - startedAt, cause.message).to.be.at.least(limits.commandTimeout)
        expect(ms, cause.message).to.be.at.most(limits.connectTimeout + limits.commandTimeout + 250)
      })

    it(`${whose}: calls continue although the scripts are flushed between them`, async () => {
      const rig = await start()
      for (let round = 0; round < 3; round++) {
        await rig.add()
        await rig.offer()
        await rig.offerAll()
        await rawTo(port()).script('FLUSH')
        expect(await rig.poll()).to.have.property('payload', 'x')
      }
    })
  }
})

describe('A server that was never there', () => {
  let timersBefore: number

  beforeEach(async () => {
    await Promise.resolve() // by now mocha has armed its own
    timersBefore = timers()
  })
  afterEach(async () => {
    await cleanUp()
    // those of two seconds that ioredis sets when a client of the user leaves a connection that was refused
    await eventually(() => expect(timers()).to.be.at.most(timersBefore))
  })

  const topologies: Record<string, (port: number) => ClientOptions> = {
    single: (port) => ({ host: '127.0.0.1', port }),
    cluster: (port) => ({ cluster: [{ host: '127.0.0.1', port }] }),
    Sentinel: (port) => ({ sentinels: [{ host: '127.0.0.1', port }], name: 'mymaster' }),
    replicated: (port) => ({ replicated: [{ host: '127.0.0.1', port }] }),
    'a client of the user': (port) => {
      const redis = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, lazyConnect: true })
      redis.on('error', () => {})
      onCleanup(() => redis.disconnect())
      return { redis }
    },
    'a Cluster of the user': (port) => {
      const redis = new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true, clusterRetryStrategy: () => 50 })
      redis.on('error', () => {})
      onCleanup(() => redis.disconnect())
      return { redis }
    },
  }
  for (const [what, options] of Object.entries(topologies)) {
    it(`${what}: waits end by their timeout or signal, and say that there was no connection`, async () => {
      const client = makeClient(options(await freePort()))
      client.on('error', () => {})
      const queue = client.getBlockingQueue<string>(uniqueName(), { codec: codecs.string() })
      const reliable = client.getReliableQueue<string>(uniqueName(), { codec: codecs.string() })
      const sharded = client.getShardedDelayedQueue<string>(uniqueName(), { codec: codecs.string(), shards: 2 })
      const shardedReliable = client.getShardedReliableQueue<string>(uniqueName(), {
        codec: codecs.string(),
        shards: 2,
      })
      const timeout = 700
      const waits = {
        poll: () => queue.poll(timeout),
        takeMany: () => queue.takeMany(5, { timeout }),
        pollFromAny: () => queue.pollFromAny(timeout, 'milliseconds', uniqueName()),
        'poll of a reliable queue': () => reliable.poll({ timeout }),
        'poll of a sharded delayed queue': () => sharded.poll(timeout),
        'takeMany of a sharded delayed queue': () => sharded.takeMany(5, { timeout }),
        'poll of a sharded reliable queue': () => shardedReliable.poll({ timeout }),
        'pollMany of a sharded reliable queue': () => shardedReliable.pollMany({ count: 5, timeout }),
      }
      const signal = AbortSignal.timeout(timeout)
      const aborted = {
        take: () => queue.take({ signal }),
        elements: () => queue.elements({ signal }).next(),
        'poll of a reliable queue': () => reliable.poll({ timeout: Infinity, signal }),
        'take of a sharded delayed queue': () => sharded.take({ signal }),
        'poll of a sharded reliable queue': () => shardedReliable.poll({ timeout: Infinity, signal }),
      }
      const lag = new Lag()
      const startedAt = performance.now()
      const took = new Map<string, number>()
      const inTime = (name: string) => took.set(name, performance.now() - startedAt)
      await Promise.all([
        ...Object.entries(waits).map(async ([name, wait]) => {
          expect(await rejection(wait()), name)
            .to.be.instanceOf(ConnectionError)
            .with.property('outcome', 'not-applied')
          inTime(name)
        }),
        ...Object.entries(aborted).map(async ([name, wait]) => {
          expect(await rejection(wait()), name).to.have.property('name', 'TimeoutError')
          inTime(`${name}, by its signal`)
        }),
      ])
      const latest = timeout + 1_000 + allowedFor(lag.stop())
      for (const [name, ms] of took) expect(ms, name).to.be.within(timeout - 5, latest)
      if (what.includes('of the user')) return
      await client.shutdown()
      await eventually(() => expect(timers(), 'timers that keep the process').to.be.at.most(timersBefore))
    })
  }
})
