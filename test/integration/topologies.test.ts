import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import { ConnectionError, CrossSlotError, InvalidArgumentError, codecs, type ClientOptions } from '../../src/index.js'
import { NEEDED } from '../../src/doctor/needed-commands.js'
import { eventually, once } from '../support/events.js'
import {
  requireServerBin,
  startCluster,
  startSentinel,
  type ClusterSetup,
  type SentinelSetup,
} from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import {
  ORDERS,
  cleanUp,
  expectError,
  javaOffer,
  makeClient,
  makePair,
  numbers,
  onCleanup,
  rawKeys,
  rawTo,
  redisNow,
  takeAll,
  track,
} from './fixtures.js'

describe('Sentinel', function () {
  let setup: SentinelSetup

  before(async function () {
    this.timeout(30_000)
    requireServerBin(this)
    setup = await startSentinel()
  })
  after(() => setup?.stop())
  afterEach(cleanUp)

  const options = (): ClientOptions => ({ sentinels: setup.sentinels, name: setup.name })

  it('finds the master', async () => {
    const { delayed, queue, name } = makePair('redisson', options())
    const waiting = queue.take()
    await delayed.offer('a', 30)
    expect(await waiting).to.equal('a')
    await queue.offer('stays')
    expect(await rawTo(await setup.masterPort()).lrange(name, 0, -1)).to.deep.equal(['stays'])
  })

  it('an unknown name of a master: a ConnectionError within the bounded wait', async () => {
    const pair = makePair('redisson', { ...options(), name: 'unknown', connectTimeout: 300 })
    pair.client.on('error', () => {})
    const wanted = { code: 'ERR_CONNECTION', queue: pair.name, says: ['0.3 s'] }
    await expectError([ConnectionError, wanted], () => pair.delayed.offer('x', 5))
  })

  it('after a failover pending messages are delivered, and the takes that wait continue', async () => {
    const { delayed, queue, client } = makePair('redisson', options())
    const errors: unknown[] = []
    client.on('error', (error) => errors.push(error))
    const waiting = track(queue.take())
    await delayed.offerAll(numbers(100).map((value) => ({ value: `pending ${value}`, delay: 3_600_000 })))
    const early = await delayed.offer('pending at the failover', 3_600_000)
    // what the replica did not get yet is lost with the master: that is Redis's promise, not ours
    expect(await rawTo(await setup.masterPort()).call('WAIT', 1, 5_000)).to.equal(1)
    const lost = once(client, 'reconnecting', () => true, 20_000)
    await setup.failover()
    await lost

    const plain = rawTo(await setup.masterPort())
    expect((await plain.role())[0]).to.equal('master')
    expect(waiting.settled).to.equal(false)
    expect(await delayed.size()).to.equal(101)
    expect(await delayed.reschedule(early, 20)).to.be.a('string')
    expect(await waiting.promise).to.equal('pending at the failover')
    await delayed.offer('after', 20)
    expect(await queue.take()).to.equal('after')
    await delayed.clear()
  }).timeout(30_000)

  it('works on a Sentinel client of the user', async () => {
    const redis = new Redis({ sentinels: setup.sentinels, name: setup.name })
    onCleanup(() => redis.disconnect())
    const { delayed, queue, client } = makePair('compact', { redis })
    const waiting = queue.take()
    await delayed.offer('a', 30)
    expect(await waiting).to.equal('a')
    await client.shutdown()
    expect(await redis.ping()).to.equal('PONG')
  })
}).timeout(20_000)

describe('Sentinel, a failover', function () {
  let setup: SentinelSetup

  before(async function () {
    requireServerBin(this)
    setup = await startSentinel()
  })
  after(() => setup?.stop())
  afterEach(cleanUp)

  it('after a failover all connections go to the new master, before the old one knows of it', async () => {
    const connectionName = uniqueName('moves')
    const { delayed, queue } = makePair('redisson', {
      sentinels: setup.sentinels,
      name: setup.name,
      ioredis: { connectionName },
    })
    const waiting = track(queue.take())
    const ticket = await delayed.offer('pending', 3_600_000)
    await rawTo(await setup.masterPort()).call('WAIT', 1, 5_000)
    const at = async (port: number): Promise<string[]> =>
      String(await rawTo(port).client('LIST'))
        .split('\n')
        .filter((line) => line.includes(` name=${connectionName} `))
        .map((line) => / cmd=(\w+)/.exec(line)?.[1] ?? '')
    const old = await setup.promote()
    const master = await setup.masterPort()
    await eventually(async () => {
      expect(await at(old), 'at the old master').to.deep.equal([])
      expect(await at(master)).to.include.members(['blmpop', 'subscribe'])
    }, 8_000)
    expect((await rawTo(old).role())[0], 'it still takes everything').to.equal('master')
    expect(await delayed.reschedule(ticket, 10)).to.be.a('string')
    expect(await waiting.promise).to.equal('pending')
  })
}).timeout(30_000)

