import { expect } from 'chai'
import { connect, createServer, type AddressInfo } from 'node:net'
import { ConnectionError, InvalidArgumentError, codecs, retryIn, type DelayedQueueOptions } from '../../src/index.js'
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
      ['a start that is no date', { startAt: 5 }, /startAt/],
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

    it('a URL where no Redis is, and says what to do', async () => {
      const thrown: unknown = await createTestKit({ url: 'redis://127.0.0.1:1' }).catch((error: unknown) => error)
      expect(thrown).to.be.instanceOf(ConnectionError).with.property('outcome', 'not-applied')
      expect((thrown as Error).message).to.match(/no Redis at 127\.0\.0\.1:1: start one, or .*REDIS_URL.*ECONNREFUSED/)
    })

    it('a time to move by that is none', async () => {
      const kit = await open()
      for (const by of [-1, 1.5, '5 minutes', 'soon', NaN]) {
        expect(() => kit.advance(by as number)).to.throw(InvalidArgumentError, /by/)
      }
    })
  })
})
