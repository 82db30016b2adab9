import { expect } from 'chai'
import {
  codecs,
  type QuarantinedEvent,
  type RedelayedError,
  type SubscribedEvent,
  type TransferredEvent,
} from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import {
  ORDERS,
  cleanUp,
  connectionsNamed,
  javaEntry,
  javaOffer,
  makeClient,
  makePair,
  numbers,
  onCleanup,
  redisNow,
  takeAll,
  untilRedisClock,
  type Pair,
  rejection,
} from './fixtures.js'

const raw = rawClient
/** Options with which only the tested mechanism can deliver. */
const NO_SWEEP = { sweepInterval: 3_600_000 }
/** Far below what a retry or a sweep would take, and far above what a loaded machine needs. */
const LATE_MS = 3_000

/** A pair whose subscription and first transfer are over. */
async function settledPair(...[layout, options]: Parameters<typeof makePair>): Promise<Pair> {
  const pair = makePair(layout, options)
  await once<SubscribedEvent>(pair.client, 'subscribed', ({ queue }) => queue === pair.name)
  await pair.delayed.offer('settled', 0)
  expect(await pair.queue.poll(5_000)).to.equal('settled')
  return pair
}

async function inMillis(ms: number): Promise<number> {
  return Math.floor(await redisNow()) + ms
}

async function expectOnTime(due: number): Promise<void> {
  expect((await redisNow()) - due).to.be.within(0, LATE_MS)
}

