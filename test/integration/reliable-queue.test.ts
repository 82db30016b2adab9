import { expect } from 'chai'
import { Redis } from 'ioredis'
import {
  AddManyError,
  InvalidArgumentError,
  OperationDisabledError,
  PayloadTooLargeError,
  QueueFullError,
  ShutdownError,
  codecs,
  type AddOptions,
  type QuarantinedEvent,
  type RedelayedClient,
  type ReliableMessage,
  type ReliableQueue,
} from '../../src/index.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startRedis } from '../support/redis-server.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { startProxy } from '../support/tcp-proxy.js'
import { cleanUp, makeClient, numbers, onCleanup, rawTo, redisNow, untilRedisClock } from './fixtures.js'

const string = { codec: codecs.string() }
const raw = rawClient

interface Made {
  readonly client: RedelayedClient
  readonly name: string
  readonly queue: ReliableQueue<string>
}

/** A queue whose keys are deleted after the test. */
function make(client = makeClient(), name = uniqueName('reliable')): Made {
  onCleanup(async () => {
    for (const suffix of ['', ':dead']) {
      const tag = `{${name}}${suffix}`
      const parts = [
        'messages',
        'deliveries',
        'failures',
        'config',
        'once',
        'in-flight',
        ...numbers(10).map((n) => `due-${n}`),
      ]
      await raw().unlink(...parts.map((part) => `redelayed:reliable:${part}:${tag}`))
    }
  })
  return { client, name, queue: client.getReliableQueue<string>(name, string) }
}

async function taken(queue: ReliableQueue<string>, options = {}): Promise<ReliableMessage<string>> {
  const message = await queue.poll({ timeout: 10_000, ...options })
  if (message === null) throw new Error('nothing came')
  return message
}

async function fails<E extends Error>(
  promise: Promise<unknown>,
  type: abstract new (...args: never[]) => E,
  says?: RegExp,
): Promise<E> {
  const error: unknown = await promise.then(
    (value) => expect.fail(`it resolved with ${String(value)}`),
    (thrown: unknown) => thrown,
  )
  expect(error).to.be.instanceOf(type)
  if (says !== undefined) expect((error as E).message).to.match(says)
  return error as E
}

/** Waits until the visibility of a message has ended, by the Redis clock. */
async function ended(message: ReliableMessage<string>): Promise<void> {
  await untilRedisClock(message.visibleUntil + 1)
}

