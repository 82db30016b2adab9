/** The completed messages that a reliable queue keeps, and the calls that wait until one has ended. */
import { expect } from 'chai'
import {
  codecs,
  InvalidArgumentError,
  NotCompletedError,
  ShutdownError,
  UnsupportedOperationError,
  type CompletedMessage,
  type ReliableQueue,
  type ReliableQueueConfig,
} from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { eventually } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, redisNow, rejection, track, untilRedisClock } from './fixtures.js'

/** Nothing but a publication wakes a wait of such a client within a test. */
const NO_SWEEP = { sweepInterval: 3_600_000 } as const
const KEPT: ReliableQueueConfig = { keepCompleted: 100 }

async function makeQueue(config: ReliableQueueConfig = KEPT): Promise<ReliableQueue> {
  const name = uniqueName('completed')
  forgetReliable(name)
  const queue = makeClient(NO_SWEEP).getReliableQueue(name)
  if (Object.keys(config).length > 0) await queue.setConfig(config)
  return queue
}

async function polled(queue: ReliableQueue) {
  const message = await queue.poll()
  if (message === null) throw new Error('there is no message')
  return message
}

/** A wait of another client, which has looked and found the message there. */
async function waiting(queue: ReliableQueue, id: string): Promise<{ readonly wait: Promise<unknown> }> {
  const other = makeClient(NO_SWEEP).getReliableQueue(queue.name)
  const wait = track(other.waitUntilFinished(id))
  wait.promise.catch(() => undefined)
  const { ends } = reliableKeys(queue.name)
  await eventually(async () => {
    const [, count] = (await rawClient().call('PUBSUB', 'NUMSUB', ends)) as [string, number]
    expect(count).to.be.at.least(1)
  })
  // it looks when it begins and when it is subscribed: a round trip on its connection comes after both
  await other.size()
  await other.size()
  expect(wait.settled).to.equal(false)
  return { wait: wait.promise }
}

async function all(queue: ReliableQueue, pageSize?: number): Promise<CompletedMessage[]> {
  const found: CompletedMessage[] = []
  for await (const one of queue.listCompleted(pageSize === undefined ? {} : { pageSize })) found.push(one)
  return found
}

async function ended(wait: Promise<unknown>): Promise<Pick<NotCompletedError, 'reason' | 'failure'>> {
  const error: unknown = await rejection(wait)
  if (!(error instanceof NotCompletedError)) throw error
  const { reason, failure } = error
  return { reason, failure }
}

/** A worker of another client, whose results are kept. */
function work(queue: ReliableQueue, handler: (payload: unknown) => unknown) {
  const client = makeClient()
  return client.createWorker(client.getReliableQueue(queue.name), handler, { keepResults: true })
}

