import { expect } from 'chai'
import { connect, createServer, type AddressInfo } from 'node:net'
import {
  ConnectionError,
  InvalidArgumentError,
  NotCompletedError,
  codecs,
  retryIn,
  type DelayedQueueOptions,
  type ReliableMessage,
  type ReliableQueueConfig,
} from '../../src/index.js'
import { TestKitError, createTestKit, type TestKit, type TestKitOptions } from '../../src/testing/index.js'
import { isFree } from '../../scripts/redis.js'
import { requireServerBin, startRedis } from '../support/redis-server.js'
import { rawClient, redisUrl } from '../support/redis.js'
import { cleanUp, onCleanup } from './fixtures.js'

const string = { codec: codecs.string() }
const START = new Date('2030-01-01T00:00:00Z')

async function open(options: TestKitOptions = {}): Promise<TestKit> {
  const kit = await createTestKit({ url: redisUrl(), startAt: START, ...options })
  onCleanup(() => kit.close())
  return kit
}

describe('test kit', () => {
  afterEach(cleanUp)

  it('a delayed queue follows the clock that the test moves, in order', async () => {
    const kit = await open()
    const queue = kit.client.getBlockingQueue<string>(kit.uniqueName(), string)
    const delayed = kit.client.getDelayedQueue(queue)
    await delayed.offer('hour', 3_600_000)
    await delayed.offer('minute', 60_000)
    await delayed.offer('day', 86_400_000)
    await kit.advance('59s')
    expect(await queue.readAll()).to.deep.equal([])
    await kit.advance(1_000)
    expect(await queue.readAll()).to.deep.equal(['minute'])
    await kit.advance('2h')
    expect(await queue.readAll()).to.deep.equal(['minute', 'hour'])
    expect(kit.now).to.deep.equal(new Date(START.getTime() + 60_000 + 7_200_000))
    await kit.runAll()
    expect(await queue.readAll()).to.deep.equal(['minute', 'hour', 'day'])
    expect(kit.now).to.deep.equal(new Date(START.getTime() + 86_400_000))
  })

  it('a take that waits gets its message when its time has come', async () => {
    const kit = await open()
    const queue = kit.client.getBlockingQueue<string>(kit.uniqueName(), string)
    const taken = queue.take()
    await kit.client.getDelayedQueue(queue).offer('x', 1_800_000)
    await kit.advance('30m')
    expect(await taken).to.equal('x')
  })

  it('so does a poll that waits', async () => {
    const kit = await open()
    const queue = kit.client.getReliableQueue<string>(kit.uniqueName(), string)
    const polled = queue.poll({ timeout: Infinity })
    await queue.add('x', { delay: 1_800_000 })
    await kit.advance('30m')
    expect((await polled)?.payload).to.equal('x')
  })

  it('a sharded delayed queue follows the clock too, and leaves nothing behind', async () => {
    const kit = await open()
    const name = kit.uniqueName('sharded')
    const queue = kit.client.getShardedDelayedQueue<string>(name, { ...string, shards: 3 })
    await queue.offerAll(['a', 'b', 'c'].map((value) => ({ value, delay: 1_800_000 })))
    await kit.advance('30m')
    expect(await queue.readySize()).to.equal(3)
    await queue.offer('later', 60_000)
    await kit.close()
    expect(await rawClient().keys(`*${name}*`)).to.deep.equal([])
  })

  it('does not wait for a delayed queue that its client does not deliver', async () => {
    const kit = await open({ timeout: 2_000 })
    const get = (options?: DelayedQueueOptions) =>
      kit.client.getDelayedQueue(kit.client.getBlockingQueue<string>(kit.uniqueName(), string), options)
    const others = get({ deliver: false })
    const shards = kit.client.getShardedDelayedQueue<string>(kit.uniqueName(), { ...string, shards: 2, deliver: false })
    const given = get()
    for (const queue of [others, shards, given]) await queue.offer('x', 60_000)
    await given.destroy()
    await kit.advance('1m')
    expect(await Promise.all([others.size(), shards.size()])).to.deep.equal([1, 1])
  })

  it('a worker has done all that is due when the clock was moved, retries too', async () => {
    const kit = await open()
    const queue = kit.client.getReliableQueue<string>(kit.uniqueName(), string)
    const seen: string[] = []
    kit.client.createWorker(
      queue,
      (payload, { message }) => {
        seen.push(`${payload} ${message.attempt} ${(kit.now.getTime() - START.getTime()) / 1_000}`)
        if (payload === 'held' && seen.length < 3) return retryIn(5_000)
        if (payload === 'bad') throw new Error('no')
        return undefined
      },
      { backoff: ['15s', '3m'], concurrency: 5 },
    )
    await queue.add('bad', { id: 'bad', deliveryLimit: 3 })
    await queue.add('held', { delay: 1_000 })
    await kit.advance('10m')
    expect(seen).to.deep.equal(['bad 1 0', 'held 1 1', 'held 1 6', 'bad 2 15', 'bad 3 195'])
    await kit.until(queue, 'bad', 'dead')
    await kit.until(queue, 'bad', 'gone')
  })

  describe('limits, pauses, batches and waits', () => {
    const make = async () => {
      const kit = await open()
      const queue = kit.client.getReliableQueue<string>(kit.uniqueName(), string)
      const seconds = (): number => Math.floor((kit.now.getTime() - START.getTime()) / 1_000)
      const seen: string[] = []
      const work = (concurrency = 1) =>
        kit.client.createWorker(
          queue,
          (payload) => {
            seen.push(`${payload} ${seconds()}`)
            return payload.toUpperCase()
          },
          { concurrency, keepResults: true },
        )
      return { kit, queue, seen, work }
    }
    const items = (...payloads: string[]) => payloads.map((payload) => ({ payload }))

    it('a rate admits messages by the virtual clock, and advance waits for no others', async () => {
      const { kit, queue, seen, work } = await make()
      await queue.setConfig({ rateLimit: { max: 2, perMs: '1m' } })
      work()
      await queue.addMany(items('a', 'b', 'c', 'd', 'e'))
      await kit.settle()
      expect(seen).to.deep.equal(['a 0', 'b 0'])
      await kit.advance('59s')
      expect(seen).to.have.length(2)
      await kit.runAll()
      expect(seen).to.deep.equal(['a 0', 'b 0', 'c 60', 'd 60'])
      await kit.advance('1h')
      expect(seen.at(-1)).to.equal('e 120')
    })

    it('a group has its rate by the virtual clock, and its concurrency', async () => {
      const { kit, queue, seen, work } = await make()
      await queue.setConfig({ groupRateLimit: { max: 1, perMs: '1m' }, groupConcurrency: 1, concurrency: 2 })
      work(5)
      await queue.addMany(['a1', 'a2', 'a3', 'b1'].map((payload) => ({ payload, group: payload.slice(0, 1) })))
      await kit.settle()
      expect(seen).to.have.members(['a1 0', 'b1 0'])
      await kit.advance('61s')
      expect(seen.slice(2)).to.deep.equal(['a2 60'])
      await kit.advance('10m')
      expect(seen.slice(3)).to.deep.equal(['a3 120'])
    })

    it('advance does not wait for paused messages', async () => {
      const { kit, queue, seen, work } = await make()
      await queue.disableOperation('poll')
      await queue.pauseGroup('tenant')
      work()
      await queue.add('plain')
      await queue.add('grouped', { group: 'tenant', delay: '1m' })
      await kit.advance('10m')
      expect(seen).to.deep.equal([])
      await queue.enableOperation('poll')
      await kit.settle()
      expect(seen).to.deep.equal(['plain 600'])
      await queue.resumeGroup('tenant')
      await kit.advance('5s')
      expect(seen).to.deep.equal(['plain 600', 'grouped 600'])
    })

    it('advance does not wait for a paused task', async () => {
      const { kit, queue, seen, work } = await make()
      await queue.pauseTask('report')
      work()
      await queue.addTask('report', 'first')
      await queue.addTask('report', 'second', { delay: '1m', group: 'tenant' })
      await queue.addTask('welcome', 'other', { delay: '2m' })
      await kit.advance('10m')
      expect(seen).to.deep.equal(['other 120'])
      expect(await queue.totals()).to.deep.include({ heldBack: { byPause: 2, byLimit: 0 }, tasks: { paused: 1 } })
      await queue.resumeTask('report')
      await kit.settle()
      expect(seen.slice(1)).to.have.members(['first 600', 'second 600'])
    })

    it('a batch ends when its last message was handled at its virtual time', async () => {
      const { kit, queue, seen, work } = await make()
      work()
      const batch = queue.batch('b')
      await queue.add('first', { delay: '10m', batch: batch.name })
      await queue.add('second', { delay: '20m', batch: batch.name })
      await batch.close({ last: { payload: 'last' } })
      const finished = batch.waitUntilFinished()
      await kit.advance('15m')
      expect(await batch.counts()).to.include({ state: 'closed', pending: 1, completed: 1 })
      await kit.advance('5m')
      expect(seen).to.deep.equal(['first 600', 'second 1200', 'last 1200'])
      expect(await finished).to.include({ state: 'finished', completed: 2, finishedAt: START.getTime() + 1_200_000 })
    })

    it('a wait for a message has its result, which is kept by the virtual clock', async () => {
      const { kit, queue, work } = await make()
      await queue.setConfig({ keepCompleted: 10, keepCompletedFor: '1h' })
      work()
      const { id } = await queue.add('x', { delay: '30m' })
      const result = queue.waitUntilFinished(id)
      await kit.advance('30m')
      expect(await result).to.equal('X')
      await kit.advance('59m')
      expect(await queue.waitUntilFinished(id)).to.equal('X')
      await kit.advance('2m')
      const gone: unknown = await queue.waitUntilFinished(id).catch((error: unknown) => error)
      expect(gone).to.be.instanceOf(NotCompletedError).with.property('reason', 'gone')
    })

    describe('in a sharded queue', () => {
      /** Its messages by shard and group, each with the minute of its handler, and the most handlers at once. */
      const shardedWork = async (config: ReliableQueueConfig) => {
        const kit = await open()
        const queue = kit.client.getShardedReliableQueue<string>(kit.uniqueName(), { ...string, shards: 3 })
        await queue.setConfig(config)
        const minutes = new Map<string, number[]>()
        const [running, most] = [new Map<string, number>(), new Map<string, number>()]
        const handle = async (_: string, { message }: { readonly message: ReliableMessage<string> }): Promise<void> => {
          const [shard] = queue.shardsOf(message.id)
          const lane = `${shard?.name} ${message.group}`
          const now = (running.get(lane) ?? 0) + 1
          running.set(lane, now)
          most.set(lane, Math.max(most.get(lane) ?? 0, now))
          minutes.set(lane, [...(minutes.get(lane) ?? []), Math.floor((kit.now.getTime() - START.getTime()) / 60_000)])
          await new Promise((resolve) => setImmediate(resolve))
          running.set(lane, now - 1)
        }
        kit.client.createWorker(queue, handle, { concurrency: 12 })
        return { kit, queue, minutes, most }
      }
      const inMinutes = (count: number, each: number) => Array.from({ length: count }, (_, n) => Math.floor(n / each))

      it('each shard has its rate and its concurrency', async () => {
        const { kit, queue, minutes, most } = await shardedWork({ rateLimit: { max: 2, perMs: '1m' }, concurrency: 1 })
        await queue.addMany(Array.from({ length: 30 }, (_, n) => ({ id: `${n}`, payload: 'x' })))
        await kit.settle()
        expect([...minutes.values()]).to.deep.equal([inMinutes(2, 2), inMinutes(2, 2), inMinutes(2, 2)])
        await kit.advance('59s')
        expect(await queue.size()).to.equal(24)
        await kit.runAll()
        expect(await queue.size()).to.be.within(18, 21) // one shard has fewer than four
        await kit.advance('1h')
        expect(await queue.size()).to.equal(0)
        for (const times of minutes.values()) expect(times).to.deep.equal(inMinutes(times.length, 2))
        expect([...most.values()]).to.deep.equal([1, 1, 1])
      })

      it('each group has its rate and its concurrency in each shard', async () => {
        const limits = { groupRateLimit: { max: 2, perMs: 59_000 }, groupConcurrency: 1 }
        const { kit, queue, minutes, most } = await shardedWork(limits)
        const messages = Array.from({ length: 30 }, (_, n) => ({
          id: `${n}`,
          payload: 'x',
          group: n % 3 > 0 ? 'a' : 'b',
        }))
        await queue.addMany(messages)
        await kit.advance('1m')
        for (const times of minutes.values()) expect(times.length).to.be.within(1, 4)
        await kit.advance('1h')
        expect(await queue.size()).to.equal(0)
        const lanes = messages.map(({ id, group }) => `${queue.shardsOf(id)[0]?.name} ${group}`)
        expect(minutes).to.have.all.keys([...new Set(lanes)])
        for (const times of minutes.values())
          for (const [n, at] of times.entries()) expect(at).to.equal(Math.floor(((n >> 1) * 59_001) / 60_000))
        expect(new Set(most.values())).to.deep.equal(new Set([1]))
      })
    })

    describe('dead letters that are too old are dropped at their moment', () => {
      const failing = { deliveryLimit: 1 }
      const fail = (): never => {
        throw new Error('no')
      }

      it('before anything that is due later', async () => {
        const { kit, queue } = await make()
        await queue.setConfig({ keepDeadLettersFor: '30d' })
        const sizes: number[] = []
        kit.client.createWorker(queue, async (payload) => {
          if (payload === 'bad') fail()
          sizes.push(await queue.deadLetters.size())
        })
        await queue.add('bad', failing)
        await queue.add('bad', { ...failing, delay: '1d' })
        for (const at of [0, 2]) await queue.add('look', { delay: 30 * 86_400_000 + at })
        await kit.advance('30d')
        expect(await queue.deadLetters.size()).to.equal(2)
        await kit.advance(2)
        expect(sizes).to.deep.equal([2, 1])
        await kit.advance('1d')
        expect(await queue.deadLetters.size()).to.equal(0)
      })

      it('more of them than one script drops, with all polls paused, and of the shards of a sharded queue', async () => {
        const kit = await open()
        const queue = kit.client.getShardedReliableQueue<string>(kit.uniqueName(), { ...string, shards: 2 })
        await queue.setConfig({ keepDeadLettersFor: '1h' })
        kit.client.createWorker(queue, fail, { concurrency: 50 })
        await queue.addMany(Array.from({ length: 500 }, () => ({ payload: 'x', ...failing })))
        await kit.settle()
        expect(await queue.deadLetters.size()).to.equal(500)
        await queue.disableOperation('poll')
        await kit.advance('1h')
        expect(await queue.deadLetters.size()).to.equal(500)
        await kit.advance('1m')
        expect(await queue.deadLetters.size()).to.equal(0)
      })

      it('and stay where the queue has no worker that runs', async () => {
        const { kit, queue } = await make()
        await queue.setConfig({ keepDeadLettersFor: '1h' })
        const worker = kit.client.createWorker(queue, fail)
        await queue.add('x', failing)
        await kit.settle()
        await worker.close()
        await kit.advance('2h')
        expect(await queue.deadLetters.size()).to.equal(1)
        expect(await queue.poll()).to.equal(null)
        expect(await queue.deadLetters.size()).to.equal(0)
      })
    })

    it('a finished batch is forgotten when another one finishes more than a week later', async () => {
      const { kit, queue, work } = await make()
      work()
      const finish = async (name: string): Promise<void> => {
        await queue.add('x', { batch: name })
        await queue.batch(name).close()
        await kit.settle()
      }
      await finish('first')
      await kit.advance('7d')
      await finish('second')
      expect(await queue.batch('first').counts()).to.include({ state: 'finished', finishedAt: START.getTime() })
      await kit.advance(1)
      await finish('third')
      expect(await queue.batch('first').counts()).to.equal(null)
      expect(await queue.batch('second').counts()).to.include({ state: 'finished' })
    })
  })

  it('a visibility ends by the virtual clock', async () => {
    const kit = await open()
    const queue = kit.client.getReliableQueue<string>(kit.uniqueName(), string)
    await queue.add('x', { id: 'x' })
    const first = await queue.poll({ visibilityTimeout: 30_000 })
    await kit.until(queue, 'x', 'inFlight')
    await kit.advance('29s')
    expect(await queue.poll()).to.equal(null)
    await kit.advance('1s')
    expect((await queue.poll())?.attempt).to.equal(2)
    expect(await first?.acknowledge()).to.equal(false)
  })

  it('Redis goes away and comes back', async () => {
    const kit = await open({ connectTimeout: 200, commandTimeout: 200 })
    kit.client.on('error', () => undefined)
    const queue = kit.client.getReliableQueue<string>(kit.uniqueName(), string)
    const seen: string[] = []
    kit.client.createWorker(queue, (payload) => void seen.push(payload))
    await queue.add('before')
    await kit.settle()
    expect(seen).to.deep.equal(['before'])

    kit.redis.stop()
    const refused = await queue.add('meanwhile').catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(ConnectionError)
    kit.redis.start()
    await kit.eventually(() =>
      queue.add('after').then(
        () => true,
        () => false,
      ),
    )
    await kit.eventually(() => seen.includes('after'))

    kit.redis.freeze()
    expect(await queue.size().catch((error: unknown) => error)).to.be.instanceOf(ConnectionError)
    kit.redis.thaw()
    kit.redis.disconnect()
    await kit.eventually(() =>
      queue.size().then(
        (size) => size === 0,
        () => false,
      ),
    )
  })

  it('names the state that it waited for until its timeout', async () => {
    const kit = await open({ timeout: 50 })
    const queue = kit.client.getReliableQueue<string>(kit.uniqueName(), string)
    await queue.add('x', { id: 'x' })
    const thrown: unknown = await kit.until(queue, 'x', 'gone').catch((error: unknown) => error)
    expect(thrown).to.be.instanceOf(TestKitError)
    expect((thrown as Error).message).to.match(/waited 50 ms until the message "x" of ".*" is gone/)
    const never = new Promise(() => undefined)
    kit.client.createWorker(queue, () => never, { shutdownTimeout: 0 })
    expect(await kit.settle().catch((error: unknown) => error)).to.be.instanceOf(TestKitError)
  })

  it('leaves nothing behind, and can be closed twice', async () => {
    const kit = await open()
    const name = kit.uniqueName('left')
    const queue = kit.client.getReliableQueue<string>(name, string)
    await queue.add('x')
    await queue.upsertSchedule('r', 'x', { every: 1_000 })
    await kit.client.getDelayedQueue(kit.client.getBlockingQueue<string>(name, string)).offer('y', 5)
    await Promise.all([kit.close(), kit.close()])
    expect(await rawClient().keys(`*${name}*`)).to.deep.equal([])
  })

  it('stops listening also when the keys cannot be removed at the end', async function () {
    requireServerBin(this)
    const server = await startRedis()
    onCleanup(() => server.stop())
    const kit = await createTestKit({ url: server.url })
    kit.uniqueName()
    const { port } = kit.redis
    await server.stop()
    const thrown: unknown = await kit.close().catch((error: unknown) => error)
    expect(thrown).to.be.instanceOf(Error)
    expect(await isFree(port)).to.equal(true)
  })

  it('reaches a server by its IPv6 address', async function () {
    const { port: target } = new URL(redisUrl())
    const server = createServer((client) => {
      const upstream = connect(Number(target), new URL(redisUrl()).hostname)
      client.on('error', () => undefined).pipe(upstream)
      upstream.on('error', () => undefined).pipe(client)
    })
    const hasIpv6 = await new Promise((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(0, '::1', () => resolve(true))
    })
    if (hasIpv6 !== true) this.skip()
    onCleanup(() => server.close())
    const kit = await open({ url: `redis://[::1]:${(server.address() as AddressInfo).port}` })
    const queue = kit.client.getQueue<string>(kit.uniqueName(), string)
    await queue.offer('x')
    expect(await queue.size()).to.equal(1)
  })

  describe('refuses', () => {
    const bad: readonly [what: string, options: unknown, says: RegExp][] = [
      ['a URL with TLS', { url: 'rediss://localhost' }, /url/],
      ['no URL', { url: 'localhost:6379' }, /url/],
      ['a start that is not a date', { startAt: 5 }, /startAt/],
      ['a patience of 0', { patience: 0 }, /patience/],
      ['an unknown option', { sweep: 5 }, /sweep/],
    ]
    for (const [what, options, says] of bad) {
      it(what, async () => {
        const thrown: unknown = await createTestKit({ url: redisUrl(), ...(options as object) }).then(
          (kit) => kit.close(),
          (error: unknown) => error,
        )
        expect(thrown).to.be.instanceOf(InvalidArgumentError)
        expect((thrown as Error).message).to.match(says)
      })
    }

    it('a URL without a Redis, with advice', async () => {
      const thrown: unknown = await createTestKit({ url: 'redis://127.0.0.1:1' }).catch((error: unknown) => error)
      expect(thrown).to.be.instanceOf(ConnectionError).with.property('outcome', 'not-applied')
      expect((thrown as Error).message).to.match(/no Redis at 127\.0\.0\.1:1: start one, or .*REDIS_URL.*ECONNREFUSED/)
    })

    it('an invalid time to move by', async () => {
      const kit = await open()
      for (const by of [-1, 1.5, '5 minutes', 'soon', NaN]) {
        expect(() => kit.advance(by as number)).to.throw(InvalidArgumentError, /by/)
      }
    })
  })
})
