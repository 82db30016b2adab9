import { expect } from 'chai'
import type { Redis } from 'ioredis'
import {
  AddManyError,
  ConnectionError,
  InvalidArgumentError,
  ShutdownError,
  codecs,
  type AddItem,
  type AddOptions,
  type ClientOptions,
  type Durability,
  type RedelayedClient,
  type ReliableQueue,
} from '../../src/index.js'
import { commandArgs } from '../../src/store/script.js'
import { add } from '../../src/store/reliable-scripts.js'
import { eventually } from '../support/events.js'
import { freePort, startRedis, type RedisServer } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import { FAST, replicationOffset, startReplica, untilWaiting } from '../support/replicas.js'
import { startProxy } from '../support/tcp-proxy.js'
import { channelByHand, keysByHand } from '../lua/reliable-support.js'
import { expectError, makeClient, numbers, onCleanup, rawTo, rejection, track } from './fixtures.js'
import { durabilityError, useMasterAndReplica, waitsOf } from './replica-fixtures.js'

/** Long enough to stay pending for the whole test. */
const LATER = 600_000

const replicas = (count: number, timeoutMs = 10_000) => ({ durability: { replicas: count, timeoutMs } })

interface Made {
  readonly client: RedelayedClient
  readonly name: string
  readonly queue: ReliableQueue<string>
  readonly messages: string
}

