import { expect } from 'chai'
import { Cluster } from 'ioredis'
import {
  ConnectionError,
  DurabilityError,
  RedelayedError,
  ShutdownError,
  codecs,
  type ClientOptions,
  type ReconnectingEvent,
} from '../../src/index.js'
import { eventually, once, timers } from '../support/events.js'
import { requireServerBin, startCluster, type ClusterSetup, type RedisServer } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, makePair, onCleanup, rawTo, rejection, track, type Pair } from './fixtures.js'

const NO_SWEEP = { sweepInterval: 3_600_000 }
const LATER = 600_000
/** The timeout of connections to killed servers. */
const MORTAL = { retryStrategy: () => null }

describe('Cluster, a master and its replica', function () {
  let setup: ClusterSetup
  let master: RedisServer
  let replica: RedisServer
  let timersBefore: number

  this.timeout(40_000)
  before(function () {
    requireServerBin(this)
  })
  beforeEach(async () => {
    await Promise.resolve() // by now mocha has armed its own
    timersBefore = timers()
    setup = await startCluster({ masters: 1, replicas: 1 })
    onCleanup(() => setup.stop())
    ;[master, replica] = setup.servers as [RedisServer, RedisServer]
    // with the replica among its nodes ioredis goes on believing in the cluster when the master is gone; a replica is
    // listed from the first write on
    const plain = rawTo(master.port, MORTAL)
    await plain.set('a write', '')
    for (const { port } of setup.nodes) {
      const node = rawTo(port, MORTAL)
      await eventually(async () => expect((await node.cluster('SLOTS'))[0]).to.have.lengthOf(4), 15_000)
    }
  })
  afterEach(async () => {
    await cleanUp()
    // that which ioredis sets for a subscriber of its own whose node has died
    await eventually(() => expect(timers()).to.be.at.most(timersBefore))
  })

  /** A client that does nothing by itself, with connections to the master. */
  async function idle(options: ClientOptions = {}): Promise<Pair> {
    // configured with the master alone, so that ioredis never connects to the replica, and does not notice when it dies
    const pair = makePair('redisson', { cluster: setup.nodes.slice(0, 1), ...options, ...NO_SWEEP })
    const subscribed = once(pair.client, 'subscribed')
    await pair.delayed.offer('connected', LATER)
    await subscribed
    return pair
  }

  function borrowed(): Cluster {
    const cluster = new Cluster(setup.nodes.slice(0, 1))
    onCleanup(() => cluster.disconnect())
    return cluster
  }

  /** Resolves when the client has tried so often in a row to open this connection. */
  const tried = ({ client }: Pair, wanted: ReconnectingEvent['connection'], times: number) =>
    once<ReconnectingEvent>(
      client,
      'reconnecting',
      ({ connection, attempt }) => connection === wanted && attempt >= times,
      15_000,
    )

  const takeOver = () => eventually(() => rawTo(replica.port).cluster('FAILOVER', 'TAKEOVER'))

  it('when the replica takes over, an idle subscriber finds it', async () => {
    const pair = await idle()
    const missed = tried(pair, 'subscriber', 3)
    await master.kill('SIGKILL')
    await missed
    const again = once(pair.client, 'subscribed', undefined, 10_000)
    await takeOver()
    await again
    const channels = await rawTo(replica.port).pubsub('CHANNELS', pair.keys.channel)
    expect(channels).to.deep.equal([pair.keys.channel])
  })

  it('when no master was known for a while, an idle subscriber comes back with the servers', async () => {
    const pair = await idle({ connectTimeout: 3_000 })
    pair.client.on('error', () => {}) // a transfer may wait longer than that for a connection
    const missed = tried(pair, 'subscriber', 2)
    await Promise.all(setup.servers.map((server) => server.kill('SIGKILL')))
    await missed
    const again = once(pair.client, 'subscribed', undefined, 10_000)
    await Promise.all(setup.servers.map((server) => server.restart()))
    expect(await again).to.deep.equal({ queue: pair.name })
  })

  it('a waiting take does not spin while every node is down, and gets later elements', async () => {
    const cluster = borrowed()
    const client = makeClient({ redis: cluster, consumersDeliver: false })
    const name = uniqueName()
    const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
    const waiting = track(queue.take())
    await eventually(async () =>
      expect(await rawTo(master.port, MORTAL).info('clients')).to.include('blocked_clients:1'),
    )
    const refused: number[] = []
    cluster.on('node error', () => refused.push(performance.now()))
    await Promise.all(setup.servers.map((server) => server.kill('SIGKILL')))
    await eventually(() => expect(refused.length).to.be.at.least(20), 15_000)
    expect(refused[19]! - refused[0]!, 'twenty times it asked for the slots').to.be.at.least(1_000)
    expect(waiting.settled).to.equal(false)
    await Promise.all(setup.servers.map((server) => server.restart()))
    const plain = rawTo(master.port, MORTAL)
    await eventually(() => plain.rpush(name, 'new'))
    expect(await waiting.promise).to.equal('new')
  })

  const moments: Record<string, (pair: Pair) => Promise<unknown>> = {
    'at once': () => Promise.resolve(),
    'when it has noticed': (pair) => tried(pair, 'subscriber', 1),
    'when it has noticed for long': (pair) => tried(pair, 'subscriber', 2),
  }
  for (const [when, moment] of Object.entries(moments)) {
    it(`a shutdown ends although every node is gone, ${when}, and with it all calls`, async () => {
      const pair = await idle({ cluster: setup.nodes, connectTimeout: 5_000 })
      await pair.delayed.offer('first', 0)
      expect(await pair.queue.take()).to.equal('first')
      const taking = [rejection(pair.queue.take()), rejection(pair.queue.take())]
      await eventually(async () =>
        expect(await rawTo(master.port, MORTAL).info('clients')).to.include('blocked_clients:1'),
      )
      const tens = Array.from({ length: 10 }, (_, i) => String(i))
      const offer = () => tens.map((value) => pair.delayed.offer(value, LATER).catch((error: unknown) => error))
      const offered = offer()
      const reached = moment(pair)
      await Promise.all(setup.servers.map((server) => server.kill('SIGKILL')))
      offered.push(...offer())
      await reached
      offered.push(...offer())
      const started = performance.now()
      await Promise.all([pair.client.shutdown(), pair.client.shutdown()])
      expect(performance.now() - started).to.be.below(3_000)
      for (const error of await Promise.all(taking)) expect(error).to.be.instanceOf(ShutdownError)
      for (const made of await Promise.all(offered)) {
        if (typeof made !== 'string') expect(made).to.be.instanceOf(RedelayedError)
      }
    })
  }

  it('so does one of a client on a Cluster of the user, which keeps commands for its next connection', async () => {
    const cluster = borrowed()
    cluster.on('error', () => {}) // ioredis prints it otherwise
    const client = makeClient({ redis: cluster })
    const queue = client.getQueue<string>(uniqueName(), { codec: codecs.string() })
    const delayed = client.getDelayedQueue(queue, { deliver: false })
    await delayed.offer('before', LATER)
    await Promise.all(setup.servers.map((server) => server.kill('SIGKILL')))
    const offered = rejection(delayed.offer('during', LATER))
    const started = performance.now()
    await client.shutdown()
    expect(performance.now() - started).to.be.below(3_000)
    expect(await offered).to.be.instanceOf(ConnectionError)
    expect(cluster.status).not.to.equal('end')
  })

  it('a durable offer waits for the failover', async () => {
    const pair = await idle()
    const durability = { replicas: 1, timeoutMs: 50 }
    await pair.delayed.offer('before', LATER, { durability: { replicas: 1, timeoutMs: 10_000 } })
    const lost = tried(pair, 'durable', 1)
    await master.kill('SIGKILL')
    await lost
    const started = performance.now()
    const offered = rejection(pair.delayed.offer('during', LATER, { durability }))
    await tried(pair, 'durable', 2)
    await takeOver()
    expect(await offered, 'no replica is left').to.be.instanceOf(DurabilityError)
    expect(performance.now() - started).to.be.below(8_000) // and not only after connectTimeout
    expect(await pair.delayed.readAll()).to.deep.equal(['connected', 'before', 'during'])
  })

  it('and, when every node is down, for one that comes back', async () => {
    const cluster = borrowed()
    const client = makeClient({ redis: cluster })
    const queue = client.getQueue<string>(uniqueName(), { codec: codecs.string() })
    // without transfers, which would make ioredis notice that it has lost the cluster
    const delayed = client.getDelayedQueue(queue, { deliver: false })
    const durability = { replicas: 1, timeoutMs: 50 }
    await delayed.offer('before', LATER, { durability: { replicas: 1, timeoutMs: 10_000 } })
    await Promise.all(setup.servers.map((server) => server.kill('SIGKILL')))
    await eventually(() => expect(cluster.nodes('master')).to.deep.equal([]))
    const refused: unknown[] = []
    cluster.on('node error', (error) => refused.push(error))
    const offered = delayed.offer('during', LATER, { durability })
    const made = offered.catch((error: unknown) => {
      if (!(error instanceof DurabilityError)) throw error // the replica may not be back
    })
    await Promise.race([made, eventually(() => expect(refused.length).to.be.at.least(3))])
    await Promise.all(setup.servers.map((server) => server.restart()))
    await made
    expect(await delayed.readAll()).to.deep.equal(['during'])
  })
})