describe('completed messages', () => {
  afterEach(cleanUp)

  describe('waitUntilFinished', () => {
    it('resolves with the result of a worker of another client, by a publication', async () => {
      const queue = await makeQueue()
      const { id } = await queue.add({ n: 20 })
      const { wait } = await waiting(queue, id)
      work(queue, (payload) => ({ twice: 2 * (payload as { n: number }).n }))
      expect(await wait).to.deep.equal({ twice: 40 })
    })

    it('resolves at once for a message completed before, also without a result', async () => {
      const queue = await makeQueue()
      for (const [payload, result] of [
        ['a', { b: [1] }],
        ['b', undefined],
        ['c', null],
        ['d', ''],
      ] as const) {
        const { id } = await queue.add(payload)
        expect(await (await polled(queue)).acknowledge({ result })).to.equal(true)
        expect(await queue.waitUntilFinished(id)).to.deep.equal(result ?? undefined)
      }
      const { id } = await queue.add('e')
      await (await polled(queue)).acknowledge()
      expect(await queue.waitUntilFinished(id)).to.equal(undefined)
    })

    for (const [what, end, expected] of [
      [
        'is rejected',
        async (queue: ReliableQueue) =>
          void (await (await polled(queue)).negativeAcknowledge({ reject: true, error: new Error('no such address') })),
        { reason: 'dead', failure: 'Error: no such address' },
      ],
      [
        'failed as often as it may',
        async (queue: ReliableQueue) => {
          await queue.setConfig({ deliveryLimit: 1 })
          await (await polled(queue)).negativeAcknowledge({ error: new Error('again') })
        },
        { reason: 'dead', failure: 'Error: again' },
      ],
      [
        'was delivered too often, as the next poll finds',
        async (queue: ReliableQueue) => {
          await queue.setConfig({ deliveryLimit: 1 })
          const message = await queue.poll({ visibilityTimeout: 1 })
          await untilRedisClock(message!.visibleUntil + 1)
          expect(await queue.poll()).to.equal(null)
        },
        { reason: 'dead', failure: 'its visibility ended' },
      ],
      [
        'was removed',
        async (queue: ReliableQueue, id: string) => expect(await queue.cancel(id)).to.equal(true),
        { reason: 'gone', failure: '' },
      ],
      [
        'was moved',
        async (queue: ReliableQueue, id: string) =>
          expect(await queue.move({ to: queue.deadLetters, ids: [id] })).to.equal(1),
        { reason: 'dead', failure: '' },
      ],
    ] as const) {
      it(`rejects by a publication when the message ${what}`, async () => {
        const queue = await makeQueue()
        const { id } = await queue.add('x')
        const { wait } = await waiting(queue, id)
        await end(queue, id)
        expect(await ended(wait)).to.deep.equal(expected)
      })
    }

    it('rejects by a publication when the message has expired', async () => {
      const queue = await makeQueue()
      const { id } = await queue.add('x', { timeToLive: 300 })
      const { wait } = await waiting(queue, id)
      await untilRedisClock((await redisNow()) + 301)
      expect(await queue.poll()).to.equal(null)
      expect((await ended(wait)).reason).to.equal('gone')
    })

    for (const [what, end, reason] of [
      ['removed', (queue: ReliableQueue, id: string) => queue.cancel(id), 'gone'],
      ['moved', (queue: ReliableQueue, id: string) => queue.move({ to: `{${queue.name}}:moved`, ids: [id] }), 'gone'],
      [
        'a dead letter',
        async (queue: ReliableQueue) => (await polled(queue)).negativeAcknowledge({ reject: true }),
        'dead',
      ],
    ] as const) {
      it(`does not take what an earlier message of the id came to for the end of one that is ${what}`, async () => {
        const queue = await makeQueue()
        await queue.add('first', { id: 'a' })
        await (await polled(queue)).acknowledge({ result: 'of the first' })
        await queue.add('second', { id: 'a' })
        const { wait } = await waiting(queue, 'a')
        await end(queue, 'a')
        expect((await ended(wait)).reason).to.equal(reason)
        expect((await ended(queue.waitUntilFinished('a'))).reason).to.equal(reason)
        expect(await queue.getCompleted('a')).to.equal(null)
      })
    }

    it('reads the state once, however short its timeout is', async () => {
      const queue = await makeQueue()
      const { id } = await queue.add('x')
      expect((await ended(queue.waitUntilFinished(id, { timeout: 0 }))).reason).to.equal('timeout')
      await (await polled(queue)).acknowledge({ result: 5 })
      expect(await queue.waitUntilFinished(id, { timeout: 0 })).to.equal(5)
    })

    it('knows ids with line feeds, backslashes and signs of all planes', async () => {
      const queue = await makeQueue()
      for (const id of ['a\nb', 'a\\nb', '\\', '\n', '😀é']) {
        await queue.add('x', { id })
        const { wait } = await waiting(queue, id)
        await (await polled(queue)).acknowledge({ result: id })
        expect(await wait).to.equal(id)
      }
    })

    it('rejects for an unknown id', async () => {
      const queue = await makeQueue()
      expect(await ended(queue.waitUntilFinished('no such id'))).to.deep.equal({ reason: 'gone', failure: '' })
    })

    it('rejects when the time is over, with the reason of the signal, and at shutdown', async () => {
      const queue = await makeQueue()
      const { id } = await queue.add('x', { delay: '1h' })
      const error = await rejection(queue.waitUntilFinished(id, { timeout: 100 }))
      expect(error).to.include({ code: 'ERR_NOT_COMPLETED', reason: 'timeout', queue: queue.name })
      const reason = new Error('enough')
      const abort = new AbortController()
      const aborted = rejection(queue.waitUntilFinished(id, { signal: abort.signal }))
      abort.abort(reason)
      expect(await aborted).to.equal(reason)
      expect(await rejection(queue.waitUntilFinished(id, { signal: AbortSignal.abort(reason) }))).to.equal(reason)

      const client = makeClient()
      const ending = rejection(client.getReliableQueue(queue.name).waitUntilFinished(id))
      await client.ping()
      await client.shutdown()
      expect(await ending).to.be.instanceOf(ShutdownError)
    })

    it('names the setting if the queue keeps no completed messages', async () => {
      const queue = await makeQueue({})
      const { id } = await queue.add('x')
      const error = await rejection(queue.waitUntilFinished(id))
      expect(error).to.be.instanceOf(UnsupportedOperationError)
      expect(error.message).to.contain('keepCompleted')
    })

    it('refuses wrong arguments', async () => {
      const queue = await makeQueue()
      for (const call of [
        queue.waitUntilFinished(''),
        queue.waitUntilFinished('a', { timeout: -1 }),
        queue.waitUntilFinished('a', { until: 5 } as object),
        queue.getCompleted(5 as unknown as string),
        queue.setConfig({ keepCompleted: 0 }),
        queue.setConfig({ keepCompleted: 1_000_001 }),
        queue.setConfig({ keepCompletedFor: 0 }),
        all(queue, 0),
      ]) {
        expect(await rejection(call)).to.be.instanceOf(InvalidArgumentError)
      }
    })

    it('finds with the next sweep an end that was published while no connection listened', async () => {
      const queue = await makeQueue()
      const { id } = await queue.add('x')
      const client = makeClient({ sweepInterval: 100 })
      const errors: Error[] = []
      client.on('error', (error) => errors.push(error))
      const wait = client.getReliableQueue(queue.name).waitUntilFinished(id)
      await client.ping()
      // its script writes what the message came to, but publishes on a channel that no client knows
      const keys = reliableKeys(queue.name)
      const at = Math.floor(await redisNow())
      await rawClient()
        .multi()
        .zadd(keys.completedAt, at, id)
        .hset(keys.completed, id, `${at},1,\n`)
        .hdel(keys.messages, id)
        .exec()
      expect(await wait).to.equal(undefined)
      expect(errors).to.deep.equal([])
    })

    it('continues when its connections broke', async () => {
      const queue = await makeQueue()
      const { id } = await queue.add('x')
      const client = makeClient({ sweepInterval: 200, ioredis: { connectionName: id } })
      const wait = client.getReliableQueue(queue.name).waitUntilFinished(id)
      await client.ping()
      const list = String(await rawClient().call('CLIENT', 'LIST'))
      const own = list
        .split('\n')
        .filter((line) => line.includes(` name=${id}`))
        .map((line) => /\bid=(\d+)/.exec(line)?.[1] ?? '')
      expect(own.length).to.be.at.least(1)
      for (const each of own) await rawClient().call('CLIENT', 'KILL', 'ID', each)
      await (await polled(queue)).acknowledge({ result: 7 })
      expect(await wait).to.equal(7)
    })

    it('wakes many waits, of one message and of many', async () => {
      const queue = await makeQueue({ keepCompleted: 1_000 })
      const added = await queue.addMany(Array.from({ length: 300 }, (_, n) => ({ payload: n })))
      const other = makeClient(NO_SWEEP).getReliableQueue(queue.name)
      const waits = [...added, ...added].map(({ id }) => other.waitUntilFinished<number>(id))
      work(queue, (n) => Number(n) + 1_000)
      const results = await Promise.all(waits)
      expect(results.slice(0, 300)).to.deep.equal(added.map((_, n) => n + 1_000))
      expect(results.slice(300)).to.deep.equal(results.slice(0, 300))
    })
  })

  describe('completed messages', () => {
    it('has the time, the attempts and the result, and is read one by one and as a list, the last ones first', async () => {
      const queue = await makeQueue()
      const before = Math.floor(await redisNow())
      await queue.add('a', { id: 'a' })
      await (await polled(queue)).negativeAcknowledge()
      await (await polled(queue)).acknowledge({ result: [1, 2] })
      await untilRedisClock((await redisNow()) + 2)
      await queue.add('b', { id: 'b' })
      await queue.acknowledge(await polled(queue))
      const a = await queue.getCompleted<number[]>('a')
      expect(a).to.deep.include({ id: 'a', attempts: 2, result: [1, 2] })
      expect(a!.completedAt).to.be.within(before, await redisNow())
      expect((await all(queue, 1)).map(({ id, attempts }) => [id, attempts])).to.deep.equal([
        ['b', 1],
        ['a', 2],
      ])
      expect(await queue.getCompleted('c')).to.equal(null)
      // it stays when a message of the same id is added anew, for which a wait begins
      await queue.add('a again', { id: 'a' })
      expect(await queue.getCompleted('a')).to.deep.equal(a)
      expect((await ended(queue.waitUntilFinished('a', { timeout: 50 }))).reason).to.equal('timeout')
    })

    it('is bounded by number and by age', async () => {
      const queue = await makeQueue({ keepCompleted: 3 })
      const complete = async (id: string): Promise<void> => {
        await queue.add(id, { id })
        await (await polled(queue)).acknowledge()
        await untilRedisClock((await redisNow()) + 2)
      }
      for (const id of ['1', '2', '3', '4', '5']) await complete(id)
      expect((await all(queue)).map(({ id }) => id)).to.deep.equal(['5', '4', '3'])
      await queue.setConfig({ keepCompletedFor: 1, keepCompleted: 10 })
      expect(await all(queue)).to.deep.equal([])
      expect(await queue.getCompleted('5')).to.equal(null)
      await complete('6')
      expect(await rawClient().hkeys(reliableKeys(queue.name).completed)).to.deep.equal(['6'])
      await queue.clear()
      expect(await all(queue)).to.deep.equal([])
    })

    it('goes when the queue shall keep none any more: a message of the id that ends then forgets nothing', async () => {
      const queue = await makeQueue()
      const { completed, completedAt } = reliableKeys(queue.name)
      await queue.add('first', { id: 'a' })
      await (await polled(queue)).acknowledge({ result: 'of the first' })
      await queue.setConfig({ visibilityTimeout: 1_000, keepCompletedFor: null })
      expect((await queue.getCompleted('a'))?.result).to.equal('of the first')
      await queue.setConfig({ keepCompleted: null })
      expect(await rawClient().exists(completed, completedAt)).to.equal(0)
      await queue.add('second', { id: 'a' })
      await queue.cancel('a')
      await queue.setConfig(KEPT)
      expect((await ended(queue.waitUntilFinished('a'))).reason).to.equal('gone')
    })

    it('is nothing of an earlier message where that of a later one of its id cannot be written', async () => {
      const queue = await makeQueue()
      const { completedAt } = reliableKeys(queue.name)
      await queue.add('first', { id: 'a' })
      await (await polled(queue)).acknowledge({ result: 'of the first' })
      await rawClient().set(completedAt, 'of a stranger')
      await queue.add('second', { id: 'a' })
      await (await polled(queue)).acknowledge({ result: 'of the second' })
      expect(await queue.getCompleted('a')).to.equal(null)
      expect((await ended(queue.waitUntilFinished('a'))).reason).to.equal('gone')
    })

    it('is written in parts where results are large', async () => {
      const queue = await makeQueue()
      await queue.addMany(Array.from({ length: 5 }, (_, n) => ({ payload: n, id: `${n}` })))
      const messages = await queue.pollMany({ count: 5 })
      const before = await rawClient().info('commandstats')
      const answers = await Promise.all(messages.map((message) => message.acknowledge({ result: 'x'.repeat(600_000) })))
      // the first may be sent with its text
      const scripts = (stats: string): number =>
        [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0)
      expect(scripts(await rawClient().info('commandstats')) - scripts(before)).to.be.at.least(5)
      expect(answers).to.deep.equal([true, true, true, true, true])
      expect((await all(queue)).map(({ result }) => (result as string).length)).to.deep.equal(Array(5).fill(600_000))
    })

    it('lacks a result that the codec cannot write, and the worker reports an error', async () => {
      const name = uniqueName('completed')
      forgetReliable(name)
      const client = makeClient()
      const queue = client.getReliableQueue<string>(name, { codec: codecs.string() })
      await queue.setConfig(KEPT)
      const errors: Error[] = []
      const worker = client.createWorker(queue, () => ({ no: 'text' }), { keepResults: true })
      worker.on('error', (error) => errors.push(error))
      const { id } = await queue.add('x')
      expect(await queue.waitUntilFinished(id)).to.equal(undefined)
      expect(errors.map((error) => (error as { code?: string }).code)).to.deep.equal(['ERR_ENCODE'])
      // a consumer of its own has not acknowledged then
      await worker.close()
      await queue.add('y')
      const message = await queue.poll()
      expect(await rejection(message!.acknowledge({ result: 5 }))).to.have.property('code', 'ERR_ENCODE')
      expect(await message!.acknowledge({ result: 'done' })).to.equal(true)
    })

    it('is nothing without keepResults, and no acknowledgement fails where its keys are of another type', async () => {
      const queue = await makeQueue()
      const client = makeClient()
      client.createWorker(client.getReliableQueue(queue.name), () => 5)
      const { id } = await queue.add('x')
      expect(await queue.waitUntilFinished(id)).to.equal(undefined)

      for (const part of ['completed', 'completedAt'] as const) {
        const other = await makeQueue()
        await rawClient().set(reliableKeys(other.name)[part], 'of a stranger')
        await other.add('x')
        expect(await (await polled(other)).acknowledge({ result: 1 })).to.equal(true)
        expect(await other.size()).to.equal(0)
      }
    })

    it('are listed where their ids are not UTF-8', async () => {
      const queue = await makeQueue()
      const { completed, completedAt } = reliableKeys(queue.name)
      const now = Math.floor(await redisNow())
      for (const byte of [0xfe, 0xff]) {
        await rawClient().zadd(completedAt, now, Buffer.from([byte]))
        await rawClient().hset(completed, Buffer.from([byte]), `${now},1,\n`)
      }
      const kept = { id: '\ufffd', completedAt: now, attempts: 1, result: undefined }
      expect(await all(queue)).to.deep.equal([kept, kept])
    })

    it('leave out records of other programs', async () => {
      const queue = await makeQueue()
      const { completed } = reliableKeys(queue.name)
      for (const text of ['', 'x', '1,2', '5,1,1', '-5,1,\n', '1'.repeat(1_000_000), '5,1,2\nx']) {
        await rawClient().hset(completed, 'x', text)
        expect(await queue.getCompleted('x'), text.slice(0, 20)).to.equal(null)
      }
    })
  })

  describe('of a sharded queue', () => {
    it('are waited for, read and listed', async () => {
      const name = uniqueName('completed')
      const client = makeClient()
      const queue = client.getShardedReliableQueue<number>(name, { shards: 3 })
      for (const shard of queue.shards) forgetReliable(shard.name)
      await queue.setConfig(KEPT)
      client.createWorker(queue, (n) => -n, { keepResults: true })
      const added = await queue.addMany(Array.from({ length: 20 }, (_, n) => ({ payload: n + 1 })))
      const results = await Promise.all(added.map(({ id }) => queue.waitUntilFinished<number>(id)))
      expect(results).to.deep.equal(added.map((_, n) => -n - 1))
      expect((await queue.getCompleted(added[4]!.id))?.result).to.equal(-5)
      const listed = []
      for await (const { id } of queue.listCompleted()) listed.push(id)
      expect(listed.sort()).to.deep.equal(added.map(({ id }) => id).sort())
      expect((await ended(queue.waitUntilFinished('none'))).reason).to.equal('gone')
      const { id } = await queue.add(1, { delay: '1h' })
      expect((await ended(queue.waitUntilFinished(id, { timeout: 50 }))).reason).to.equal('timeout')
    })

    it('are those of the message that is there, and the last ones, while the number of shards changes', async () => {
      const name = uniqueName('completed')
      const client = makeClient(NO_SWEEP)
      const queue = client.getShardedReliableQueue(name, { shards: 8, formerShards: 4 })
      for (const shard of queue.shards) forgetReliable(shard.name)
      await queue.setConfig(KEPT)
      const id = Array.from({ length: 100 }, (_, n) => `id-${n}`).find((each) => queue.shardsOf(each).length === 2)!
      const [place, former] = queue.shardsOf(id)
      await place.add('first', { id })
      await (await polled(place)).acknowledge({ result: 'of the first' })
      await former!.add('second', { id })
      const wait = track(queue.waitUntilFinished(id))
      await eventually(async () => {
        const { ends } = reliableKeys(former!.name)
        expect(((await rawClient().call('PUBSUB', 'NUMSUB', ends)) as [string, number])[1]).to.equal(1)
      })
      expect(wait.settled).to.equal(false)
      await untilRedisClock((await redisNow()) + 2)
      await (await polled(former!)).acknowledge({ result: 'of the second' })
      expect(await wait.promise).to.equal('of the second')
      expect((await queue.getCompleted(id))?.result).to.equal('of the second')
    })

    it('are waited for in the shards of before, where a new one lacks the configuration', async () => {
      const name = uniqueName('completed')
      const client = makeClient(NO_SWEEP)
      const queue = client.getShardedReliableQueue(name, { shards: 8 })
      for (const shard of queue.shards) forgetReliable(shard.name)
      const id = Array.from({ length: 100 }, (_, n) => `id-${n}`).find((each) => queue.shardsOf(each).length === 2)!
      const former = queue.shardsOf(id)[1]!
      await former.setConfig(KEPT)
      await former.add('x', { id })
      await (await polled(former)).acknowledge({ result: 5 })
      expect(await queue.waitUntilFinished(id)).to.equal(5)
    })
  })
})