describe('Cluster', function () {
  let setup: ClusterSetup

  before(async function () {
    this.timeout(30_000)
    requireServerBin(this)
    setup = await startCluster()
  })
  after(() => setup?.stop())
  afterEach(cleanUp)

  const options = (): ClientOptions => ({ cluster: setup.nodes })
  const string = { codec: codecs.string() }

  /** The port of the node that holds a key. */
  async function holderOf(key: string): Promise<number | undefined> {
    for (const { port } of setup.nodes) if ((await rawTo(port).keys('*')).includes(key)) return port
    return undefined
  }

  /** Names of queues that the n-th node holds; each of the three has a third of the 16,384 slots. */
  async function namesOn(node: number, count: number): Promise<string[]> {
    const [plain, names] = [rawTo(setup.nodes[0]!.port), [] as string[]]
    while (names.length < count) {
      const name = uniqueName('slot')
      if (Math.floor((await plain.cluster('KEYSLOT', name)) / 5_462) === node) names.push(name)
    }
    return names
  }

  for (const layout of ORDERS) {
    it(`layout '${layout}': twelve queues over all nodes: offer, transfer, take, tickets`, async () => {
      const client = makeClient({ ...options(), blockingConnections: 2 })
      const names = (await Promise.all(numbers(3).map((node) => namesOn(Number(node), 4)))).flat()
      const takes = names.map((name) => client.getBlockingQueue<string>(name, string).take())
      const holders = new Set<number | undefined>()
      for (const name of names) {
        const delayed = client.getDelayedQueue(client.getQueue<string>(name, string), { layout: layout })
        const cancelled = await delayed.offer('cancelled', 600_000)
        const moved = await delayed.offer(`for ${name}`, 600_000)
        holders.add(await holderOf(`redisson_delay_queue_timeout:{${name}}`))
        expect(await delayed.size()).to.equal(2)
        expect(await delayed.cancel(cancelled)).to.equal(true)
        expect(await delayed.contains(`for ${name}`)).to.equal(true)
        expect(await delayed.reschedule(moved, 20)).to.be.a('string')
      }
      expect(await Promise.all(takes)).to.deep.equal(names.map((name) => `for ${name}`))
      expect(holders.size, 'nodes used').to.equal(3)
    })
  }

  it('takes of many queues that get nothing can be aborted, and lose nothing', async () => {
    const client = makeClient({ ...options(), blockingConnections: 1 })
    const queues = numbers(30).map(() => client.getBlockingQueue<string>(uniqueName('abort'), string))
    const controller = new AbortController()
    const ended = Promise.allSettled(queues.map((queue) => queue.take({ signal: controller.signal })))
    await queues[0]!.size()
    controller.abort()
    for (const { status } of await ended) expect(status).to.equal('rejected')
    await Promise.all(queues.map((queue) => queue.offer('a')))
    expect(await Promise.all(queues.map((queue) => queue.poll(5_000)))).to.deep.equal(queues.map(() => 'a'))
  })

  it('offerAll of thousands, and takeMany of them in order', async () => {
    const { delayed, queue } = makePair('redisson', options())
    const tickets = await delayed.offerAll(numbers(2_000).map((value) => ({ value, delay: 100 })))
    expect(new Set(tickets).size).to.equal(2_000)
    expect(await takeAll(queue, 2_000)).to.deep.equal(numbers(2_000))
  })

  it('nodes can be given as urls, and a queue is found from any of them', async () => {
    const name = uniqueName()
    for (const { port } of setup.nodes) {
      const { delayed, queue } = makePair('redisson', { cluster: [`redis://127.0.0.1:${port}`], queueName: name })
      await delayed.offer('a', 10)
      expect(await queue.poll(5_000)).to.equal('a')
    }
    const wanted = { code: 'ERR_INVALID_ARGUMENT', says: ['db', '0 with a cluster', '3'] }
    await expectError([InvalidArgumentError, wanted], () => makeClient({ ...options(), db: 3 }))
  })

  it('messages that are moved to a queue in another slot: a CrossSlotError that names that queue', async () => {
    const client = makeClient(options())
    const [from, to] = [
      client.getReliableQueue<string>(`{a}:${uniqueName()}`),
      client.getReliableQueue<string>(`{b}:${uniqueName()}`),
    ]
    await from.add('x', { id: 'a' })
    const wanted = { code: 'ERR_CROSS_SLOT', queue: from.name, says: [`"${to.name}"`, 'another cluster slot', '{tag}'] }
    await expectError([CrossSlotError, wanted], () => from.move({ to }))
    expect(await from.size()).to.equal(1)
    await from.remove('a')
  })

  for (const name of ['x{y', 'a{}b']) {
    it(`the name ${name}, whose keys lie in different slots: a CrossSlotError`, async () => {
      const pair = makePair('redisson', { ...options(), queueName: `${name}${uniqueName()}` })
      const heard = once(pair.delayed, 'error')
      const wanted = { code: 'ERR_CROSS_SLOT', queue: pair.name, says: ['{tag}'] }
      await expectError([CrossSlotError, wanted], () => pair.delayed.offer('x', 5))
      expect(await heard).to.have.property('code', 'ERR_CROSS_SLOT')
    })
  }

  for (const delivers of [true, false]) {
    const how = delivers ? 'and its transfers go on' : 'and no transfer reveals the move'
    it(`a slot that moves to another node while a take waits, ${how}: the same take gets the next element`, async () => {
      const client = makeClient({ ...options(), consumersDeliver: delivers })
      client.on('error', () => {})
      const name = uniqueName()
      const queue = client.getBlockingQueue<string>(name, string)
      const waiting = track(queue.take())
      const nodes = setup.nodes.map(({ port }) => rawTo(port))
      await eventually(async () => {
        const blocked = await Promise.all(nodes.map((node) => node.info('clients')))
        expect(blocked.join()).to.match(/blocked_clients:1\r?\n/)
      })
      const slot = await nodes[0]!.cluster('KEYSLOT', name)
      const ids = await Promise.all(nodes.map((node) => node.cluster('MYID')))
      const target = (ids.indexOf(await ownerOf(nodes[0]!, slot)) + 1) % 3
      for (const node of nodes) await node.cluster('SETSLOT', slot, 'NODE', ids[target]!)
      await eventually(async () => {
        for (const node of nodes) expect(await ownerOf(node, slot)).to.equal(ids[target])
      })
      expect(waiting.settled).to.equal(false)
      if (delivers) await javaOffer(name, 'new', (await redisNow(nodes[target])) + 20, { redis: nodes[target]! })
      else await nodes[target]!.rpush(name, 'new')
      expect(await waiting.promise).to.equal('new')
    })
  }

  it('a user needs the rights that the documentation lists and no others, also while a slot moves', async function () {
    const name = uniqueName()
    const nodes = setup.nodes.map(({ port }) => rawTo(port))
    const listed = NEEDED.filter(({ purpose, onlyInCluster }) => purpose === null || onlyInCluster)
    const commands = listed.flatMap((group) => group.commands.map((command) => command.name.toLowerCase()))
    const infos = (await nodes[0]!.call('COMMAND', 'INFO', ...commands.map((of) => of.split('|')[0]!))) as unknown[]
    const { channel, ...keys } = rawKeys(name)
    const rights = [
      ...commands.filter((_, at) => infos[at] !== null).map((command) => `+${command}`), // BLMPOP is new in Redis 7
      ...Object.values(keys).map((key) => `~${key}`),
      `&${channel}`,
    ]
    for (const node of nodes) await node.call('ACL', 'SETUSER', 'minimal', 'reset', 'on', '>secret', ...rights)
    const user = { username: 'minimal', password: 'secret' }
    const { delayed, queue } = makePair('redisson', { ...options(), ...user, queueName: name, connectTimeout: 3_000 })
    await delayed.offer('a', 20)
    expect(await queue.take()).to.equal('a')

    const ticket = await delayed.offer('b', 600_000)
    const slot = await nodes[0]!.cluster('KEYSLOT', name)
    const ids = await Promise.all(nodes.map((node) => node.cluster('MYID')))
    const source = ids.indexOf(await ownerOf(nodes[0]!, slot))
    const target = (source + 1) % 3
    await nodes[target]!.cluster('SETSLOT', slot, 'IMPORTING', ids[source]!)
    await nodes[source]!.cluster('SETSLOT', slot, 'MIGRATING', ids[target]!)
    const { port } = setup.nodes[target]!
    await nodes[source]!.migrate('127.0.0.1', port, '', 0, 5_000, 'KEYS', keys.timeouts, keys.order)
    await delayed.offer('c', 600_000)
    await delayed.offerAll(numbers(3).map((value) => ({ value, delay: 600_000 })))
    for (const at of [target, source]) await nodes[at]!.cluster('SETSLOT', slot, 'NODE', ids[target]!)
    expect(await nodes[target]!.zcard(keys.timeouts)).to.equal(5)
    expect(await delayed.reschedule(ticket, 20)).to.be.a('string')
    expect(await queue.take()).to.equal('b')
  })

  it('works on a Cluster client of the user, which stays open', async () => {
    const cluster = new Cluster(setup.nodes)
    onCleanup(() => cluster.disconnect())
    await once(cluster, 'ready')
    await makeClient({ redis: cluster }).shutdown() // paces the redirections of the cluster, once
    const before = cluster.eventNames().map((event) => [event, cluster.listenerCount(event)])
    const { delayed, queue, client } = makePair('redisson', { redis: cluster })
    const waiting = queue.take()
    await delayed.offer('a', 30)
    expect(await waiting).to.equal('a')
    await client.shutdown()
    expect(cluster.eventNames().map((event) => [event, cluster.listenerCount(event)])).to.deep.equal(before)
    expect(await cluster.ping()).to.equal('PONG')
  })
}).timeout(20_000)

async function ownerOf(node: Redis, slot: number): Promise<string> {
  const lines = String(await node.cluster('NODES')).split('\n')
  const owns = (range: string) => {
    const [first, last = first] = range.split('-').map(Number)
    return first !== undefined && last !== undefined && first <= slot && slot <= last
  }
  return lines.find((line) => line.split(' ').slice(8).some(owns))?.split(' ')[0] ?? ''
}
