import { expect } from 'chai'
import { Redis } from 'ioredis'
import {
  CommandError,
  ConnectionError,
  DurabilityError,
  InvalidArgumentError,
  OfferAllError,
  ReadOnlyError,
  ShutdownError,
  UnsupportedServerError,
  type Durability,
  type OfferOptions,
} from '../../src/index.js'
import { offer } from '../../src/store/scripts.js'
import { eventually } from '../support/events.js'
import { freePort, startCluster, startRedis, type RedisServer } from '../support/redis-server.js'
import { FAST, replicationOffset, startReplica, untilLinked, untilWaiting } from '../support/replicas.js'
import { startProxy } from '../support/tcp-proxy.js'
import {
  ORDERS,
  cleanUp,
  expectError,
  javaEntry,
  makePair,
  numbers,
  onCleanup,
  rawState,
  rawTo,
  rejection,
  track,
  type Pair,
} from './fixtures.js'
import { durabilityError, useMasterAndReplica, waitsOf } from './replica-fixtures.js'

/** Long enough to stay pending for the whole test. */
const LATER = 600_000

const replicas = (count: number, timeoutMs = 10_000): OfferOptions => ({ durability: { replicas: count, timeoutMs } })

describe('durability', function () {
  let master: RedisServer
  let replica: RedisServer
  let raw: Redis

  useMasterAndReplica((servers) => ({ master, replica, raw } = servers))

  const makeOurs = (layout: (typeof ORDERS)[number] = 'redisson'): Pair => makePair(layout, { url: master.url })

  const waits = (redis = raw): Promise<number> => waitsOf(redis)

  describe('by replicas', () => {
    for (const layout of ORDERS) {
      it(`layout '${layout}': resolves when they have it`, async () => {
        const { delayed, keys } = makeOurs(layout)
        const ticket = await delayed.offer('a', LATER, replicas(1))
        expect(await rawTo(replica.port).zcard(keys.timeouts)).to.equal(1)
        expect(await delayed.cancel(ticket)).to.equal(true)
      })
    }

    it("layout 'wheel': resolves when they have it", async () => {
      const { client, queue, name } = makeOurs()
      const delayed = client.getDelayedQueue(queue, { layout: 'wheel', deliver: false })
      const ticket = await delayed.offer('a', LATER, replicas(1))
      expect(await rawTo(replica.port).zcard(`redelayed:wheel:{${name}}`)).to.equal(1)
      expect(await delayed.offerAll([{ value: 'b', delay: LATER }], replicas(1))).to.have.lengthOf(1)
      expect(await delayed.cancel(ticket)).to.equal(true)
      expect(await delayed.size()).to.equal(1)
    })

    it('with a unit, at a date, and many; each is waited for', async () => {
      const { delayed, keys } = makeOurs()
      const copy = rawTo(replica.port)
      const before = await waits()
      await delayed.offer('a', 10, 'minutes', replicas(1))
      expect(await copy.zcard(keys.timeouts)).to.equal(1)
      await delayed.offer('b', LATER, undefined, replicas(1))
      expect(await copy.zcard(keys.timeouts)).to.equal(2)
      await delayed.offerAt('c', new Date(Date.now() + LATER), replicas(1))
      expect(await copy.zcard(keys.timeouts)).to.equal(3)
      const items = numbers(1_000).map((value) => ({ value, delay: LATER }))
      expect(await delayed.offerAll(items, replicas(1))).to.have.lengthOf(1_000)
      expect(await copy.zcard(keys.timeouts)).to.equal(1_003)
      // the first looks whether the server has the command, and a thousand are four chunks
      expect((await waits()) - before).to.be.within(5, 1 + 3 + 4)
    })

    it('without the option, or with an empty one, nothing is waited for', async () => {
      const { delayed } = makeOurs()
      const before = await waits()
      await delayed.offer('a', LATER)
      await delayed.offer('b', LATER, {})
      await delayed.offer('c', LATER, { durability: undefined })
      await delayed.offerAll([{ value: 'd', delay: LATER }], {})
      expect(await waits()).to.equal(before)
    })

    it('too few: a DurabilityError with the ticket, and the message is there and can be cancelled', async () => {
      const { delayed, name } = makeOurs()
      const error = await durabilityError(delayed.offer('a', LATER, replicas(2, 50)))
      expect(error.queue).to.equal(name)
      expect(error.asked).to.deep.equal({ replicas: 2, aof: false })
      expect(error.acknowledged).to.deep.equal({ replicas: 1, aof: false })
      expect(error.message).to.include('1 of 2 replicas').and.include('50 ms')
      expect(await delayed.readAll()).to.deep.equal(['a'])
      expect(await delayed.cancel(error.ticket)).to.equal(true)
      expect(await delayed.size()).to.equal(0)
    })

    it('a replica that is stopped does not count', async () => {
      const { delayed } = makeOurs()
      await delayed.offer('before', LATER, replicas(1))
      await replica.kill('SIGSTOP')
      const error = await durabilityError(delayed.offer('a', LATER, replicas(1, 100)))
      expect(error.acknowledged.replicas).to.equal(0)
      await replica.kill('SIGCONT')
      await delayed.offer('after', LATER, replicas(1))
      expect(await delayed.size()).to.equal(3)
    })

    it('offerAll: each item that is not safe is named, with its ticket', async () => {
      const { delayed } = makeOurs()
      const items = [
        { value: 'a', delay: LATER },
        { value: 'too late', delay: Number.MAX_SAFE_INTEGER },
        { value: 'b', delay: LATER },
      ]
      const error = await rejection(delayed.offerAll(items, replicas(2, 50)))
      if (!(error instanceof OfferAllError)) throw error
      expect(error.tickets).to.deep.equal([null, null, null])
      expect(error.failures.map(({ error: { code } }) => code)).to.deep.equal([
        'ERR_DURABILITY',
        'ERR_INVALID_ARGUMENT',
        'ERR_DURABILITY',
      ])
      const last = error.failures[2]?.error
      expect(last instanceof DurabilityError && (await delayed.cancel(last.ticket))).to.equal(true)
      expect(await delayed.readAll()).to.deep.equal(['a'])
      const [only] = items
      const unsafe = await rejection(delayed.offerAll([only!], replicas(2, 50)))
      expect(unsafe.message).to.include('1 of 1 items are not as durable as asked')
    })

    it('200 at once take one wait', async () => {
      const { delayed } = makeOurs()
      await delayed.offer('opens the connection', LATER, replicas(1))
      const before = await waits()
      await Promise.all(numbers(200).map((value) => delayed.offer(value, LATER, replicas(1))))
      expect((await waits()) - before).to.equal(1)
      expect(await delayed.readAll()).to.deep.equal(['opens the connection', ...numbers(200)])
    })

    it('while one waits, other offers and takes continue, other durabilities too, and those that come share the next', async () => {
      const { delayed, queue } = makeOurs()
      await delayed.offer('opens the connection', LATER, replicas(1))
      await replica.kill('SIGSTOP')
      const waiting = track(delayed.offer('waits', LATER, replicas(1)))
      await untilWaiting(raw)
      const later = numbers(50).map((value) => track(delayed.offer(value, LATER, replicas(1))))
      const taken = queue.take()
      await delayed.offer('plain', 10)
      expect(await taken).to.equal('plain')
      await durabilityError(delayed.offer('another kind', LATER, replicas(1, 20)))
      const before = await waits()
      expect([waiting, ...later].some(({ settled }) => settled)).to.equal(false)
      await replica.kill('SIGCONT')
      await Promise.all([waiting, ...later].map(({ promise }) => promise))
      expect((await waits()) - before).to.be.within(1, 2)
      expect(await delayed.size()).to.equal(53)
    })

    it('many different ones use few connections, and each has its own wait', async () => {
      const { delayed } = makeOurs()
      const waitsBefore = await waits()
      const before = String(await raw.client('LIST')).split('\n').length
      await Promise.all(numbers(40, 5_000).map((ms) => delayed.offer('a', LATER, replicas(1, Number(ms)))))
      const after = String(await raw.client('LIST')).split('\n').length
      expect(after - before).to.be.within(1, 4 + 2)
      expect((await waits()) - waitsBefore).to.be.within(40, 40 + 4)
      expect(await delayed.size()).to.equal(40)
    })

    it("works beside the user's own client", async () => {
      const redis = new Redis(master.url)
      onCleanup(() => redis.disconnect())
      const { delayed, client } = makePair('compact', { redis })
      await delayed.offer('a', LATER, replicas(1))
      expect((await durabilityError(delayed.offer('b', LATER, replicas(2, 20)))).acknowledged.replicas).to.equal(1)
      await client.shutdown()
      expect(await redis.ping()).to.equal('PONG')
    })
  })

  describe('when things break', () => {
    it('the master dies right after the offer: the replica has the message, and not the one that no call waited for', async () => {
      const dying = await startRedis({ args: FAST })
      onCleanup(() => dying.stop())
      const proxy = await startProxy({ targetPort: dying.port })
      onCleanup(() => proxy.stop())
      const heir = await startReplica(proxy)
      onCleanup(() => heir.stop())
      proxy.delay(500)
      const { delayed, name } = makePair('redisson', { url: dying.url })
      const ticket = await delayed.offer('survives', LATER, replicas(1))
      const plain = rawTo(dying.port)
      expect(await waits(plain), 'one to look and one to wait, with a script new to the server').to.equal(2)
      await plain.quit()
      await delayed.offer('is lost', LATER)
      await dying.kill('SIGKILL')
      await rawTo(heir.port).call('REPLICAOF', 'NO', 'ONE')
      const next = makePair('redisson', { url: heir.url, queueName: name })
      expect(await next.delayed.readAll()).to.deep.equal(['survives'])
      expect(await next.delayed.cancel(ticket)).to.equal(true)
    })

    it('the connection breaks during the wait: the offer is repeated, added once, and waited for again', async () => {
      const proxy = await startProxy({ targetPort: master.port })
      onCleanup(() => proxy.stop())
      const { delayed, queue } = makePair('redisson', { url: `redis://127.0.0.1:${proxy.port}` })
      await delayed.offer('opens the connection', LATER, replicas(1))
      await replica.kill('SIGSTOP')
      const waiting = track(delayed.offer('a', LATER, replicas(1, 1_000)))
      await untilWaiting(raw)
      proxy.cut()
      const error = await durabilityError(waiting.promise)
      expect(error.acknowledged.replicas).to.equal(0)
      expect(await delayed.readAll()).to.deep.equal(['opens the connection', 'a'])
      expect(await delayed.reschedule(error.ticket, 10)).to.be.a('string')
      expect(await queue.take()).to.equal('a')
    })

    const MAX = Number.MAX_SAFE_INTEGER // an attempt that is repeated in time
    it('an attempt that finds its entry writes it once more, so that a wait after it means something', async () => {
      const { keys } = makeOurs()
      const { timeouts, order, channel } = keys
      const entry = javaEntry('a')
      const attempt = () => raw.eval(offer.source.source, 2, timeouts, order, channel, -1, LATER, entry, 1, MAX)
      const due = await attempt()
      const offset = await replicationOffset(raw)
      expect(await replicationOffset(raw), 'nothing else writes').to.equal(offset)
      expect(await attempt()).to.equal(due)
      expect(await replicationOffset(raw)).to.be.greaterThan(offset)
    })

    it('a message that could have been delivered meanwhile is not repeated: a ConnectionError with the outcome unknown', async () => {
      const proxy = await startProxy({ targetPort: master.port })
      onCleanup(() => proxy.stop())
      const { delayed, name } = makePair('redisson', { url: `redis://127.0.0.1:${proxy.port}` })
      await delayed.offer('opens the connection', LATER, replicas(1))
      await replica.kill('SIGSTOP')
      const waiting = rejection(delayed.offer('a', 1, replicas(1)))
      await untilWaiting(raw)
      proxy.cut()
      await expectError([ConnectionError, { code: 'ERR_CONNECTION', queue: name }], async () => {
        const error = await waiting
        expect(error).to.have.property('outcome', 'unknown')
        throw error
      })
    })

    it('a server that stops answering is given up', async () => {
      const proxy = await startProxy({ targetPort: master.port })
      onCleanup(() => proxy.stop())
      const { delayed, client } = makePair('redisson', {
        url: `redis://127.0.0.1:${proxy.port}`,
        commandTimeout: 100,
        connectTimeout: 300,
      })
      client.on('error', () => {})
      await delayed.offer('opens the connection', LATER, replicas(1))
      proxy.blackhole(true)
      const error = await rejection(delayed.offer('a', LATER, replicas(1, 50)))
      expect(error).to.be.instanceOf(ConnectionError).and.have.property('outcome', 'unknown')
      proxy.blackhole(false)
    })

    it('a replica as server: a ReadOnlyError, and nothing is written', async () => {
      const { delayed, name } = makePair('redisson', { url: replica.url })
      await expectError([ReadOnlyError, { code: 'ERR_READ_ONLY', queue: name }], () =>
        delayed.offer('a', LATER, replicas(1, 50)),
      )
    })
  })

  describe('when the roles change', () => {
    let first: RedisServer
    let second: RedisServer
    beforeEach(async () => {
      first = await startRedis({ args: FAST })
      onCleanup(() => first.stop())
      second = await startReplica(first)
      onCleanup(() => second.stop())
    })

    const pair = () =>
      makePair('redisson', { replicated: [first, second].map(({ port }) => ({ host: '127.0.0.1', port })) })

    it('and all connections stay, the next offer goes to the new master', async () => {
      const { delayed, keys } = pair()
      await delayed.offer('before', LATER, replicas(1))
      await rawTo(second.port).call('REPLICAOF', 'NO', 'ONE')
      await rawTo(first.port).call('REPLICAOF', '127.0.0.1', second.port)
      await delayed.offer('after', LATER, replicas(1))
      expect((await rawTo(second.port).role())[0]).to.equal('master')
      expect(await rawTo(second.port).zcard(keys.timeouts)).to.equal(2)
    })

    it('during the wait, the offer is made once more at the new master, which never got it, and waited for there', async () => {
      const { delayed, keys } = pair()
      await delayed.offer('before', LATER, replicas(1))
      await rawTo(second.port).call('REPLICAOF', 'NO', 'ONE')
      const waiting = delayed.offer('a', LATER, replicas(1))
      await untilWaiting(rawTo(first.port))
      expect(await rawTo(second.port).zcard(keys.timeouts)).to.equal(1)
      await rawTo(first.port).call('REPLICAOF', '127.0.0.1', second.port)
      const ticket = await waiting
      expect(await rawTo(second.port).zcard(keys.timeouts)).to.equal(2)
      expect(await rawTo(first.port).zcard(keys.timeouts), 'at the replica').to.equal(2)
      expect(await delayed.cancel(ticket)).to.equal(true)
      expect(await delayed.readAll()).to.deep.equal(['before'])
    })
  }).timeout(20_000)

  describe('wrong options are refused before anything is sent', () => {
    const wrong: [durability: unknown, ...says: string[]][] = [
      [null, 'durability', 'an object', 'null'],
      [[], 'durability', 'an object'],
      [{}, 'durability.replicas', '1 to 1000', 'undefined'],
      [{ replicas: 1 }, 'durability.timeoutMs', '1 to 600000', 'undefined'],
      [{ replicas: 0, timeoutMs: 5 }, 'durability.replicas', '1 to 1000', '0'],
      [{ replicas: 1.5, timeoutMs: 5 }, 'durability.replicas', '1.5'],
      [{ replicas: '1', timeoutMs: 5 }, 'durability.replicas', 'a string of 1 character'],
      [{ replicas: 1, timeoutMs: 0 }, 'durability.timeoutMs', '0'],
      [{ replicas: 1, timeoutMs: Infinity }, 'durability.timeoutMs', 'Infinity'],
      [{ replicas: 1, timeoutMs: 600_001 }, 'durability.timeoutMs', '600001'],
      [{ aof: 'yes' }, 'durability.aof', 'true or false', 'a string of 3 characters'],
      [{ aof: false }, 'durability.replicas', 'undefined'],
      [{ aof: true, replicas: -1 }, 'durability.replicas', '0 to 1000', '-1'],
      [{ aof: true, timeoutMs: 0 }, 'durability.timeoutMs', '0'],
      [{ replicas: 1, timeout: 5 }, 'durability.timeout', 'replicas, timeoutMs, aof'],
    ]
    for (const [durability, ...says] of wrong) {
      it(JSON.stringify(durability), async () => {
        const { delayed, name } = makeOurs()
        const options = { durability: durability as Durability }
        const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says }
        const calls = [
          () => delayed.offer('x', LATER, options),
          () => delayed.offer('x', LATER, 'seconds', options),
          () => delayed.offerAt('x', new Date(), options),
          () => delayed.offerAll([{ value: 'x', delay: LATER }], options),
        ]
        for (const call of calls) await expectError([InvalidArgumentError, wanted], call)
        expect(await rawState(name, raw)).to.deep.equal([null, null, null, null])
      })
    }

    it('unknown options, a wrong delay, a wrong value', async () => {
      const { delayed, name } = makeOurs()
      const wanted = (...says: string[]) => ({ code: 'ERR_INVALID_ARGUMENT', queue: name, says })
      const misspelt = { durabilty: { replicas: 1, timeoutMs: 5 } } as OfferOptions
      await expectError([InvalidArgumentError, wanted('durabilty')], () => delayed.offer('x', 1, misspelt))
      await expectError([InvalidArgumentError, wanted('delay', '-1')], () => delayed.offer('x', -1, replicas(1)))
      await expectError([InvalidArgumentError, wanted('value')], () => delayed.offer(null as never, 1, replicas(1)))
      expect(await rawState(name, raw)).to.deep.equal([null, null, null, null])
    })
  })

  describe('shutdown', () => {
    it('lets a waiting offer finish, and refuses new ones', async () => {
      const { delayed, client, name } = makeOurs()
      await delayed.offer('opens the connection', LATER, replicas(1))
      await replica.kill('SIGSTOP')
      const waiting = track(delayed.offer('a', LATER, replicas(1)))
      await untilWaiting(raw)
      const behind = track(delayed.offer('behind it', LATER, replicas(1)))
      const ended = track(client.shutdown())
      const wanted = { code: 'ERR_SHUTDOWN', queue: name }
      await eventually(() => expectError([ShutdownError, wanted], () => delayed.offer('b', LATER)))
      await expectError([ShutdownError, wanted], () => delayed.offer('b', LATER, replicas(1)))
      expect([waiting, behind, ended].some(({ settled }) => settled)).to.equal(false)
      await replica.kill('SIGCONT')
      expect(await waiting.promise).to.be.a('string')
      expect(await behind.promise).to.be.a('string')
      await ended.promise
      const calls = [
        () => delayed.offer('b', LATER, replicas(1)),
        () => delayed.offerAt('b', new Date(), replicas(1)),
        () => delayed.offerAll([{ value: 'b', delay: LATER }], replicas(1)),
      ]
      for (const call of calls) await expectError([ShutdownError, wanted], call)
    })

    it('does not wait for a server that is not there', async () => {
      const { delayed, client, name } = makePair('redisson', { url: `redis://127.0.0.1:${await freePort()}` })
      client.on('error', () => {})
      const waiting = delayed.offer('a', LATER, replicas(1))
      const refused = expectError([ShutdownError, { code: 'ERR_SHUTDOWN', queue: name }], () => waiting)
      await eventually(() => client.shutdown())
      await refused
    }).timeout(5_000)
  })

  it('in a cluster it waits at the master of the slot, wherever that goes', async function () {
    const cluster = await startCluster()
    onCleanup(() => cluster.stop())
    const { client, queue, keys, ...delivers } = makePair('redisson', { cluster: cluster.nodes, connectTimeout: 1_000 })
    // without transfers, which would learn of the slot that moves below
    const delayed = client.getDelayedQueue(queue, { deliver: false })
    await delivers.delayed.destroy()
    const none = await durabilityError(delayed.offer('a', LATER, replicas(1, 50)))
    expect(none.acknowledged.replicas).to.equal(0)
    const copy = await startClusterReplica(cluster.nodes[0]!.port, keys.timeouts)
    await delayed.offerAll(
      numbers(600).map((value) => ({ value, delay: LATER })),
      replicas(1),
    )
    const plain = rawTo(copy.port)
    await plain.readonly()
    expect(await plain.zcard(keys.timeouts)).to.equal(601)
    expect(await delayed.cancel(none.ticket)).to.equal(true)
    const nodes = cluster.nodes.map(({ port }) => rawTo(port))
    for (const node of nodes) expect(await node.info('errorstats')).not.to.include('MOVED')

    const slot = await plain.cluster('KEYSLOT', keys.timeouts)
    const owner = nodes[await ownerOf(nodes, slot)]!
    await plain.cluster('FAILOVER')
    await eventually(async () => expect((await plain.role())[0]).to.equal('master'), 20_000)
    await delayed.offer('after the failover', LATER, replicas(1, 20_000))
    expect(await plain.zcard(keys.timeouts)).to.equal(601)

    await plain.quit()
    await copy.kill('SIGKILL')
    await eventually(async () => expect((await owner.role())[0]).to.equal('master'), 20_000)
    const alone = await durabilityError(delayed.offer('after a death', LATER, replicas(1, 50)))
    expect(await owner.zcard(keys.timeouts)).to.equal(602)
    expect(await delayed.cancel(alone.ticket)).to.equal(true)

    await delayed.clear()
    const target = nodes.find((node) => node !== owner)!
    const id = await target.cluster('MYID')
    for (const node of [target, owner, ...nodes]) await node.cluster('SETSLOT', slot, 'NODE', id)
    const moved = await durabilityError(delayed.offer('after the slot moved', LATER, replicas(1, 50)))
    const errors = await owner.info('errorstats')
    if (errors !== '') expect(errors, 'the old place was asked first').to.include('MOVED') // '' before Redis 6.2
    expect(await target.zcard(keys.timeouts)).to.equal(1)
    expect(await delayed.cancel(moved.ticket)).to.equal(true)
  }).timeout(60_000)

  describe('by the append-only file', () => {
    let server: RedisServer
    let supported: boolean

    before(async () => {
      server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'everysec'] })
      const plain = rawTo(server.port)
      const [known] = (await plain.call('COMMAND', 'INFO', 'waitaof')) as unknown[]
      supported = known !== null
      await cleanUp()
    })
    after(() => server?.stop())

    it('a server without WAITAOF: an error that names the version, and nothing is sent', async function () {
      if (supported) this.skip()
      const { delayed, name } = makePair('redisson', { url: server.url })
      const wanted = { code: 'ERR_UNSUPPORTED_SERVER', queue: name, says: ['7.2', 'nothing was sent'] }
      await expectError([UnsupportedServerError, wanted], () =>
        delayed.offer('a', LATER, { durability: { aof: true } }),
      )
      expect(await rawState(name, rawTo(server.port))).to.deep.equal([null, null, null, null])
      await delayed.offer('a', LATER)
    })

    it('resolves when it is synced, and a server that is killed then has it when it is back', async function () {
      if (!supported) this.skip()
      const { delayed } = makePair('redisson', { url: server.url })
      await Promise.all(numbers(20).map((value) => delayed.offer(value, LATER, { durability: { aof: true } })))
      await server.kill('SIGKILL')
      await server.restart()
      expect(await delayed.readAll()).to.deep.equal(numbers(20))
    }).timeout(20_000)

    it('not in time: a DurabilityError with the durability reached', async function () {
      if (!supported) this.skip()
      const { delayed } = makePair('redisson', { url: server.url })
      // the first may meet the sync of this second, and then the next one has to wait for that of the next
      const durability: Durability = { aof: true, timeoutMs: 1 }
      const short = await eventually(() => durabilityError(delayed.offer('a', LATER, { durability })))
      expect(short.acknowledged).to.deep.equal({ replicas: 0, aof: false })
      expect(short.message).to.include('not synced')
      const more: Durability = { aof: true, replicas: 1, timeoutMs: 3_000 }
      const alone = await durabilityError(delayed.offer('b', LATER, { durability: more }))
      expect(alone.asked).to.deep.equal({ replicas: 1, aof: true })
      expect(alone.acknowledged).to.deep.equal({ replicas: 0, aof: true })
      expect(await delayed.size()).to.be.at.least(2)
    }).timeout(20_000)

    it('a server without appendonly: its refusal, and nothing is sent', async function () {
      if (!supported) this.skip()
      const { delayed, name } = makeOurs()
      const wanted = { code: 'ERR_COMMAND', queue: name, says: ['appendonly'] }
      await expectError([CommandError, wanted], () => delayed.offer('a', LATER, { durability: { aof: true } }))
      expect(await rawState(name, raw)).to.deep.equal([null, null, null, null])
    })
  })
}).timeout(20_000)

/** A replica of the node of a cluster that holds a key. */
async function startClusterReplica(anyPort: number, key: string): Promise<RedisServer> {
  let port: number
  do port = await freePort()
  while (port >= 55_536) // the cluster bus needs port + 10000
  const copy = await startRedis({ args: [...FAST, '--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'], port })
  onCleanup(() => copy.stop())
  const plain = rawTo(port)
  const slot = await plain.cluster('KEYSLOT', key)
  await plain.cluster('MEET', '127.0.0.1', anyPort)
  await eventually(async () => {
    const slots = await plain.cluster('SLOTS')
    const owner = slots.find(([first, last]) => first <= slot && slot <= last)?.[2]?.[2]
    if (owner === undefined) throw new Error('the cluster is not known yet')
    await plain.cluster('REPLICATE', owner)
  }, 20_000)
  await plain.quit()
  await untilLinked(port)
  return copy
}

/** Which of the nodes has a slot, by their own word. */
async function ownerOf(nodes: Redis[], slot: number): Promise<number> {
  const slots = await nodes[0]!.cluster('SLOTS')
  const port = slots.find(([first, last]) => first <= slot && slot <= last)?.[2]?.[1]
  return nodes.findIndex(({ options }) => options.port === port)
}
