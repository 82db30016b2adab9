import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { codecs, dueOf, type DelayedQueue } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { rawClient, uniqueName } from '../support/redis.js'
import {
  ORDERS,
  cleanUp,
  connectionsNamed,
  javaEntry,
  makeClient,
  makePair,
  numbers,
  onCleanup,
  rawKeys,
  rawTo,
  redisNow,
  takeAll,
} from './fixtures.js'

const NO_SWEEP = { sweepInterval: 3_600_000 }

describe('transfer on a server of its own', function () {
  let server: RedisServer
  let plain: Redis

  before(function () {
    requireServerBin(this)
  })
  beforeEach(async () => {
    server = await startRedis()
    onCleanup(() => server.stop())
    plain = rawTo(server.port)
  })
  afterEach(cleanUp)

  async function scriptCalls(): Promise<number> {
    const stats = await plain.info('commandstats')
    const counts = [...stats.matchAll(/^cmdstat_evalsha?:calls=(\d+)/gm)].map(([, calls]) => Number(calls))
    return counts.reduce((sum, calls) => sum + calls, 0)
  }

  it('of ten clients few run the script for one due time', async () => {
    const name = uniqueName()
    const dueTimes = 30
    const clients = numbers(10).map(() => makePair('redisson', { queueName: name, url: server.url, ...NO_SWEEP }))
    await eventually(async () => expect(await plain.pubsub('NUMSUB', rawKeys(name).channel)).to.include(10))
    const { delayed, queue } = clients[0]!
    await delayed.offer('first', 0)
    expect(await queue.poll(2_000)).to.equal('first')

    const before = await scriptCalls()
    const start = Math.floor(await redisNow(plain)) + 50
    for (const index of numbers(dueTimes)) await delayed.offerAt(index, new Date(start + Number(index) * 40))
    for (const index of numbers(dueTimes)) {
      expect(await queue.poll(5_000)).to.equal(index)
      expect((await redisNow(plain)) - (start + Number(index) * 40)).to.be.within(0, 500)
    }
    const scripts = (await scriptCalls()) - before - dueTimes
    expect(scripts / dueTimes, 'scripts per due time').to.be.at.most(3)
  })

  it('of forty clients one leads on a busy queue and publishes leases; after it stopped, another one does', async () => {
    const name = uniqueName()
    const count = 600
    const heard: number[] = []
    const listener = rawTo(server.port)
    listener.on('message', (_, at: string) => heard.push(Number(at)))
    await listener.subscribe(rawKeys(name).channel)
    const consumer = makeClient({ url: server.url, consumersDeliver: false, ...NO_SWEEP })
    const queue = consumer.getBlockingQueue<string>(name)
    let delivered = 0
    const stopped: Promise<void>[] = []
    for (const { client } of numbers(40).map(() =>
      makePair('compact', { queueName: name, url: server.url, ...NO_SWEEP }),
    )) {
      client.on('transferred', (event) => {
        delivered += event.count
        if (delivered > count / 2 && stopped.length === 0) stopped.push(client.shutdown())
      })
    }
    await eventually(async () => expect(await plain.pubsub('NUMSUB', rawKeys(name).channel)).to.include(41))
    const start = Math.floor(await redisNow(plain)) + 300
    const items = numbers(count).map((value, at) => ({ value, date: new Date(start + at) }))
    await consumer.getDelayedQueue(queue, { layout: 'compact', deliver: false }).offerAll(items)
    heard.length = 0

    expect(await takeAll(queue, count)).to.have.members(items.map(({ value }) => value))
    expect(await redisNow(plain)).to.be.at.least(start + count - 1)
    await Promise.all(stopped)
    expect(stopped).to.have.length(1)
    expect(heard.length, 'announcements').to.be.within(2, count / 2)
  })

  it('a delay beyond the longest timer of Node arms nothing early, and is not in the way', async () => {
    const { delayed, queue, keys } = makePair('redisson', { url: server.url, ...NO_SWEEP })
    const warnings: Error[] = []
    const onWarning = (warning: Error): void => void warnings.push(warning)
    process.on('warning', onWarning)
    onCleanup(() => process.off('warning', onWarning))
    const ticket = await delayed.offer('in 30 days', 30, 'days')
    await delayed.offer('before', 0)
    expect(await queue.poll(2_000)).to.equal('before')
    const before = await scriptCalls()
    await delayed.offer('later', 250)
    expect(await queue.poll(2_000)).to.equal('later')
    expect(warnings, 'Node warns of a timer that fires at once').to.deep.equal([])
    // one for the offer, one or two for its delivery: a timer that fires at once would have run hundreds
    expect((await scriptCalls()) - before).to.be.at.most(4)
    expect(await plain.zrange(keys.timeouts, 0, '-1', 'WITHSCORES'))
      .to.have.lengthOf(2)
      .and.include(`${dueOf(ticket)}`)
  })

  it('nothing spins in the last milliseconds before a due time', async () => {
    const { delayed, queue } = makePair('compact', { url: server.url, ...NO_SWEEP })
    await delayed.offer('first', 0)
    await queue.take()
    const before = await scriptCalls()
    for (const value of numbers(20)) {
      await delayed.offer(value, 15)
      expect(await queue.take()).to.equal(value)
    }
    expect((await scriptCalls()) - before).to.be.at.most(20 * 4)
  })

  it('scripts that the server has forgotten are sent again', async () => {
    const { delayed, queue } = makePair('redisson', { url: server.url, ...NO_SWEEP })
    const forget = () => plain.script('FLUSH')
    await delayed.offer('a', 150)
    await forget()
    const ticket = await delayed.offer('never', 60_000)
    await forget()
    expect(await delayed.cancel(ticket)).to.equal(true)
    await delayed.offer('pending', 60_000)
    await forget()
    const many = await delayed.offerAll(numbers(600).map((value) => ({ value, delay: 300 })))
    expect(new Set(many).size).to.equal(600)
    await forget()
    expect(await queue.take()).to.equal('a')
    await forget()
    expect(await delayed.contains('pending')).to.equal(true)
    await forget()
    expect(await takeAll(queue, 600)).to.deep.equal(numbers(600))
    await forget()
    expect(await queue.drainTo()).to.deep.equal([])
  })

  for (const layout of ORDERS) {
    it(`layout '${layout}': 20,000 overdue in mixed order are drained in due order, by short scripts`, async () => {
      const name = uniqueName()
      const { timeouts, order: list } = rawKeys(name)
      const due = Math.floor(await redisNow(plain)) - 100_000
      const command = plain.pipeline()
      for (const value of numbers(20_000)) {
        const entry = javaEntry(value)
        // 7,919 is prime: the due times are a shuffle of the offer order
        command.zadd(timeouts, due + ((Number(value) * 7_919) % 20_000), entry)
        command.rpush(list, entry)
      }
      await command.exec()

      const { queue, client } = makePair(layout, { queueName: name, url: server.url })
      const batches: number[] = []
      client.on('transferred', ({ count }) => batches.push(count))
      const values = await takeAll(queue, 20_000)
      expect(new Set(values).size).to.equal(20_000)
      const byDue = numbers(20_000).sort((a, b) => ((Number(a) * 7_919) % 20_000) - ((Number(b) * 7_919) % 20_000))
      expect(values).to.deep.equal(byDue)
      // what 2 ms of work are on a machine that is several times faster than any we know; a slow one moves less
      expect(Math.max(...batches), 'moved by one script').to.be.below(5_000)
      expect(await plain.exists(list, timeouts)).to.equal(0)
    }).timeout(30_000)
  }
})

describe('transfer of many queues', () => {
  afterEach(cleanUp)

  it('1,000 queues of one client are all delivered, over one subscriber connection', async () => {
    const connectionName = uniqueName('many').replaceAll(':', '-')
    const client = makeClient({ ioredis: { connectionName }, ...NO_SWEEP })
    const names = numbers(1_000).map(() => uniqueName('many'))
    const queues: DelayedQueue<string>[] = names.map((name) =>
      client.getDelayedQueue(client.getQueue<string>(name, { codec: codecs.string() })),
    )
    const arrived = new Set<string>()
    client.on('transferred', ({ queue }) => arrived.add(queue))
    await Promise.all(queues.map((delayed) => delayed.offer('a', 50 + Math.floor(Math.random() * 200))))
    await eventually(() => expect(arrived.size).to.equal(1_000))

    const connections = await connectionsNamed(connectionName)
    expect(connections).to.have.lengthOf(2)
    expect(connections.filter((line) => line.includes(' sub=1000 '))).to.have.lengthOf(1)
    const lengths = rawClient().pipeline()
    for (const name of names) lengths.llen(name)
    expect((await lengths.exec())?.map(([, length]) => length)).to.deep.equal(names.map(() => 1))
  }).timeout(20_000)
})
