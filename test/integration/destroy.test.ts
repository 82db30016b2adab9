import { expect } from 'chai'
import { codecs, dueOf, type TransferredEvent } from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, javaEntry, makeClient, makePair, numbers, rawKeys, redisNow, untilRedisClock } from './fixtures.js'

const raw = rawClient
const string = { codec: codecs.string() }
/** Nothing may wake up by itself, so that a delivery can only be the work of a live task. */
const QUIET = { sweepInterval: 3_600_000, consumersDeliver: false }

async function subscribers(name: string): Promise<unknown> {
  return (await raw().pubsub('NUMSUB', rawKeys(name).channel))[1]
}

describe('destroy', () => {
  afterEach(cleanUp)

  it('n objects need n destroys: as long as one is left, the queue is delivered', async () => {
    const { client, queue, delayed: first, name, keys } = makePair('redisson', QUIET)
    const second = client.getDelayedQueue(queue)
    const third = client.getDelayedQueue(client.getQueue(name, string), { layout: 'compact' })
    await once(client, 'subscribed')

    await second.offer('with three', 30)
    expect(await queue.poll(2_000)).to.equal('with three')
    for (let i = 0; i < 3; i++) await first.destroy() // one object counts once
    await second.offer('with two', 30)
    expect(await queue.poll(2_000)).to.equal('with two')
    await second.destroy()
    const due = dueOf(await third.offer('with none', 150))
    await third.destroy()

    await eventually(async () => expect(await subscribers(name)).to.equal(0))
    await untilRedisClock(due + 150)
    expect(await raw().zcard(keys.timeouts)).to.equal(1)
    expect(await queue.size()).to.equal(0)

    client.getDelayedQueue(queue) // a new object delivers what was left
    expect(await queue.poll(2_000)).to.equal('with none')
  })

  it('create, destroy, create and destroy at once deliver nothing (testDestroy)', async () => {
    const { client, queue, delayed, keys } = makePair('redisson', QUIET)
    const due = dueOf(await delayed.offer('a', 120))
    await delayed.destroy()
    await client.getDelayedQueue(queue).destroy()
    await untilRedisClock(due + 150)
    expect(await raw().zcard(keys.timeouts)).to.equal(1)
  })

  it('getDelayedQueue and destroy at once, a hundred times: the one that is left delivers', async () => {
    const client = makeClient(QUIET)
    const name = uniqueName()
    const queue = client.getBlockingQueue<string>(name, string)
    const destroyed: Promise<void>[] = []
    for (const round of numbers(100).map(Number)) {
      destroyed.push(client.getDelayedQueue(queue).destroy())
      for (let i = 0; i < round % 7; i++) await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all(destroyed)
    await eventually(async () => expect(await subscribers(name)).to.equal(0))
    const last = client.getDelayedQueue(queue)
    await eventually(async () => expect(await subscribers(name)).to.equal(1))
    await last.offer('a', 20)
    expect(await queue.poll(2_000)).to.equal('a')
  })

  it('in the turn after a create, the subscription of the other object stays', async () => {
    const client = makeClient(QUIET)
    const name = uniqueName()
    const queue = client.getBlockingQueue<string>(name, string)
    const subscribed = once(client, 'subscribed')
    const stays = client.getDelayedQueue(queue)
    await client.getDelayedQueue(queue).destroy()
    await subscribed
    expect(await subscribers(name)).to.equal(1)
    await stays.offer('a', 20)
    expect(await queue.poll(2_000)).to.equal('a')
  })

  it('during a running transfer waits for its end, and stops it after this batch', async () => {
    const client = makeClient(QUIET)
    const name = uniqueName()
    const { timeouts } = rawKeys(name)
    const queue = client.getQueue<string>(name, string)
    const now = Math.floor(await redisNow())
    const command = raw().pipeline()
    for (const value of numbers(40_000)) command.zadd(timeouts, now - 1_000, javaEntry(value))
    await command.exec()
    let moved = 0
    client.on('transferred', ({ count }: TransferredEvent) => (moved += count))

    for (const turns of numbers(8).map(Number)) {
      const before = moved
      const delayed = client.getDelayedQueue(queue)
      await once(client, 'transferred')
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
      await delayed.destroy()
      expect(moved, 'in one round').to.be.within(before + 1, 39_999)
      expect(await raw().llen(name), `moved after ${turns} turns`).to.equal(moved)
    }
    expect(await raw().zcard(timeouts)).to.equal(40_000 - moved)
  })

  it('of one queue does not affect the other queues of the client', async () => {
    const client = makeClient(QUIET)
    const [one, two] = [uniqueName(), uniqueName()].map((name) => {
      const queue = client.getBlockingQueue<string>(name, string)
      return { name, queue, delayed: client.getDelayedQueue(queue) }
    })
    await eventually(async () =>
      expect([await subscribers(one!.name), await subscribers(two!.name)]).to.deep.equal([1, 1]),
    )
    await one!.delayed.destroy()
    await eventually(async () =>
      expect([await subscribers(one!.name), await subscribers(two!.name)]).to.deep.equal([0, 1]),
    )
    await two!.delayed.offer('a', 20)
    expect(await two!.queue.poll(2_000)).to.equal('a')
  })

  it('ends the events of that object, and of no other', async () => {
    const { client, queue, delayed } = makePair('redisson', QUIET)
    const other = client.getDelayedQueue(queue)
    const heard: string[] = []
    delayed.on('transferred', () => heard.push('destroyed'))
    other.on('transferred', () => heard.push('other'))
    await delayed.destroy()
    await other.offer('a', 10)
    expect(await queue.poll(2_000)).to.equal('a')
    await eventually(() => expect(heard).to.deep.equal(['other']))
  })

  it('a listener can be removed, or get one event', async () => {
    const { client, queue, delayed } = makePair('redisson', QUIET)
    const heard: string[] = []
    const note = (what: string) => () => void heard.push(what)
    const gone = note('gone')
    for (const source of [client, delayed]) {
      source.on('transferred', gone).once('transferred', note('once')).on('transferred', note('always'))
      source.off('transferred', gone)
    }
    for (const value of ['a', 'b']) {
      await delayed.offer(value, 0)
      expect(await queue.poll(2_000)).to.equal(value)
    }
    await eventually(() =>
      expect([...heard].sort()).to.deep.equal(['always', 'always', 'always', 'always', 'once', 'once']),
    )
  })
})