describe('transfer', () => {
  afterEach(cleanUp)

  for (const layout of ORDERS) {
    it(`layout '${layout}': an offer of one client reaches the other's consumer once`, async () => {
      const producer = makePair(layout, NO_SWEEP)
      const consumer = makePair(layout, { ...NO_SWEEP, queueName: producer.name })
      await Promise.all([producer, consumer].map(({ client }) => once(client, 'subscribed')))
      const moved: TransferredEvent[] = []
      for (const { client } of [producer, consumer]) client.on('transferred', (event) => moved.push(event))
      const due = await inMillis(80)
      await producer.delayed.offerAt('a', new Date(due))
      expect(await consumer.queue.poll(5_000)).to.equal('a')
      await expectOnTime(due)
      await eventually(() => expect(moved.length).to.be.at.least(1))
      expect(moved.map(({ queue, count }) => [queue, count])).to.deep.equal([[producer.name, 1]])
      expect(moved[0]?.maxLatenessMs).to.be.within(0, LATE_MS)
    })

    it(`layout '${layout}': an entry that Java added and announced is delivered on time`, async () => {
      const { queue, name, keys } = await settledPair(layout, NO_SWEEP)
      const due = await inMillis(100)
      await javaOffer(name, 'from Java', due)
      expect(await queue.poll(5_000)).to.equal('from Java')
      await expectOnTime(due)
      expect(await raw().exists(keys.order, keys.timeouts)).to.equal(0)
    })

    it(`layout '${layout}': messages pending before the client started are delivered`, async () => {
      const name = uniqueName()
      const due = await inMillis(100)
      await javaOffer(name, 'overdue', due - 200_000, { publish: false })
      await javaOffer(name, 'soon', due, { publish: false })
      const { queue } = makePair(layout, { queueName: name, ...NO_SWEEP })
      expect(await takeAll(queue, 2)).to.deep.equal(['overdue', 'soon'])
      await expectOnTime(due)
    })
  }

  it('reads the entries of Redisson before 3.21.1', async () => {
    const { queue, keys } = await settledPair('redisson', NO_SWEEP)
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(3n)
    const entry = Buffer.concat([Buffer.from('81e97df41022b143', 'hex'), length, Buffer.from('old')])
    const due = await inMillis(50)
    await raw().multi().zadd(keys.timeouts, due, entry).rpush(keys.order, entry).publish(keys.channel, `${due}`).exec()
    expect(await queue.poll(5_000)).to.equal('old')
    expect(await raw().exists(keys.order, keys.timeouts)).to.equal(0)
  })

  it('a message on the channel that is not a time is ignored', async () => {
    const { queue, name, keys } = await settledPair('redisson', NO_SWEEP)
    const due = await inMillis(120)
    await javaOffer(name, 'a', due)
    for (const message of ['', 'soon', '-5', '1e999', '9'.repeat(30), '12.5'])
      await raw().publish(keys.channel, message)
    expect(await queue.poll(5_000)).to.equal('a')
    await expectOnTime(due)
  })

  it('a lost announcement is healed by the sweep, and by nothing else', async () => {
    const swept = await settledPair('redisson', { sweepInterval: 200 })
    const control = await settledPair('redisson', NO_SWEEP)
    const due = await inMillis(50)
    for (const { name } of [swept, control]) await javaOffer(name, 'unannounced', due, { publish: false })
    expect(await swept.queue.poll(5_000)).to.equal('unannounced')
    expect((await redisNow()) - due).to.be.below(2_000)
    await untilRedisClock(due + 800)
    expect(await control.queue.poll()).to.equal(null)
    expect(await raw().zcard(control.keys.timeouts)).to.equal(1)
  })

  for (const [what, ms] of [
    ['overdue', -1_000],
    ['not yet due', 300],
  ] as const) {
    it(`after its subscriber connection was killed, a client finds what is ${what}`, async () => {
      const connectionName = uniqueName('kill').replaceAll(':', '-')
      const { queue, client, name } = await settledPair('redisson', { ...NO_SWEEP, ioredis: { connectionName } })
      const [subscriber] = (await connectionsNamed(connectionName)).filter((line) => / sub=1 /.test(line))
      const due = await inMillis(ms)
      await javaOffer(name, 'missed', due, { publish: false })
      const again = [once(client, 'reconnecting'), once<SubscribedEvent>(client, 'subscribed')]
      await raw().client('KILL', 'ID', /^id=(\d+)/.exec(subscriber!)![1]!)
      const [reconnecting, subscribed] = await Promise.all(again)
      expect(reconnecting).to.include({ connection: 'subscriber', attempt: 1 })
      expect(subscribed).to.deep.equal({ queue: name })
      expect(await queue.poll(5_000)).to.equal('missed')
      if (ms > 0) await expectOnTime(due)
    })
  }

  for (const layout of ORDERS) {
    it(`layout '${layout}': a destination of another type: an error, a back-off, nothing lost`, async () => {
      const { delayed, queue, client, name, keys } = makePair(layout)
      const errors: [at: number, error: RedelayedError][] = []
      delayed.on('error', (error) => errors.push([performance.now(), error]))
      await raw().set(name, 'not a list')
      await delayed.offerAll(numbers(3).map((value) => ({ value, delay: 0 })))
      await eventually(() => expect(errors).to.have.lengthOf(4))

      for (const [, error] of errors) expect(error).to.include({ code: 'ERR_WRONG_TYPE', queue: name })
      // the waits double from 100 ms, each drawn from its upper half: 50 + 100 + 200 at least
      expect(errors[3]![0] - errors[0]![0]).to.be.at.least(345)
      expect(await raw().zcard(keys.timeouts)).to.equal(3)
      expect(await raw().get(name)).to.equal('not a list')
      // neither an offer nor a consumer may get around the back-off
      await delayed.offer('3', 0)
      // ended by the error and not by its time, so that no later take meets what this one has asked
      expect(await rejection(client.getBlockingQueue(name).poll(5_000))).to.have.property('code', 'ERR_WRONG_TYPE')
      expect(errors.length).to.be.at.most(5)

      await raw().del(name)
      expect(await takeAll(queue, 4)).to.deep.equal(numbers(4))
      expect(await raw().exists(keys.order, keys.timeouts)).to.equal(0)
    })
  }

  it('an order list of another type: reported, and delivered all the same', async () => {
    const { delayed, queue, keys, name } = makePair('redisson')
    const failed = once<RedelayedError>(delayed, 'error')
    const due = await inMillis(50)
    await raw()
      .multi()
      .set(keys.order, 'x')
      .zadd(keys.timeouts, due, javaEntry('a'))
      .publish(keys.channel, `${due}`)
      .exec()
    expect(await queue.poll(5_000)).to.equal('a')
    expect(await failed).to.include({ queue: name })
    expect(await raw().exists(keys.timeouts)).to.equal(0)
  })

  for (const layout of ORDERS) {
    it(`layout '${layout}': poison entries are set aside, the good ones between them delivered once`, async () => {
      const { queue, delayed, keys, name } = await settledPair(layout)
      const events: QuarantinedEvent[] = []
      delayed.on('quarantined', (event) => events.push(event))
      const due = await inMillis(60)
      const truncated = javaEntry('cut off').subarray(0, -1)
      const poison = [Buffer.alloc(0), Buffer.from('garbage'), truncated, Buffer.alloc(300, 8)]
      const negative = javaEntry('negative')
      const command = raw().multi()
      poison.forEach((entry, index) => command.zadd(keys.timeouts, due + index * 2, entry).rpush(keys.order, entry))
      command.zadd(keys.timeouts, '-9.2233703047609999e+18', negative).rpush(keys.order, negative)
      for (const index of numbers(5).map(Number)) {
        const entry = javaEntry(`good ${index}`)
        command.zadd(keys.timeouts, due + index * 2 - 1, entry).rpush(keys.order, entry)
      }
      await command.publish(keys.channel, `${due}`).exec()

      expect(await takeAll(queue, 5)).to.deep.equal(numbers(5).map((index) => `good ${index}`))
      const count = (reason: string) =>
        events.filter((event) => event.reason === reason).reduce((sum, event) => sum + event.count, 0)
      await eventually(() => expect([count('malformed'), count('negative-due')]).to.deep.equal([4, 1]))
      expect(events.map((event) => event.queue)).to.deep.equal(events.map(() => name))
      expect(await raw().exists(keys.timeouts, keys.order)).to.equal(0)
      expect(await queue.poll()).to.equal(null)

      const aside = await queue.readQuarantine()
      expect(aside.filter(({ reason }) => reason === 'malformed').map(({ bytes }) => bytes)).to.deep.equal(poison)
      expect(aside.find(({ reason }) => reason === 'negative-due')?.bytes).to.deep.equal(negative)
      for (const { at } of aside) expect(at.getTime()).to.be.within(due - 1_000, due + 1_000)
    })
  }

  const mapped: [what: string, name: string, raw: string, prefixed: (prefix: string) => string][] = [
    ['a name mapper', 'orders', 'app:NAME', (prefix) => `${prefix}:{app:NAME}`],
    ['a tag in braces', 'a{NAME}b', 'a{NAME}b', (prefix) => `${prefix}:a{NAME}b`],
    ['one open brace', 'a{NAME', 'a{NAME', (prefix) => `${prefix}:a{NAME`],
    ['only a closing brace', 'NAME}', 'NAME}', (prefix) => `${prefix}:{NAME}}`],
  ]
  for (const [what, pattern, rawPattern, prefixed] of mapped) {
    it(`${what}: the keys and the channel are Redisson's`, async () => {
      const unique = uniqueName()
      const fill = (text: string) => text.replaceAll('NAME', unique)
      const name = fill(pattern)
      const nameMapper = { map: () => fill(rawPattern), unmap: () => name }
      const client = makeClient({ nameMapper, ...NO_SWEEP })
      const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
      const delayed = client.getDelayedQueue(queue)
      const [order, timeouts, channel, quarantine] = [
        'redisson_delay_queue',
        'redisson_delay_queue_timeout',
        'redisson_delay_queue_channel',
        'redelayed:quarantine',
      ].map((prefix) => fill(prefixed(prefix))) as [string, string, string, string]
      onCleanup(() => raw().del(order, timeouts, quarantine, fill(rawPattern)))

      expect(await once(client, 'subscribed')).to.deep.equal({ queue: name })
      expect(await raw().pubsub('NUMSUB', channel)).to.deep.equal([channel, 1])
      const cancelled = await delayed.offer('b', 60_000)
      expect(await raw().zcard(timeouts)).to.equal(1)
      expect(await raw().llen(order)).to.equal(1)
      expect(await delayed.cancel(cancelled)).to.equal(true)
      await delayed.offer('a', 60)
      expect(await eventually(async () => (await raw().lrange(fill(rawPattern), 0, -1))[0] ?? expect.fail())).to.equal(
        'a',
      )
      const quarantined = once(client, 'quarantined') // a transfer that runs anyway may find it before the announcement
      await raw().zadd(timeouts, 1, 'poison')
      await raw().publish(channel, '1')
      expect(await quarantined).to.include({ queue: name })
      expect(await raw().llen(quarantine)).to.equal(1)
      expect(await queue.take()).to.equal('a')
    })
  }
})
