/**
 * Attacks with only a connection to Redis, besides odd data in keys, which keys.test.ts has: taking rights away, and
 * data in such numbers that a call does not come to its end.
 */
import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { codecs, type RedelayedError } from '../../src/index.js'
import { queueKeys, reliableKeys } from '../../src/keys.js'
import { firstDelivered } from '../../src/cli/commands/peek.js'
import { offer, offerMany } from '../../src/store/scripts/generated.js'
import type { ListElements } from '../../src/queues/list-elements.js'
import { nextTurn } from '../../src/timing/pause.js'
import { cleanUp, makeClient, rawTo, rejection } from '../integration/fixtures.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'

/** To go through them takes seconds, many times as long as a call may take here. */
const MANY = 60_000
const LIMIT_MS = 1_500
const NOT_MSGPACK = Buffer.from([0xc1, 1, 2])
const string = { codec: codecs.string() }

describe('attacks over a Redis connection', function () {
  this.timeout(60_000)
  let server: RedisServer
  let raw: Redis

  before(async function () {
    requireServerBin(this)
    server = await startRedis()
  })
  after(() => server?.stop())
  beforeEach(() => (raw = rawTo(server.port)))
  afterEach(cleanUp)

  /** A user of that name and of all rights. */
  async function urlOf(user: string): Promise<string> {
    await raw.call('ACL', 'SETUSER', user, 'reset', 'on', '>secret', '~*', '&*', '+@all')
    return `redis://${user}:secret@127.0.0.1:${server.port}`
  }

  async function fill(
    command: string,
    key: string,
    of: (n: number) => readonly (string | number | Buffer)[],
  ): Promise<void> {
    for (let from = 0; from < MANY; from += 1_000) {
      await raw.call(command, key, ...Array.from({ length: 1_000 }, (_, n) => of(from + n)).flat())
    }
  }

  it('a consumer that has lost the right to publish gets its messages, and an event reports why other clients wait longer', async () => {
    const client = makeClient({ url: await urlOf('mute') })
    const problems: RedelayedError[] = []
    client.on('error', (error) => problems.push(error))
    const queue = client.getReliableQueue<string>(uniqueName(), string)
    await queue.addMany(['a', 'b', 'c'].map((payload) => ({ payload })))
    await raw.call('ACL', 'SETUSER', 'mute', '-publish')
    const polled = [await queue.poll(), await queue.poll({ timeout: 10_000 }), await queue.poll()]
    expect(polled.map((message) => message?.payload)).to.deep.equal(['a', 'b', 'c'])
    expect(polled.map((message) => message?.attempt)).to.deep.equal([1, 1, 1])
    expect(problems.map(({ message }) => message).join()).to.match(/the channel: /)
  })

  it('an offer without the right to announce leaves nothing, though the user has only the documented rights', async () => {
    const client = makeClient({ url: await urlOf('mute') })
    client.on('error', () => undefined)
    const queue = client.getBlockingQueue<string>(uniqueName(), string)
    const delayed = client.getDelayedQueue(queue, { layout: 'redisson' })
    await delayed.offer('later', 3_600_000)
    // RPOP is for deques only
    await raw.call('ACL', 'SETUSER', 'mute', '-publish', '-rpop')
    expect(await rejection(delayed.offer('refused', 60_000))).to.have.property('code', 'ERR_COMMAND')
    expect(await rejection(delayed.offerAll([{ value: 'refused', delay: 60_000 }]))).to.be.an('error')
    const keys = queueKeys(queue.name)
    expect([await raw.zcard(keys.timeouts), await raw.llen(keys.order)]).to.deep.equal([1, 1])
  })

  it('offers are announced behind an entry with a negative due time that cannot be set aside', async () => {
    const client = makeClient({ url: server.url, sweepInterval: 60_000 })
    client.on('error', () => undefined)
    const queue = client.getBlockingQueue<string>(uniqueName(), string)
    const delayed = client.getDelayedQueue(queue)
    const keys = queueKeys(queue.name)
    await raw.set(keys.quarantine, 'of another type')
    await raw.zadd(keys.timeouts, '-inf', 'a stranger')
    await delayed.offer('first', 1)
    expect(await queue.take()).to.equal('first')
    const offered = performance.now()
    await delayed.offer('second', 50)
    expect(await queue.take()).to.equal('second')
    expect(performance.now() - offered).to.be.lessThan(30_000)
  })

  describe(`${MANY} elements that cannot be read`, () => {
    it('a take ends by its timeout, and without one within commandTimeout', async () => {
      const client = makeClient({ url: server.url, commandTimeout: LIMIT_MS })
      const queue = client.getBlockingQueue(uniqueName())
      await fill('RPUSH', queue.name, () => [NOT_MSGPACK])
      const left: number[] = []
      for (const call of [
        () => queue.poll(LIMIT_MS),
        () => queue.poll(),
        () => queue.pollFromAny(LIMIT_MS, 'milliseconds', uniqueName()),
      ]) {
        expect(await call()).to.equal(null)
        left.push(await raw.llen(queue.name))
      }
      expect(left.at(-1), left.join()).to.be.greaterThan(0)
      await raw.unlink(queue.name)
    })

    it('a listing leaves the event loop to others, and peek of the command line ends', async () => {
      const client = makeClient({ url: server.url })
      client.on('error', () => undefined)
      const queue = client.getQueue(uniqueName())
      let turns = 0
      const { handle } = (queue as unknown as { list: ListElements<unknown> }).list
      const decoding = handle.decodeAll(Array.from({ length: 2_000 }, () => NOT_MSGPACK))
      for (let n = 0; n < 3; n++) void nextTurn().then(() => turns++)
      expect(await decoding).to.deep.equal([])
      expect(turns).to.equal(3)
      const endless = { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }) }
      expect(await firstDelivered({ destination: { iterate: () => endless } } as never, 10)).to.deep.equal([])
    })

    it('a poll of pending messages ends within commandTimeout', async () => {
      const client = makeClient({ url: server.url, commandTimeout: LIMIT_MS })
      const queue = client.getQueue(uniqueName())
      const keys = queueKeys(queue.name)
      await fill('ZADD', keys.timeouts, (n) => [9e12, `bad ${n}`])
      expect(await client.getDelayedQueue(queue, { layout: 'compact' }).poll()).to.equal(null)
      expect(await raw.zcard(keys.timeouts)).to.be.greaterThan(0)
      await raw.unlink(keys.timeouts)
    })

    it('a poll of a reliable queue ends by its timeout, and without one within commandTimeout', async () => {
      const client = makeClient({ url: server.url, commandTimeout: LIMIT_MS })
      const queue = client.getReliableQueue(uniqueName())
      const keys = reliableKeys(queue.name)
      await fill('HSET', keys.messages, (n) => [`id ${n}`, NOT_MSGPACK])
      await fill('ZADD', keys.due[0]!, (n) => [1, `id ${n}`])
      expect(await queue.poll()).to.equal(null)
      expect(await queue.poll({ timeout: LIMIT_MS })).to.equal(null)
      const untouched = await raw.zcount(keys.due[0]!, 1, 1)
      expect(untouched).to.be.greaterThan(0)
      await raw.unlink(keys.messages, keys.deliveries, keys.failures, ...keys.due)
    })
  })

  describe('one name of 8 MiB at the head of a schedule', () => {
    const LARGE = Buffer.alloc(8 * 1_048_576, 'a')
    /** How often a script of the call reads the head. */
    async function readsOf(call: () => Promise<unknown>): Promise<number> {
      await raw.config('RESETSTAT')
      await call()
      const stats = String(await raw.call('INFO', 'commandstats'))
      const of = (command: string) => Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
      return of('zrange') + of('zrangebyscore')
    }

    it('is read by no offer', async () => {
      const key = uniqueName()
      const [order, channel] = [`${key}:order`, `${key}:channel`]
      await raw.zadd(key, 9e15, LARGE)
      const args = (entry: string) => [channel, 1_000, 60_000, entry, 0, -1]
      const single = () => raw.eval(offer.source, 2, key, order, ...args('one'))
      const many = () => raw.eval(offerMany.source, 2, key, order, channel, 1_000, 0, 0, '5 5', 'two', 'three')
      expect([await readsOf(single), await readsOf(many)]).to.deep.equal([0, 0])
      expect(await raw.zcard(key)).to.equal(4)
      await raw.unlink(key)
    })

    it('is set aside by a transfer before its time if it is not an entry', async () => {
      const client = makeClient({ url: server.url, sweepInterval: 60_000 })
      const queue = client.getBlockingQueue<string>(uniqueName(), string)
      const keys = queueKeys(queue.name)
      await raw.zadd(keys.timeouts, 8e12, LARGE)
      await client.getDelayedQueue(queue, { layout: 'compact' }).offer('good', 50)
      expect(await queue.take()).to.equal('good')
      expect([await raw.zcard(keys.timeouts), await raw.llen(keys.quarantine)]).to.deep.equal([0, 1])
      await raw.unlink(keys.quarantine)
    })

    it('is read by no add to a reliable queue, and removed by a poll', async () => {
      const client = makeClient({ url: server.url, sweepInterval: 60_000 })
      const queue = client.getReliableQueue<string>(uniqueName(), string)
      const keys = reliableKeys(queue.name)
      await queue.poll() // connected before
      await raw.zadd(keys.due[0] ?? '', 8e15, LARGE)
      expect(await readsOf(() => queue.add('first'))).to.equal(0)
      await (await queue.poll())?.acknowledge()
      await queue.poll()
      expect(await raw.exists(...keys.due)).to.equal(0)
    })
  })
})