describe('durability of a reliable queue', function () {
  let master: RedisServer
  let replica: RedisServer
  let raw: Redis

  useMasterAndReplica((servers) => ({ master, replica, raw } = servers))

  function make(options: ClientOptions = { url: master.url }, name = uniqueName('reliable')): Made {
    const client = makeClient(options)
    const queue = client.getReliableQueue<string>(name, { codec: codecs.string() })
    return { client, name, queue, messages: keysByHand(name).messages }
  }

  const waits = (redis = raw): Promise<number> => waitsOf(redis)

  async function idsOf(queue: ReliableQueue<string>): Promise<string[]> {
    const ids = []
    for await (const { id } of queue.listAll()) ids.push(id)
    return ids.sort()
  }

  it('add, schedule and addMany resolve when the replica has it; a script of many takes one wait', async () => {
    const { queue, messages } = make()
    const copy = rawTo(replica.port)
    const before = await waits()
    expect(await queue.add('a', { id: 'a', ...replicas(1) })).to.deep.equal({ id: 'a', outcome: 'added' })
    expect(await copy.hlen(messages)).to.equal(1)
    // one to look whether the server has the command: the script was loaded beforehand
    expect((await waits()) - before).to.equal(2)
    await queue.addTask('task', 'b', { delay: LATER, ...replicas(1) })
    expect(await copy.hlen(messages)).to.equal(2)
    const items = numbers(1_000).map((payload) => ({ payload, delay: LATER }))
    expect(await queue.addMany(items, replicas(1))).to.have.lengthOf(1_000)
    expect(await copy.hlen(messages)).to.equal(1_002)
    expect((await waits()) - before).to.be.within(3 + 1, 3 + 4) // of four scripts
  })

  it('without the option nothing is waited for', async () => {
    const { queue } = make()
    const before = await waits()
    await queue.add('a', { durability: undefined })
    await queue.addMany([{ payload: 'b' }], {})
    expect(await waits()).to.equal(before)
  })

  it('too few: a DurabilityError with the outcome of the message, which is there and can be cancelled', async () => {
    const { queue, name, client } = make()
    const added: unknown[] = []
    client.on('added', (event) => added.push(event))
    const error = await durabilityError(queue.add('a', { id: 'a', ...replicas(2, 50) }))
    expect(error).to.include({ code: 'ERR_DURABILITY', queue: name, ticket: 'a' })
    expect(error.added).to.deep.equal({ id: 'a', outcome: 'added' })
    expect(error.asked).to.deep.equal({ replicas: 2, aof: false })
    expect(error.acknowledged).to.deep.equal({ replicas: 1, aof: false })
    expect(error.message).to.include('1 of 2 replicas').and.include('50 ms')
    expect(added, 'it was added all the same').to.have.lengthOf(1)
    expect(await queue.cancel(error.ticket)).to.equal(true)
  })

  it('a replica that is stopped does not count, whatever became of the message', async () => {
    const { queue } = make()
    await queue.add('old', { id: 'a', ...replicas(1) })
    await replica.kill('SIGSTOP')
    const once = { deduplicate: { by: 'id', forMs: LATER } } as const
    const calls: [payload: string, options: AddOptions, outcome: string][] = [
      ['new', { id: 'a' }, 'kept'],
      ['new', { id: 'a', existing: 'replace', delay: LATER }, 'replaced'],
      ['new', { id: 'a', existing: 'postpone', delay: LATER }, 'postponed'],
      ['b', { id: 'b', ...once }, 'added'],
    ]
    for (const [payload, options, outcome] of calls) {
      const error = await durabilityError(queue.add(payload, { ...options, ...replicas(1, 50) }))
      expect(error.added?.outcome).to.equal(outcome)
      expect(error.acknowledged.replicas).to.equal(0)
    }
    await queue.cancel('b')
    const error = await durabilityError(queue.add('b', { id: 'b', ...once, ...replicas(1, 50) }))
    expect(error.added?.outcome).to.equal('duplicate')
    await replica.kill('SIGCONT')
    expect(await queue.add('c', { id: 'a', ...replicas(1) })).to.have.property('outcome', 'kept')
  })

  it('an add that changes nothing writes all the same, so that the wait after it means something', async () => {
    const { name } = make()
    const keys = keysByHand(name)
    const attempt = async (args: { sentAgoMs?: number; durable?: boolean; mark?: string; id?: string }) => {
      const { sentAgoMs = -1, durable = false, mark = ',', id = 'a' } = args
      const items = [id, `0,${LATER},,,0,${mark}`, 'A']
      const how = { existing: 'keep', sentAgoMs, durable, batch: '' }
      const given = { channel: channelByHand(name), nowMs: -1, ...how, client: 'me', items }
      const before = await replicationOffset(raw)
      const [, outcome] = (await raw.eval(add.source.source, ...evalArgs(keys, given))) as [string, number]
      return [outcome, (await replicationOffset(raw)) > before]
    }
    expect(await attempt({ mark: '600000,m' })).to.deep.equal([1, true])
    const state = async () => [await raw.hgetall(keys.messages), await raw.zrange(keys.once, '0', '-1', 'WITHSCORES')]
    const before = await state()
    for (const durable of [false, true]) {
      expect(await attempt({ durable }), 'kept').to.deep.equal([0, durable])
      expect(await attempt({ durable, sentAgoMs: 0 }), 'its own').to.deep.equal([1, durable])
      expect(await attempt({ durable, id: 'b', mark: '600000,m' }), 'a duplicate').to.deep.equal([-1, durable])
    }
    expect(await state()).to.deep.equal(before)
  })

  it('addMany names the messages without their durability, with their outcomes', async () => {
    const { queue } = make()
    const items: AddItem<string>[] = [
      { payload: 'a', id: 'a' },
      { payload: 'too late', delay: Number.MAX_SAFE_INTEGER },
      { payload: 'b', id: 'b' },
    ]
    const error = await rejection(queue.addMany(items, replicas(2, 50)))
    if (!(error instanceof AddManyError)) throw error
    expect(error.results).to.deep.equal([null, null, null])
    expect(error.failures.map(({ error }) => error.code)).to.deep.equal([
      'ERR_DURABILITY',
      'ERR_INVALID_ARGUMENT',
      'ERR_DURABILITY',
    ])
    expect(error.failures[2]?.error).to.have.deep.property('added', { id: 'b', outcome: 'added' })
    expect(await idsOf(queue)).to.deep.equal(['a', 'b'])
    const unsafe = await rejection(queue.addMany([{ payload: 'c' }], replicas(2, 50)))
    expect(unsafe.message).to.include('1 of 1 items are not as durable as asked')
  })

  it('the master dies right after the add: the replica has the message, and not the one that no call waited for', async () => {
    const dying = await startRedis({ args: FAST })
    onCleanup(() => dying.stop())
    const proxy = await startProxy({ targetPort: dying.port })
    onCleanup(() => proxy.stop())
    const heir = await startReplica(proxy)
    onCleanup(() => heir.stop())
    proxy.delay(500)
    const { queue, name, messages } = make({ url: dying.url })
    await queue.add('kept only', { id: 'earlier' })
    expect(await rawTo(heir.port).hlen(messages)).to.equal(0)
    expect(await queue.add('again', { id: 'earlier', ...replicas(1) })).to.have.property('outcome', 'kept')
    expect(await rawTo(heir.port).hlen(messages)).to.equal(1)
    await queue.add('survives', { id: 'survives', ...replicas(1) })
    await queue.add('is lost', { id: 'lost' })
    await dying.kill('SIGKILL')
    await rawTo(heir.port).call('REPLICAOF', 'NO', 'ONE')
    const next = make({ url: heir.url }, name)
    expect(await idsOf(next.queue)).to.deep.equal(['earlier', 'survives'])
    expect(await next.queue.cancel('survives')).to.equal(true)
  })

  it('the connection breaks during the wait: it is repeated, added once, and waited for again', async () => {
    const proxy = await startProxy({ targetPort: master.port })
    onCleanup(() => proxy.stop())
    const { queue } = make({ url: `redis://127.0.0.1:${proxy.port}` })
    await queue.add('opens the connection', replicas(1))
    await replica.kill('SIGSTOP')
    const waiting = track(queue.add('a', { id: 'a', delay: LATER, ...replicas(1, 30_000) }))
    await untilWaiting(raw)
    const before = await waits()
    proxy.cut()
    await eventually(async () => expect(await waits()).to.be.greaterThan(before + 1)) // the look, and the wait
    expect(waiting.settled).to.equal(false)
    await replica.kill('SIGCONT')
    expect(await waiting.promise).to.deep.equal({ id: 'a', outcome: 'added' })
    expect(await queue.size()).to.equal(2)
  })

  it('a postponement is not repeated: a ConnectionError with the outcome unknown', async () => {
    const proxy = await startProxy({ targetPort: master.port })
    onCleanup(() => proxy.stop())
    const { queue, name } = make({ url: `redis://127.0.0.1:${proxy.port}` })
    await queue.add('opens the connection', replicas(1))
    await replica.kill('SIGSTOP')
    const waiting = rejection(queue.add('a', { id: 'a', existing: 'postpone', ...replicas(1) }))
    await untilWaiting(raw)
    proxy.cut()
    const error = await waiting
    expect(error).to.be.instanceOf(ConnectionError).and.include({ outcome: 'unknown', queue: name })
  })

  it('a repetition that is refused: the outcome is unknown, because the first attempt may have been carried out', async () => {
    const proxy = await startProxy({ targetPort: master.port })
    onCleanup(() => proxy.stop())
    const { queue, messages } = make({ url: `redis://127.0.0.1:${proxy.port}` })
    await queue.add('opens the connection', replicas(1))
    await replica.kill('SIGSTOP')
    const waiting = rejection(queue.add('a', { id: 'a', ...replicas(1) }))
    await untilWaiting(raw)
    onCleanup(() => rawTo(master.port).config('SET', 'maxmemory', '0'))
    await raw.config('SET', 'maxmemory', '1')
    const before = await waits()
    proxy.cut()
    await eventually(async () => expect(await waits()).to.be.greaterThan(before + 1))
    await replica.kill('SIGCONT')
    const error = await waiting
    expect(error).to.be.instanceOf(ConnectionError).and.include({ outcome: 'unknown' })
    expect(error.cause).to.have.property('redisCode', 'OOM')
    expect(await raw.hexists(messages, 'a')).to.equal(1)
  })

  it('after the roles have changed the next add goes to the new master', async () => {
    const first = await startRedis({ args: FAST })
    onCleanup(() => first.stop())
    const second = await startReplica(first)
    onCleanup(() => second.stop())
    const { queue, messages } = make({ replicated: [first, second].map(({ port }) => ({ host: '127.0.0.1', port })) })
    await queue.add('before', replicas(1))
    await rawTo(second.port).call('REPLICAOF', 'NO', 'ONE')
    await rawTo(first.port).call('REPLICAOF', '127.0.0.1', second.port)
    await queue.add('after', replicas(1))
    expect(await rawTo(second.port).hlen(messages)).to.equal(2)
  })

  it('aof on a server without WAITAOF, or without appendonly: refused, and nothing is sent', async () => {
    const { queue, messages } = make()
    const [known] = (await raw.call('COMMAND', 'INFO', 'waitaof')) as unknown[]
    const code = known === null ? 'ERR_UNSUPPORTED_SERVER' : 'ERR_COMMAND'
    const error = await rejection(queue.add('a', { durability: { aof: true } }))
    expect(error.code).to.equal(code)
    const many = await rejection(queue.addMany([{ payload: 'a' }], { durability: { aof: true } }))
    expect(many).to.have.nested.property('failures[0].error.code', code)
    expect(await raw.exists(messages)).to.equal(0)
  })

  it('wrong options are refused before anything is sent', async () => {
    const { queue, name, messages } = make()
    const wrong: [durability: unknown, says: string][] = [
      [null, 'durability'],
      [{}, 'durability.replicas'],
      [{ replicas: 1 }, 'durability.timeoutMs'],
      [{ replicas: 0, timeoutMs: 5 }, '1 to 1000'],
      [{ aof: 'yes' }, 'true or false'],
      [{ replicas: 1, timeout: 5 }, 'durability.timeout'],
    ]
    for (const [given, says] of wrong) {
      const options = { durability: given as Durability }
      const wanted = { code: 'ERR_INVALID_ARGUMENT', queue: name, says: [says] }
      const calls = [
        () => queue.add('x', options),
        () => queue.addTask('task', 'x', options),
        () => queue.addMany([{ payload: 'x' }], options),
      ]
      for (const call of calls) await expectError([InvalidArgumentError, wanted], call)
    }
    const item = { payload: 'x', ...replicas(1) } as AddItem<string>
    await expectError(
      [InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['items[0].durability'] }],
      () => queue.addMany([item]),
    )
    expect(await raw.exists(messages)).to.equal(0)
  })

  it('a shutdown lets a waiting add finish, and refuses new ones', async () => {
    const { queue, client, name } = make()
    await queue.add('opens the connection', replicas(1))
    await replica.kill('SIGSTOP')
    const waiting = track(queue.add('a', replicas(1)))
    await untilWaiting(raw)
    const ended = track(client.shutdown())
    const wanted = { code: 'ERR_SHUTDOWN', queue: name }
    await eventually(() => expectError([ShutdownError, wanted], () => queue.add('b', replicas(1, 1))))
    expect([waiting, ended].some(({ settled }) => settled)).to.equal(false)
    await replica.kill('SIGCONT')
    expect(await waiting.promise).to.have.property('outcome', 'added')
    await ended.promise
    await expectError([ShutdownError, wanted], () => queue.addMany([{ payload: 'b' }], replicas(1)))
  })

  it('a shutdown does not wait for a server that is not there', async () => {
    const { queue, client, name } = make({ url: `redis://127.0.0.1:${await freePort()}` })
    client.on('error', () => {})
    const waiting = queue.add('a', replicas(1))
    const refused = expectError([ShutdownError, { code: 'ERR_SHUTDOWN', queue: name }], () => waiting)
    await eventually(() => client.shutdown())
    await refused
  }).timeout(5_000)
}).timeout(20_000)

function evalArgs(
  keys: ReturnType<typeof keysByHand>,
  args: Parameters<typeof commandArgs<(typeof add)['source']>>[2],
): [number, ...(string | Buffer)[]] {
  const [count, ...rest] = commandArgs(add.source, keys, args)
  return [Number(count), ...rest]
}
