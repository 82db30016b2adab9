/** Reading a delayed queue without changing it, and queue objects that do not deliver. */
import { expect } from 'chai'
import { codecs, dueOf, type RedelayedError } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import {
  ORDERS,
  cleanUp,
  connectionsNamed,
  expectError,
  javaEntry,
  javaOffer,
  makeClient,
  makePair,
  rawKeys,
  rawState,
  redisNow,
} from './fixtures.js'
import { InvalidArgumentError, ShutdownError } from '../../src/index.js'

/** A delayed queue that leaves overdue entries where they are. */
function makeIdle(order: (typeof ORDERS)[number] = 'redisson') {
  const client = makeClient()
  const name = uniqueName('idle')
  const queue = client.getQueue<string>(name, { codec: codecs.string() })
  return {
    client,
    name,
    queue,
    delayed: client.getDelayedQueue(queue, { layout: order, deliver: false }),
    keys: rawKeys(name),
  }
}

describe('inspecting a delayed queue', () => {
  afterEach(cleanUp)

  for (const layout of ORDERS) {
    it(`stats() counts the messages (layout: ${layout})`, async () => {
      const { delayed, queue, keys, name } = makeIdle(layout)
      const before = Math.floor(await redisNow())
      expect(await delayed.stats()).to.deep.include({ pending: 0, overdue: 0, oldestOverdueMs: 0, nextDue: null })

      await delayed.offer('due', 0)
      await delayed.offer('later', 60_000)
      await javaOffer(name, 'long overdue', before - 5_000)
      await queue.addAll(['one', 'two'])
      await rawClient().rpush(keys.quarantine, 'malformed 1 x')
      const state = await rawState(name)

      const stats = await delayed.stats()
      expect(stats).to.deep.include({ pending: 3, overdue: 2, delivered: 2, quarantined: 1, subscribers: 0 })
      expect(stats.now).to.be.within(before, await redisNow())
      expect(stats.nextDue).to.equal(before - 5_000)
      expect(stats.oldestOverdueMs).to.equal(stats.now - (before - 5_000))
      expect(await rawState(name)).to.deep.equal(state)
    })

    it(`schedule() gives the next messages with due times and tickets that work (layout: ${layout})`, async () => {
      const { delayed, name } = makeIdle(layout)
      const third = await delayed.offer('third', 90_000)
      const first = await delayed.offer('first', 30_000)
      await javaOffer(name, 'second', dueOf(first) + 1)

      const all = await delayed.schedule()
      expect(all.map(({ value }) => value)).to.deep.equal(['first', 'second', 'third'])
      expect(all.map(({ due }) => due)).to.deep.equal([dueOf(first), dueOf(first) + 1, dueOf(third)])
      expect([all[0]!.ticket, all[2]!.ticket]).to.deep.equal([first, third])
      expect(await delayed.schedule({ limit: 2 })).to.deep.equal(all.slice(0, 2))

      expect(await delayed.cancel(all[1]!.ticket!)).to.equal(true)
      expect((await delayed.schedule()).map(({ value }) => value)).to.deep.equal(['first', 'third'])
    })
  }

  it('schedule() gives entries of odd ids and due times without a ticket, and reports unreadable ones', async () => {
    const { client, delayed, keys, name } = makeIdle()
    const old = javaEntry('old').subarray(1)
    const shortId = Buffer.concat([Buffer.of(3, 1, 2, 3, 1), Buffer.alloc(7), Buffer.from('x')])
    const negative = javaEntry('negative')
    const fraction = javaEntry('fraction')
    await rawClient().zadd(keys.timeouts, 9e12, old, 7e12, shortId, -1, negative, 8e12 + 0.5, fraction, 1, 'garbage')
    const errors: RedelayedError[] = []
    client.on('error', (error) => errors.push(error))

    const messages = await delayed.schedule()
    const last = messages.pop()
    expect(messages).to.deep.equal([
      { value: 'negative', due: -1, ticket: null },
      { value: 'x', due: 7e12, ticket: null },
      { value: 'fraction', due: 8e12 + 0.5, ticket: null },
    ])
    expect(last).to.include({ value: 'old', due: 9e12 })
    expect(await delayed.cancel(last!.ticket!)).to.equal(true)
    expect(await rawClient().zscore(keys.timeouts, old)).to.equal(null)
    expect(errors.map(({ code, queue }) => [code, queue])).to.deep.equal([['ERR_DECODE', name]])
  })

  it('refuses bad limits, and works no more after destroy()', async () => {
    const { delayed, name } = makeIdle()
    for (const limit of [0, -1, 1.5, 10_001, NaN]) {
      await expectError([InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', queue: name, says: ['limit'] }], () =>
        delayed.schedule({ limit }),
      )
    }
    await delayed.destroy()
    const wanted = { code: 'ERR_SHUTDOWN', queue: name }
    await expectError([ShutdownError, wanted], () => delayed.stats())
    await expectError([ShutdownError, wanted], () => delayed.schedule())
  })

  it('deliver: false delivers nothing and opens no subscriber connection', async () => {
    const name = uniqueName('quiet')
    const client = makeClient({ ioredis: { connectionName: name } })
    const queue = client.getQueue<string>(name, { codec: codecs.string() })
    const idle = client.getDelayedQueue(queue, { deliver: false })
    await idle.offer('x', 0)
    await idle.stats()
    expect(await connectionsNamed(name)).to.have.lengthOf(1)
    expect(await rawClient().llen(name)).to.equal(0)

    // the same client can deliver for others, and giving up the idle object does not end that
    const active = client.getDelayedQueue(queue)
    await idle.destroy()
    await eventually(async () => expect(await rawClient().llen(name)).to.equal(1))
    await active.offer('y', 0)
    await eventually(async () => expect(await rawClient().llen(name)).to.equal(2))
  })

  it('deliver takes nothing but true and false', async () => {
    const { queue } = makePair()
    const client = makeClient()
    const own = client.getQueue(queue.name)
    await expectError([InvalidArgumentError, { code: 'ERR_INVALID_ARGUMENT', says: ['deliver'] }], () =>
      client.getDelayedQueue(own, { deliver: 'no' as unknown as boolean }),
    )
  })
})
