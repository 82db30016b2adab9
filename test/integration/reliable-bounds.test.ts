import { expect } from 'chai'
import { codecs, type ListMessages, type ReliableQueue } from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { createTestKit, type TestKit } from '../../src/testing/index.js'
import { commandCalls } from '../lua/support.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, numbers, onCleanup, rawTo, untilRedisClock } from './fixtures.js'

const string = { codec: codecs.string() }
const MINUTE = 60_000

describe('the limits of single requests of a reliable queue', () => {
  let server: RedisServer | undefined
  before(async function () {
    requireServerBin(this)
    server = await startRedis()
  })
  after(() => server?.stop())
  afterEach(cleanUp)

  function make(): { queue: ReliableQueue<string>; calls: typeof callsWhile } {
    return {
      queue: makeClient({ url: server?.url ?? '' }).getReliableQueue<string>(uniqueName('bounds'), string),
      calls: callsWhile,
    }
  }
  /** How often each command was called; those that scripts call are counted too. */
  function callsWhile(action: () => Promise<unknown>): Promise<Record<string, number>> {
    return commandCalls(rawTo(server?.port ?? 0), action)
  }

  it('contains and containsMany fetch no message', async () => {
    const { queue, calls } = make()
    await queue.addMany([
      { payload: 'x'.repeat(100_000), id: 'a' },
      { payload: 'x', id: 'b' },
    ])
    const called = await calls(async () => {
      expect([await queue.contains('a'), await queue.contains('unknown')]).to.deep.equal([true, false])
      expect(await queue.containsMany(['a', 'unknown', 'b'])).to.equal(2)
      const many = numbers(1_200)
      expect(await queue.containsMany([...many, 'b'])).to.equal(1)
    })
    expect(called).to.include({ hexists: 1_206 })
    expect(called).to.not.have.any.keys('hget', 'hmget')
  })

  it('listAll reads none of the messages that it passes over', async () => {
    const { queue, calls } = make()
    await queue.addMany(numbers(300).map((id, at) => ({ payload: 'x', id, priority: at % 3 })))
    const ids: string[] = []
    for await (const { id } of queue.listAll()) ids.push(id)
    for (const skip of [0, 99, 150, 299, 300, 1_000_000]) {
      const rest: string[] = []
      const called = await calls(async () => {
        for await (const { id } of queue.listAll({ skip })) rest.push(id)
      })
      expect(rest, `${skip}`).to.deep.equal(ids.slice(skip))
      expect(called['hget'] ?? 0).to.be.at.most(3 * rest.length)
    }
  })

  it('listAll walks over no more than ten thousand ids to where a page begins: it finds those behind them by their rank', async () => {
    const { queue, calls } = make()
    const first = Date.now() + 60 * MINUTE
    const ids = numbers(12_050)
    await queue.addMany(ids.map((id, at) => ({ payload: 'x', id, date: new Date(first + at) })))
    for (const [bounds, from, to] of [
      [{}, 0, 12_050],
      [{ state: 'delayed' }, 0, 12_050],
      [{ visibleFrom: first + 500 }, 500, 12_050],
      [{ visibleTo: first + 11_999 }, 0, 12_000],
      [{ visibleFrom: first + 500, visibleTo: first + 12_019 }, 500, 12_020],
    ] as const) {
      const rest: string[] = []
      const called = await calls(async () => {
        for await (const { id } of queue.listAll({ ...bounds, skip: 10_990, pageSize: 300 })) rest.push(id)
      })
      expect(rest, JSON.stringify(bounds)).to.deep.equal(ids.slice(from + 10_990, to))
      // of the schedules in which there is nothing
      expect(called['zrangebyscore'], JSON.stringify(bounds)).to.equal('state' in bounds ? 10 : 11)
    }
  })

  it('listAll finds messages set aside for paused tasks by their times, skips over them, and reads no others', async () => {
    const { queue, calls } = make()
    const listed = async (options: ListMessages) => {
      const ids: string[] = []
      for await (const { id } of queue.listAll(options)) ids.push(id)
      return ids
    }
    for (const id of ['a', 'b']) await queue.pauseTask(id)
    const times: number[] = []
    for (const task of ['a', 'b', 'free']) {
      await queue.addMany(numbers(50).map((n) => ({ payload: 'x', id: task + n, headers: { task } })))
      const last = (await queue.get(`${task}0`))?.visibleAt ?? NaN
      times.push(last)
      await untilRedisClock(last + 1, rawTo(server?.port ?? 0))
    }
    expect((await queue.pollMany({ count: 100 })).length).to.equal(50)
    await queue.add('x', { id: 'later', delay: MINUTE })
    const [a, b] = [times[0] ?? NaN, times[1] ?? NaN]
    const idsOf = (task: string) =>
      numbers(50)
        .map((n) => `${task}${n}`)
        .sort()
    for (const [options, found] of [
      [{ visibleTo: a }, idsOf('a')],
      [{ visibleFrom: b, state: 'visible' }, idsOf('b')],
      [{ visibleFrom: a, visibleTo: b }, [...idsOf('a'), ...idsOf('b')]],
      [{ state: 'visible' }, [...idsOf('a'), ...idsOf('b')]],
      [{ state: 'delayed' }, ['later']],
      [{ visibleFrom: b + MINUTE / 2, state: 'delayed' }, ['later']],
      [{ visibleFrom: 5, visibleTo: 6 }, []],
    ] as const) {
      const what = JSON.stringify(options)
      for (const skip of [0, 1, 49, 50, 100]) {
        const rest: string[] = []
        const called = await calls(async () => void rest.push(...(await listed({ ...options, skip, pageSize: 7 }))))
        expect(rest, what).to.deep.equal(found.slice(skip))
        expect(called['hget'] ?? 0, what).to.be.at.most(1 + 3 * rest.length)
      }
    }
  })

  it('move by ids moves 500 with one script', async () => {
    const { queue, calls } = make()
    const to = `{${queue.name}}:other`
    const ids = numbers(1_200)
    await queue.addMany(['first', ...ids].map((id) => ({ payload: id, id })))
    expect(await queue.move({ to, ids: ['first'] })).to.equal(1) // from now on the server knows the script
    const called = await calls(async () => {
      expect(await queue.move({ to, ids: [...ids, 'unknown'] })).to.equal(1_200)
    })
    expect(called).to.include({ evalsha: 3 })
    expect(await queue.move({ to, ids: [] })).to.equal(0)
    expect(await queue.size()).to.equal(0)
  })

  it('large messages are read in several replies, all of them and in order', async () => {
    const { queue, calls } = make()
    const ids = numbers(6)
    for (const id of ids) await queue.add(id.repeat(600_000), { id })
    await queue.get('0') // from now on the server knows the script
    const called = await calls(async () => {
      const found = await queue.getAll(['unknown', ...ids])
      expect(found.map((info) => info?.payload.charAt(0))).to.deep.equal([undefined, ...ids])
    })
    expect(called).to.include({ evalsha: 6 })
    const listed: string[] = []
    for await (const { id } of queue.listAll()) listed.push(id)
    expect(listed).to.deep.equal(ids)
  })
})

