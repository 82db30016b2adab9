import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  ShutdownError,
  codecs,
  createClient,
  dueOf,
  type BlockingQueue,
  type EventName,
  type RedelayedError,
} from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { freePort } from '../support/redis-server.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import {
  cleanUp,
  connectionsNamed,
  expectError,
  makeClient,
  makePair,
  numbers,
  onCleanup,
  rejection,
  untilBlocked,
  untilRedisClock,
} from './fixtures.js'

const raw = rawClient
const string = { codec: codecs.string() }
const LATER = 600_000

describe('shutdown', () => {
  afterEach(cleanUp)

  it('closes every connection of the client, and may be called twice and at once', async () => {
    const connectionName = uniqueName('closed').replaceAll(':', '-')
    const { client, queue, delayed } = makePair('redisson', { ioredis: { connectionName } })
    await delayed.offer('x', 0)
    await queue.take()
    const waiting = rejection(queue.take())
    await untilBlocked(connectionName)
    expect(await connectionsNamed(connectionName)).to.have.lengthOf(3)
    await Promise.all([client.shutdown(), client.shutdown()])
    await client.shutdown()
    expect(await waiting).to.be.an.instanceOf(ShutdownError)
    await eventually(async () => expect(await connectionsNamed(connectionName)).to.deep.equal([]))
  })

  it('`await using` shuts down at the end of the block, also after an error', async () => {
    let queue: BlockingQueue<string> | undefined
    const failed = (async () => {
      await using client = createClient({ url: redisUrl() })
      queue = client.getBlockingQueue<string>(uniqueName(), string)
      await using delayed = client.getDelayedQueue(queue)
      await delayed.offer('x', 0)
      expect(await queue.take()).to.equal('x')
      throw new Error('in the block')
    })()
    expect((await rejection(failed)).message).to.equal('in the block')
    expect(await rejection(queue!.size())).to.be.an.instanceOf(ShutdownError)
  })

  it('lets offers that are under way finish', async () => {
    const { client, delayed, keys } = makePair()
    await delayed.size()
    const offers = numbers(500).map((value) => delayed.offer(value, LATER))
    const many = delayed.offerAll(numbers(3_000, 500).map((value) => ({ value, delay: LATER })))
    await client.shutdown()
    const tickets = [...(await Promise.all(offers)), ...(await many)]
    expect(new Set(tickets).size).to.equal(3_500)
    expect(await raw().zcard(keys.timeouts)).to.equal(3_500)
    expect(await raw().llen(keys.order)).to.equal(3_500)
  })

  it('lets a drain of several pages finish, and returns all that was taken', async () => {
    const { client, delayed, queue } = makePair()
    await queue.addAll(numbers(4_500))
    await delayed.offerAll(numbers(2_200).map((value) => ({ value, delay: LATER })))
    const drained = [queue.drainTo(), delayed.poll(10_000)]
    await client.shutdown()
    expect(await Promise.all(drained)).to.deep.equal([numbers(4_500), numbers(2_200)])
  })

  it('lets a running consumer finish, and takes nothing more for it', async () => {
    const { client, queue, name } = makePair()
    const seen: string[] = []
    let finish = (): void => {}
    queue.subscribeOnElements(async (value) => {
      seen.push(value)
      await new Promise<void>((resolve) => (finish = resolve))
    })
    await raw().rpush(name, 'a', 'b')
    await eventually(() => expect(seen).to.deep.equal(['a']))
    await client.shutdown()
    finish()
    expect(await raw().lrange(name, 0, -1)).to.deep.equal(['b'])
  })

  for (const deliver of [true, false]) {
    it(`ends waits with a ShutdownError at once, consumersDeliver: ${deliver}`, async () => {
      const connectionName = uniqueName('waits').replaceAll(':', '-')
      const client = makeClient({ consumersDeliver: deliver, ioredis: { connectionName } })
      const queues = numbers(20).map(() => client.getBlockingQueue<string>(uniqueName(), string))
      const waits = queues.flatMap((queue) => [queue.take(), queue.poll(60_000), queue.takeMany(2)])
      const ended = waits.map((wait, index) => {
        const wanted = { code: 'ERR_SHUTDOWN', queue: queues[Math.floor(index / 3)]!.name }
        return expectError([ShutdownError, wanted], () => wait)
      })
      await untilBlocked(connectionName, 4)
      const started = performance.now()
      await client.shutdown()
      await Promise.all(ended)
      expect(performance.now() - started).to.be.below(1_000)
      for (const { name } of queues) await raw().rpush(name, 'stays')
      for (const { name } of queues) expect(await raw().llen(name)).to.equal(1)
    })
  }

  it('an element that comes together with the shutdown is returned or stays', async () => {
    for (const turns of numbers(30).map(Number)) {
      const { client, queue, name } = makePair()
      const waiting = queue.take().catch((error: unknown) => error)
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
      const pushed = raw().rpush(name, 'a')
      await client.shutdown()
      await pushed
      const result = await waiting
      const left = await raw().lrange(name, 0, -1)
      expect(result === 'a' ? ['a'] : left, `after ${turns} turns`).to.deep.equal(['a'])
      expect(result === 'a' || result instanceof ShutdownError).to.equal(true)
      if (result === 'a') expect(left).to.deep.equal([])
    }
  })

  it('at any moment of the start leaves nothing behind, and is not an error', async () => {
    for (const turns of numbers(40).map(Number)) {
      const errors: RedelayedError[] = []
      const { client, queue, delayed } = makePair()
      client.on('error', (error) => errors.push(error))
      const calls = [delayed.offer('x', LATER), queue.poll(60_000)].map((call) => call.catch((error: unknown) => error))
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
      await client.shutdown()
      for (const result of await Promise.all(calls)) {
        if (typeof result !== 'string') expect(result).to.be.an.instanceOf(ShutdownError)
      }
      expect(errors, `after ${turns} turns`).to.deep.equal([])
    }
  })

  it('without a server ends at once, and ends waiting calls', async () => {
    const { client, delayed, queue } = makePair('redisson', { host: '127.0.0.1', port: await freePort() })
    const calls = [delayed.offer('x', 5), queue.take(), queue.size()].map((call) => rejection(call))
    await once(client, 'reconnecting')
    const started = performance.now()
    await client.shutdown()
    for (const error of await Promise.all(calls)) expect(error).to.have.property('code', 'ERR_SHUTDOWN')
    expect(performance.now() - started).to.be.below(1_000)
  })

  it('of a client that never did anything ends', async () => {
    await createClient({ url: redisUrl() }).shutdown()
    const client = createClient({ url: redisUrl() })
    const queue = client.getQueue(uniqueName())
    client.getDelayedQueue(queue)
    await client.shutdown()
    expect(await queue.size().catch((error: unknown) => error)).to.have.property('code', 'ERR_SHUTDOWN')
  })

  it('no event comes afterwards, although other clients continue', async () => {
    const pair = makePair('redisson', { sweepInterval: 100 })
    const other = makePair('redisson', { queueName: pair.name, consumersDeliver: false })
    await pair.delayed.offer('x', 0)
    await pair.queue.take()
    await pair.client.shutdown()
    const heard: EventName[] = []
    for (const name of ['error', 'transferred', 'quarantined', 'subscribed', 'reconnecting'] as const) {
      pair.client.on(name, () => heard.push(name))
      pair.delayed.on(name, () => heard.push(name))
    }
    const moved = once(other.client, 'transferred')
    const due = dueOf(await other.delayed.offer('y', 50))
    await moved
    await untilRedisClock(due + 200)
    expect(heard).to.deep.equal([])
    expect(await other.queue.poll()).to.equal('y')
  })

  it('a process that used everything ends by itself with code 0 as soon as the shutdown is over', async () => {
    const dir = mkdtempSync(join(import.meta.dirname, '.exit-'))
    onCleanup(() => rmSync(dir, { recursive: true }))
    const file = join(dir, 'everything.ts')
    writeFileSync(file, EVERYTHING)
    const env = { ...process.env, REDIS_URL: redisUrl(), QUEUE: uniqueName() }
    const child = spawn(process.execPath, ['--import', 'tsx', file], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    onCleanup(() => child.kill('SIGKILL'))
    let output = ''
    let shutDownAt = Infinity
    child.stderr.on('data', (bytes: Buffer) => (output += bytes.toString()))
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString()
      if (output.includes('shut down')) shutDownAt = Math.min(shutDownAt, performance.now())
    })
    const code = await new Promise((resolve) => child.once('close', resolve))
    expect(output).to.equal('took a\ntook b\nShutdownError\nshut down\n')
    expect(code).to.equal(0)
    expect(performance.now() - shutDownAt).to.be.below(2_000)
  }).timeout(20_000)
})

const EVERYTHING = `
import { codecs, createClient } from '../../../src/index.js'
const client = createClient({ url: process.env.REDIS_URL, sweepInterval: 100, pingInterval: 100 })
const queue = client.getBlockingQueue<string>(process.env.QUEUE!, { codec: codecs.string() })
const delayed = client.getDelayedQueue(queue)
delayed.on('transferred', () => {})
let tookBoth = () => {}
const bothTaken = new Promise<void>((resolve) => (tookBoth = resolve))
const iterated = (async () => {
  for await (const value of queue) {
    console.log('took ' + value)
    if (value === 'b') tookBoth()
  }
})().catch((error: Error) => console.log(error.name))
await delayed.offer('a', 20)
await delayed.offerAll([{ value: 'b', delay: 60 }, { value: 'never', delay: 600_000 }])
await bothTaken
queue.subscribeOnElements(() => {})
await client.shutdown()
await iterated
console.log('shut down')
`