describe('reliable queue', () => {
  afterEach(cleanUp)

  describe('adding and taking', () => {
    it('hands a message out with all that was given to it, once, until it is acknowledged', async () => {
      const { queue } = make()
      const headers = { trace: 'abc', __proto__x: '1' }
      const added = await queue.add('hello', { id: 'a b\u0000é', priority: 7, headers })
      expect(added).to.deep.equal({ id: 'a b\u0000é', outcome: 'added' })
      const message = await taken(queue)
      expect([message.id, message.payload, message.priority, message.attempt]).to.deep.equal([
        'a b\u0000é',
        'hello',
        7,
        1,
      ])
      expect({ ...message.headers }).to.deep.equal(headers)
      expect(message.visibleUntil - message.visibleAt).to.be.within(30_000, 40_000)
      expect(await queue.poll()).to.equal(null)
      expect((await queue.counts()).inFlight).to.equal(1)
      expect(await message.acknowledge()).to.equal(true)
      expect(await message.acknowledge()).to.equal(false)
      expect(await queue.isEmpty()).to.equal(true)
    })

    it('keeps the order of offers within a priority, and takes the highest priority first', async () => {
      const { queue } = make()
      await queue.addMany(numbers(600).map((payload, at) => ({ payload, priority: at % 3 })))
      const messages = await queue.pollMany({ count: 1_000 })
      const expected = [2, 1, 0].flatMap((priority) => numbers(600).filter((_, at) => at % 3 === priority))
      expect(messages.map(({ payload }) => payload)).to.deep.equal(expected)
      expect(await queue.acknowledge(...messages)).to.deep.equal(messages.map(() => true))
    })

    it('takes no more when the messages have as many bytes as the caller wants, and always one', async () => {
      const { queue } = make()
      await queue.addMany(numbers(7).map((id) => ({ id, payload: id.repeat(700_000) })))
      const taken: string[][] = []
      for (const maxBytes of [1, 1_000_000, 1_400_000, undefined]) {
        const messages = await queue.pollMany({ count: 100, maxBytes })
        taken.push(messages.map(({ id }) => id))
        await queue.acknowledge(...messages)
      }
      expect(taken).to.deep.equal([['0'], ['1', '2'], ['3', '4'], ['5', '6']])
    })

    it('delivers when the delay is over, never before, and within milliseconds', async () => {
      const { queue } = make()
      let waiting = taken(queue)
      await eventually(async () => {
        const [, listeners] = (await raw().pubsub('NUMSUB', `redelayed:reliable:channel:{${queue.name}}`)) as [
          string,
          number,
        ]
        expect(listeners).to.equal(1)
      })
      const lateness: number[] = []
      for (let round = 0; round < 5; round++) {
        if (round > 0) waiting = taken(queue)
        const before = await redisNow()
        await queue.add('later', { delay: 100 })
        const message = await waiting
        lateness.push((await redisNow()) - message.visibleAt)
        expect(message.visibleAt).to.be.at.least(Math.floor(before) + 100)
      }
      const [best = NaN, second] = lateness.toSorted((a, b) => a - b)
      expect(best).to.be.at.least(0)
      // the second best: what is not listened for is late every time, a busy machine now and then
      expect(second, `late by ${lateness.join()}`).to.be.below(60)
    })

    it('a date is a time by the Redis clock, and one that has passed is now', async () => {
      const { queue } = make()
      const date = new Date((await redisNow()) + 3_600_000)
      await queue.add('later', { date, id: 'later' })
      await queue.add('now', { date: new Date(0) })
      expect((await taken(queue)).payload).to.equal('now')
      expect((await queue.get('later'))?.visibleAt).to.equal(date.getTime())
    })

    it('waits in many calls at once, each message going to one of them', async () => {
      const { queue, client } = make()
      const other = client.getReliableQueue<string>(queue.name, string)
      const waiting = numbers(40).map((_, at) => taken(at % 2 === 0 ? queue : other))
      await queue.addMany(numbers(40).map((payload) => ({ payload })))
      const payloads = (await Promise.all(waiting)).map(({ payload }) => payload)
      expect(payloads.sort()).to.deep.equal(numbers(40).sort())
    })

    it('two clients share new messages', async () => {
      const [one, two] = [make(), undefined]
      const other = makeClient().getReliableQueue<string>(one.name, string)
      void two
      const waiting = [...numbers(10).map(() => taken(one.queue)), ...numbers(10).map(() => taken(other))]
      await one.queue.addMany(numbers(20).map((payload) => ({ payload, delay: 30 })))
      const payloads = (await Promise.all(waiting)).map(({ payload }) => payload)
      expect(payloads.sort()).to.deep.equal(numbers(20).sort())
    })

    it('an end of waiting is `null`, an abort is its reason, and neither takes anything with it', async () => {
      const { queue } = make()
      expect(await queue.poll({ timeout: 20 })).to.equal(null)
      const abort = new AbortController()
      const waiting = queue.poll({ timeout: Infinity, signal: abort.signal })
      abort.abort(new Error('enough'))
      await fails(waiting, Error, /enough/)
      await queue.add('still there')
      expect((await taken(queue)).payload).to.equal('still there')
    })

    it('an abort while something unreadable is put aside ends the wait too', async () => {
      const { client, name, queue } = make()
      const numbersOnly = client.getReliableQueue<number>(name, { codec: codecs.json<number>() })
      const abort = new AbortController()
      client.on('quarantined', () => abort.abort(new Error('enough')))
      await queue.add('{not JSON')
      await fails(numbersOnly.poll({ timeout: Infinity, signal: abort.signal }), Error, /enough/)
    })

    it('acknowledges by itself with `acknowledge: auto`', async () => {
      const { queue } = make()
      await queue.add('once')
      expect((await taken(queue, { acknowledge: 'auto' })).payload).to.equal('once')
      expect(await queue.size()).to.equal(0)
    })
  })

  describe('a redelivered message', () => {
    it('comes back when its visibility ends, and the late acknowledgement resolves with false', async () => {
      const { queue } = make()
      await queue.add('slow')
      const first = await taken(queue, { visibilityTimeout: 50 })
      const second = await taken(queue)
      expect([second.payload, second.attempt]).to.deep.equal(['slow', 2])
      expect(await redisNow()).to.be.at.least(first.visibleUntil)
      expect(await first.acknowledge()).to.equal(false)
      expect(await first.extend()).to.equal(false)
      expect(await first.negativeAcknowledge()).to.equal(false)
      expect(await second.acknowledge()).to.equal(true)
    })

    it('also when no other consumer has asked for it yet', async () => {
      const { queue } = make()
      await queue.add('slow')
      const message = await taken(queue, { visibilityTimeout: 30 })
      await ended(message)
      expect(await message.acknowledge()).to.equal(false)
      expect(await queue.counts()).to.include({ visible: 1, inFlight: 0 })
    })

    it('an extension keeps other consumers from getting it', async () => {
      const { queue } = make()
      await queue.add('slow')
      const message = await taken(queue, { visibilityTimeout: 500 })
      const until = message.visibleUntil
      expect(await message.extend(60_000)).to.equal(true)
      expect(message.visibleUntil).to.be.greaterThan(until + 50_000)
      expect(await queue.poll({ timeout: 600 })).to.equal(null)
      expect(await message.acknowledge()).to.equal(true)
    })

    it('a negative acknowledgement brings it back after its delay, and its history has the reason', async () => {
      const { queue } = make()
      const { id } = await queue.add('fails')
      const first = await taken(queue)
      const before = await redisNow()
      expect(await first.negativeAcknowledge({ delay: 80, error: new TypeError('no such\naddress') })).to.equal(true)
      const { state, visibleAt } = (await queue.get(id)) ?? {}
      expect(state).to.be.oneOf(['delayed', 'visible'])
      expect(visibleAt).to.be.at.least(Math.floor(before) + 80)
      const second = await taken(queue)
      expect(await redisNow()).to.be.at.least(before + 80)
      expect(second.attempt).to.equal(2)
      const [failure] = (await queue.get(id))?.failures ?? []
      expect([failure?.attempt, failure?.reason]).to.deep.equal([1, 'TypeError: no such address'])
    })

    it('a message that reached its delivery limit is a dead letter, with its history', async () => {
      const { queue } = make()
      await queue.add('fails', { id: 'x', deliveryLimit: 2, headers: { a: '1' } })
      for (const reason of ['one', 'two']) await (await taken(queue)).negativeAcknowledge({ error: new Error(reason) })
      expect(await queue.counts()).to.include({ total: 0, dead: 1 })
      const dead = await queue.deadLetters.get('x')
      expect(dead?.payload).to.equal('fails')
      expect(dead?.failures.map(({ reason }) => reason)).to.deep.equal(['Error: one', 'Error: two'])
      expect({ ...dead?.headers }).to.deep.equal({ a: '1' })
      expect(await queue.redrive()).to.equal(1)
      expect((await taken(queue)).attempt).to.equal(1)
      expect(await queue.deadLetters.size()).to.equal(0)
    })

    it('a message delivered too often without an answer is a dead letter too', async () => {
      const { queue } = make()
      await queue.setConfig({ deliveryLimit: 1 })
      await queue.add('kills its consumers')
      await ended(await taken(queue, { visibilityTimeout: 20 }))
      expect(await queue.poll()).to.equal(null)
      expect(await queue.counts()).to.include({ total: 0, dead: 1 })
    })

    it('a rejected message is a dead letter at once, or gone if the queue keeps no dead letters', async () => {
      const { queue } = make()
      await queue.add('bad')
      await (await taken(queue)).negativeAcknowledge({ reject: true })
      expect((await queue.counts()).dead).to.equal(1)
      await queue.setConfig({ deadLetters: false })
      await queue.add('worse')
      await (await taken(queue)).negativeAcknowledge({ reject: true })
      expect(await queue.counts()).to.include({ total: 0, dead: 1 })
    })

    it('a message that no consumer handled in time expires', async () => {
      const { queue } = make()
      await queue.add('stale', { timeToLive: 30 })
      await untilRedisClock((await redisNow()) + 30)
      expect(await queue.poll()).to.equal(null)
      expect(await queue.counts()).to.include({ total: 0, dead: 0 })
    })

    it('a postponed message expires as much later', async () => {
      const { queue } = make()
      await queue.add('a', { id: 'a', delay: 1_000, timeToLive: 500 })
      await queue.reschedule('a', 60_000)
      const { visibleAt = NaN, expiresAt } = (await queue.get('a')) ?? {}
      expect(expiresAt).to.equal(visibleAt + 500)
      await queue.add('b', { id: 'a', delay: 120_000, existing: 'postpone' })
      const later = await queue.get('a')
      expect(later?.visibleAt).to.be.greaterThan(visibleAt + 50_000)
      expect(later?.expiresAt).to.equal((later?.visibleAt ?? NaN) + 500)
    })

    it('dead letters whose ids are in the queue again do not keep the others from being redriven', async () => {
      const { queue } = make()
      for (const id of ['a', 'b']) await queue.add(id, { id })
      for (const message of await queue.pollMany({ count: 2 })) await message.negativeAcknowledge({ reject: true })
      await queue.add('anew', { id: 'a' })
      expect(await queue.redrive(1)).to.equal(1)
      expect((await queue.get('b'))?.payload).to.equal('b')
      expect(await queue.deadLetters.contains('a')).to.equal(true)
    })

    it('thousands that are in the schedule of the dead letters, and no messages, keep nothing from being redriven', async () => {
      const { queue, name } = make()
      await queue.add('a', { id: 'a' })
      await (await queue.poll())?.negativeAcknowledge({ reject: true })
      const strangers = Array.from({ length: 2_500 }, (_, n) => [n, `stranger ${n}`]).flat()
      await raw().zadd(`redelayed:reliable:due-0:{${name}}:dead`, ...strangers)
      expect(await queue.redrive()).to.equal(1)
      expect((await queue.get('a'))?.payload).to.equal('a')
    })

    it('an unreadable message has failed, with an event, and does not stop the others', async () => {
      const { client, name, queue } = make()
      const numbersOnly = client.getReliableQueue<number>(name, { codec: codecs.json<number>() })
      const events: QuarantinedEvent[] = []
      client.on('quarantined', (event) => events.push(event))
      await queue.add('{not JSON', { id: 'x' })
      await queue.add('42')
      expect((await numbersOnly.pollMany({ count: 2 })).map(({ payload }) => payload)).to.deep.equal([42])
      expect(events.map(({ queue, reason, count }) => [queue, reason, count])).to.deep.equal([[name, 'undecodable', 1]])
      expect(events[0]?.error).to.include({ code: 'ERR_DECODE', queue: name })
      const { state, failures } = (await queue.get('x')) ?? {}
      expect(state).to.equal('delayed')
      expect(failures?.map(({ reason }) => reason)).to.deep.equal(['ERR_DECODE: unreadable with the codec json'])
    })

    it('a consumer that can read no message takes none from consumers that can', async () => {
      const { client, name, queue } = make()
      await queue.setConfig({ deadLetters: false })
      const misdeployed = client.getReliableQueue<number>(name, { codec: codecs.json<number>() })
      const events: QuarantinedEvent[] = []
      client.on('quarantined', (event) => events.push(event))
      await queue.addMany(numbers(300).map((n) => ({ payload: `{not JSON ${n}`, id: n })))
      expect(await misdeployed.pollMany({ count: 1_000 })).to.deep.equal([])
      expect(await queue.counts()).to.include({ total: 300, delayed: 300, inFlight: 0 })
      // few scripts, and a few seconds
      expect(events.map(({ count }) => count)).to.deep.equal([300])
      expect(((await queue.get('7'))?.visibleAt ?? NaN) - (await redisNow())).to.be.within(1_000, 5_000)
      await queue.reschedule('7', 0)
      const message = await taken(queue)
      expect([message.payload, message.attempt]).to.deep.equal(['{not JSON 7', 2])
      // as often as it may: then the limit decides, as for all that fails
      await queue.add('{never JSON', { id: 'x', deliveryLimit: 1 })
      expect(await misdeployed.poll()).to.equal(null)
      expect(await queue.contains('x')).to.equal(false)
    })
  })

  describe('receipts', () => {
    it('another client acknowledges, extends and gives back polled messages by them', async () => {
      const { queue, name } = make()
      const { queue: other } = make(makeClient(), name)
      await queue.addMany(['a', 'b:\u00fc\n1', 'c'].map((id) => ({ payload: id, id })))
      const receipts = (await queue.pollMany({ count: 3 })).map(({ receipt }) => receipt)
      const [, token = ''] = /^\d\d+ (\S+)\n/.exec(Buffer.from(receipts[0] ?? '', 'base64url').toString()) ?? []
      expect(Buffer.from(token, 'base64url'), '64 random bits').to.have.length(8)
      for (const receipt of receipts) expect(receipt).to.match(/^[A-Za-z0-9_-]{10,200}$/)
      const [a = '', b = '', c = ''] = receipts
      expect(await other.extend([a, b], 120_000)).to.deep.equal([true, true])
      expect(((await queue.get('a'))?.visibleAt ?? 0) - (await redisNow())).to.be.greaterThan(100_000)
      expect(await other.acknowledge(a, b)).to.deep.equal([true, true])
      expect(await other.negativeAcknowledge([c, a], { error: new Error('busy') })).to.deep.equal([true, false])
      const message = await taken(other)
      expect([message.id, message.attempt]).to.deep.equal(['c', 2])
      expect(await other.acknowledge(c), 'the receipt of the first delivery').to.deep.equal([false])
      expect(await queue.acknowledge(message.receipt)).to.deep.equal([true])
      expect(await queue.size()).to.equal(0)
    })

    it('an invalid receipt is refused, and nothing is sent', async () => {
      const { queue } = make()
      await queue.add('a', { id: 'a' })
      const message = await taken(queue)
      const { receipt } = message
      for (const wrong of ['', 'a', `${receipt}=`, `${receipt} `, receipt.slice(0, 8), 'A'.repeat(2_000)]) {
        expect(await fails(queue.acknowledge(receipt, wrong), InvalidArgumentError)).to.include({ queue: queue.name })
        await fails(queue.negativeAcknowledge([wrong]), InvalidArgumentError)
        await fails(queue.extend([wrong]), InvalidArgumentError)
      }
      expect(await message.acknowledge()).to.equal(true)
    })
  })

  describe('changing', () => {
    it('cancels messages that no consumer has, and resolves with false when it is too late', async () => {
      const { queue } = make()
      await queue.add('a', { id: 'a', delay: 60_000 })
      expect(await queue.cancel('a')).to.equal(true)
      expect(await queue.cancel('a')).to.equal(false)
      await queue.add('b', { id: 'b' })
      const message = await taken(queue)
      expect(await queue.cancel('b')).to.equal(false)
      expect(await queue.remove('b', 'unknown')).to.equal(1)
      expect(await message.acknowledge()).to.equal(false)
    })

    it('an id that is there is kept, replaced or postponed', async () => {
      const { queue } = make()
      const add = async (payload: string, existing?: 'keep' | 'replace' | 'postpone', delay = 0) =>
        (await queue.add(payload, { id: 'x', delay, ...(existing && { existing }) })).outcome
      expect(await add('1', undefined, 60_000)).to.equal('added')
      expect(await add('2')).to.equal('kept')
      expect((await queue.get('x'))?.payload).to.equal('1')
      expect(await add('3', 'postpone', 120_000)).to.equal('postponed')
      expect(await add('4', 'replace')).to.equal('replaced')
      const message = await taken(queue)
      expect(message.payload).to.equal('4')
      expect(await add('5', 'postpone')).to.equal('kept')
      expect(await add('6', 'replace')).to.equal('replaced')
      expect(await message.acknowledge(), 'an answer for what was replaced').to.equal(false)
      expect((await taken(queue)).payload).to.equal('6')
    })

    it('a first call on a client of yours, which repeats by itself, is recognized as the first', async () => {
      const redis = new Redis(redisUrl())
      onCleanup(() => redis.disconnect())
      const { queue } = make(makeClient({ redis }))
      const same = (options: AddOptions) => queue.add('same', { id: 'x', ...options }).then(({ outcome }) => outcome)
      expect(await same({ delay: 60_000 })).to.equal('added')
      expect(await same({})).to.equal('kept')
      const { visibleAt = NaN } = (await queue.get('x')) ?? {}
      expect(await same({ delay: 120_000, existing: 'postpone' })).to.equal('postponed')
      expect((await queue.get('x'))?.visibleAt).to.be.greaterThan(visibleAt + 50_000)
      expect(await same({ existing: 'replace' })).to.equal('replaced')
      expect(await (await taken(queue)).acknowledge()).to.equal(true)
      const once = { deduplicate: { by: 'id', forMs: 60_000 } } as const
      expect(await same(once)).to.equal('added')
      expect(await (await taken(queue)).acknowledge()).to.equal(true)
      expect(await same(once)).to.equal('duplicate')
      expect(await queue.size()).to.equal(0)
    })

    it('a message that such a client has sent twice was added once, with that outcome', async function () {
      requireServerBin(this)
      const server = await startRedis()
      onCleanup(() => server.stop())
      const proxy = await startProxy({ targetPort: server.port })
      onCleanup(() => proxy.stop())
      const redis = new Redis({ port: proxy.port, retryStrategy: () => 10 })
      redis.on('error', () => {})
      onCleanup(() => redis.disconnect())
      const queue = makeClient({ redis }).getReliableQueue<string>('orders', string)
      await queue.add('the script is known now')
      const plain = rawTo(server.port)
      proxy.blackhole('toClient')
      const adding = queue.add('twice')
      await eventually(async () => expect(await plain.hlen('redelayed:reliable:messages:{orders}')).to.equal(2))
      proxy.blackhole(false)
      expect((await adding).outcome).to.equal('added')
      expect(await queue.size()).to.equal(2)
      const calls = /cmdstat_evalsha:calls=(\d+)/.exec(await plain.info('commandstats'))?.[1]
      expect(Number(calls), 'it was sent twice').to.be.at.least(3)
    })

    it('deduplicates by id and by payload, for its time', async () => {
      const { queue } = make()
      const byPayload = { deduplicate: { by: 'payload', forMs: 60_000 } } as const
      expect((await queue.add('same', byPayload)).outcome).to.equal('added')
      expect((await queue.add('same', byPayload)).outcome).to.equal('duplicate')
      const short = { id: 'x', deduplicate: { by: 'id', forMs: 1 } } as const
      expect((await queue.add('a', short)).outcome).to.equal('added')
      await queue.remove('x')
      await eventually(async () => expect((await queue.add('b', short)).outcome).to.equal('added'))
    })

    it('reschedules, changes the priority and the payload', async () => {
      const { queue } = make()
      await queue.add('later', { id: 'x', delay: 3_600_000 })
      const waiting = taken(queue)
      expect(await queue.updatePayload('x', 'sooner')).to.equal(true)
      expect(await queue.reschedule('x', 20, { priority: 9 })).to.equal(true)
      const message = await waiting
      expect([message.payload, message.priority]).to.deep.equal(['sooner', 9])
      expect(await queue.reschedule('x', 0)).to.equal(false)
      expect(await queue.updatePayload('unknown', 'x')).to.equal(false)
    })

    it('reschedules to a moment exactly, and changes a priority alone', async () => {
      const { queue } = make()
      await queue.add('a', { id: 'x', delay: 3_600_000 })
      const date = new Date((await redisNow()) + 7_200_000)
      expect(await queue.reschedule('x', date)).to.equal(true)
      expect(await queue.reschedule('x', undefined, { priority: 9 })).to.equal(true)
      expect(await queue.get('x')).to.include({ visibleAt: date.getTime(), priority: 9 })
      for (const wrong of [new Date(NaN), undefined])
        expect(await fails(queue.reschedule('x', wrong), InvalidArgumentError)).to.match(/delay/)
    })

    it('lists, counts and moves', async () => {
      const { queue, name } = make()
      await queue.addMany([
        { payload: 'a', id: 'a' },
        { payload: 'b', id: 'b', priority: 3 },
        { payload: 'c', id: 'c', delay: 60_000 },
        { payload: 'd', id: 'd', priority: 9 },
      ])
      const held = await taken(queue)
      expect(held.id).to.equal('d')
      const ids = async (state?: 'visible' | 'delayed' | 'inFlight') => {
        const found: string[] = []
        for await (const { id } of queue.listAll({ pageSize: 1, ...(state && { state }) })) found.push(id)
        return found
      }
      expect(await ids()).to.deep.equal(['b', 'a', 'c', 'd'])
      expect([await ids('visible'), await ids('delayed'), await ids('inFlight')]).to.deep.equal([
        ['b', 'a'],
        ['c'],
        ['d'],
      ])
      expect(await queue.counts()).to.include({ total: 4, visible: 2, delayed: 1, inFlight: 1, dead: 0 })
      expect(await queue.countDelayedMessages()).to.equal(1)
      expect(await queue.countUnacknowledgedMessages()).to.equal(1)
      expect([await queue.contains('a'), await queue.contains('unknown')]).to.deep.equal([true, false])
      const states = (await queue.getAll(['c', 'unknown'])).map((info) => info?.state)
      expect(states).to.deep.equal(['delayed', undefined])
      expect(await queue.containsMany(['a', 'b', 'unknown'])).to.equal(2)
      const to = `{${name}}:dead` // any queue of the same slot
      expect(await queue.move({ to, ids: ['a', 'd', 'unknown'] })).to.equal(1)
      expect(
        await queue.move({ to: queue.deadLetters, count: 5 }),
        'the queue itself in the place of its name',
      ).to.equal(1)
      expect((await queue.deadLetters.listAll().next()).value).to.have.property('id')
      expect(await queue.size()).to.equal(2)
      expect(await queue.clear()).to.equal(true)
      expect(await held.acknowledge()).to.equal(false)
    })
  })

  describe('configuration', () => {
    it('holds in all processes', async () => {
      const { queue, name } = make()
      const other = makeClient().getReliableQueue<string>(name, string)
      await queue.setConfig({
        visibilityTimeout: 1_234,
        delay: 60_000,
        maxSize: 2,
        maxMessageBytes: 5,
        deadLetters: false,
      })
      expect(await other.getConfig()).to.deep.equal({
        visibilityTimeout: 1_234,
        delay: 60_000,
        maxSize: 2,
        maxMessageBytes: 5,
        deadLetters: false,
      })
      expect(await other.setConfigIfAbsent({ visibilityTimeout: 1 })).to.equal(false)
      await fails(other.add('too large'), PayloadTooLargeError)
      expect((await other.get((await other.add('later')).id))?.state).to.equal('delayed')
      await other.add('now', { delay: 0 })
      await fails(other.add('full'), QueueFullError)
      const message = await taken(other)
      expect(message.visibleUntil - (await redisNow())).to.be.at.most(1_234)
      await queue.setConfig({ maxSize: null, delay: null })
      expect(await other.getConfig()).to.deep.equal({
        visibilityTimeout: 1_234,
        maxMessageBytes: 5,
        deadLetters: false,
      })
    })

    it('a disabled operation is refused or waits, until it is enabled', async () => {
      const { queue } = make()
      await queue.add('before')
      await queue.disableOperation('poll')
      expect(await queue.poll()).to.equal(null)
      const waiting = taken(queue)
      await queue.disableOperation('add')
      const error = await fails(queue.addMany([{ payload: 'a' }]), AddManyError)
      expect(error.failures[0]?.error).to.be.instanceOf(OperationDisabledError)
      await queue.enableOperation('poll')
      expect((await waiting).payload).to.equal('before')
      await queue.enableOperation('add')
      expect((await queue.add('after')).outcome).to.equal('added')
    })
  })

  describe('lifecycle and bad input', () => {
    it('a shutdown ends waits, and later calls', async () => {
      const { client, queue, name } = make()
      const waits = numbers(3).map(() => queue.poll({ timeout: Infinity }))
      const ends = waits.map((wait) => fails(wait, ShutdownError))
      await client.shutdown()
      await Promise.all(ends)
      const other = makeClient().getReliableQueue<string>(name, string)
      await other.add('for others')
      expect((await taken(other)).attempt).to.equal(1)
      await fails(queue.add('x'), ShutdownError)
    })

    it('rejects bad arguments with what was expected and what came, before anything is sent', async () => {
      const { queue } = make()
      const other = make()
      await other.queue.add('of another queue')
      const foreign = await taken(other.queue)
      const bad: [() => Promise<unknown>, RegExp][] = [
        [() => queue.add('x', { priority: 10 }), /priority: expected a whole number from 0 to 9, got 10/],
        [() => queue.add('x', { priority: 1.5 }), /priority/],
        [() => queue.add('x', { delay: -1 }), /delay/],
        [() => queue.add('x', { delay: 1, date: new Date() }), /delay/],
        [() => queue.add('x', { date: new Date(NaN) }), /date/],
        [() => queue.add('x', { id: '' }), /id/],
        [() => queue.add('x', { id: 'x'.repeat(513) }), /id: .*513 bytes/],
        [() => queue.add('x', { id: '\ud800' }), /id/],
        [() => queue.add('x', { timeToLive: 0 }), /timeToLive/],
        [() => queue.add('x', { deliveryLimit: 0 }), /deliveryLimit/],
        [() => queue.add('x', { headers: { a: 1 as never } }), /headers.a: expected a text, got 1/],
        [() => queue.add('x', { headers: { a: 'x'.repeat(70_000) } }), /headers/],
        [() => queue.add('x', { deduplicate: { by: 'id', forMs: 1 } }), /id/],
        [
          () => queue.add('x', { deduplicate: { by: 'payload', forMs: '366d' } }),
          /deduplicate.forMs: .* from 1 to 31536000000/,
        ],
        [() => queue.add('x', { existing: 'ask' as never }), /existing/],
        [() => queue.add('x', { nonsense: 1 } as never), /options.nonsense/],
        [() => queue.add(null as never), /payload/],
        [() => queue.add('x', { delay: Number.MAX_SAFE_INTEGER }), /2\^53-1/],
        [() => queue.addMany([{ payload: 'x' }, { payload: 'y', priority: -1 }]), /priority/],
        [() => queue.poll({ visibilityTimeout: 0 }), /visibility/],
        [() => queue.poll({ visibilityTimeout: '366d' }), /visibilityTimeout: .* from 1 to 31536000000/],
        [() => queue.extend([], '366d'), /visibilityTimeout: .* to 31536000000/],
        [() => queue.setConfig({ visibilityTimeout: '366d' }), /visibilityTimeout: .* to 31536000000/],
        [() => queue.poll({ timeout: NaN }), /timeout/],
        [() => queue.pollMany({ count: 0 }), /count/],
        [() => queue.pollMany({ count: 1, maxBytes: 0 }), /maxBytes/],
        [() => queue.reschedule('x', 1.5), /delay/],
        [() => queue.acknowledge({} as never), /messages\[0\]/],
        [() => queue.acknowledge(foreign), /messages\[0\]: expected a message .* from this queue, got .*another queue/],
        [() => queue.negativeAcknowledge([foreign]), /messages\[0\].*another queue/],
        [() => queue.extend([foreign]), /messages\[0\].*another queue/],
        [() => queue.setConfig({ deliveryLimit: 0 }), /config.deliveryLimit/],
        [() => queue.disableOperation('eat' as never), /operation/],
        [() => queue.listAll({ pageSize: 0 }).next(), /pageSize/],
        [() => queue.move({ to: queue.name, count: 0 }), /count/],
        [() => queue.move({ to: 7 as never }), /to: expected a reliable queue or its name, got 7/],
      ]
      for (const [call, message] of bad) {
        const error = await fails(call(), InvalidArgumentError, message)
        expect(error.queue, error.message).to.equal(queue.name)
      }
      await fails(foreign.progress(1, { extend: '366d' }), InvalidArgumentError, /extend: .* to 31536000000/)
      expect(await queue.size()).to.equal(0)
      expect(await foreign.acknowledge()).to.equal(true)
    })

    it('takes the messages of any object for the same queue', async () => {
      const { client, name, queue } = make()
      await queue.add('a')
      const same = client.getReliableQueue<string>(`{${name}}`, string)
      expect(await same.acknowledge(await taken(queue))).to.deep.equal([true])
    })
  })
})