describe('a repeat', () => {
  afterEach(cleanUp)

  async function onKit(): Promise<{ kit: TestKit; queue: ReliableQueue<string> }> {
    const kit = await createTestKit({ url: redisUrl(), startAt: new Date('2030-01-01T00:00:00Z') })
    onCleanup(() => kit.close())
    const name = kit.uniqueName('repeats')
    forgetReliable(name)
    return { kit, queue: kit.client.getReliableQueue<string>(name, string) }
  }

  for (const how of ['is removed', 'is changed'] as const) {
    it(`that ${how} leaves the message of a tick that has come, also while it waits for its next attempt`, async () => {
      const { kit, queue } = await onKit()
      const endAt = new Date(kit.now.getTime() + MINUTE)
      await queue.upsertSchedule('r', 'x', { every: MINUTE, endAt })
      await kit.advance('1m')
      const message = await queue.poll()
      expect(await message?.negativeAcknowledge({ delay: MINUTE })).to.equal(true)
      if (how === 'is removed') expect(await queue.removeSchedule('r')).to.equal(true)
      else expect(await queue.upsertSchedule('r', 'y', { every: MINUTE, endAt })).to.equal(true)
      expect(await queue.get(`r@${endAt.getTime()}`)).to.include({ payload: 'x', attempts: 1 })
    })
  }

  it('with large messages makes up for missed ticks in several steps', async () => {
    const { kit, queue } = await onKit()
    await queue.upsertSchedule('r', 'x'.repeat(800_000), { every: MINUTE, missed: 'all' })
    await kit.advance('6m')
    const { repeats } = reliableKeys(queue.name)
    const first = await rawClient().hget(repeats, 'r')
    expect(await queue.poll()).to.not.equal(null)
    await eventually(async () => expect(await rawClient().hget(repeats, 'r')).to.not.equal(first))
    expect(await queue.size()).to.equal(2) // the one that was taken, and one more
    const seen = new Set<string>()
    await kit.eventually(async () => {
      for (const { id } of await queue.pollMany({ count: 100 })) seen.add(id)
      return seen.size === 5
    })
  })
})
