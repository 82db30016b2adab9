import { expect } from 'chai'
import type { Redis } from 'ioredis'
import {
  ConnectionError,
  DecodeError,
  InvalidArgumentError,
  codecs,
  type QuarantinedEvent,
  type RedelayedError,
  type ReliableMessage,
  type ReliableQueue,
  type ScheduleOptions,
} from '../../src/index.js'
import { reliableKeys, type ReliableKeys } from '../../src/keys.js'
import { createTestKit, type TestKit } from '../../src/testing/index.js'
import { eventually } from '../support/events.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { startProxy } from '../support/tcp-proxy.js'
import { cleanUp, forgetReliable, makeClient, onCleanup, rawTo, redisNow } from './fixtures.js'

const string = { codec: codecs.string() }
const MINUTE = 60_000
/** A virtual time at which a minute begins. */
const START = new Date('2030-01-01T00:00:00Z')

function make(client = makeClient(), name = uniqueName('repeats')): ReliableQueue<string> {
  forgetReliable(name)
  return client.getReliableQueue<string>(name, string)
}

/** A queue on a clock of the test's. */
async function onKit(): Promise<{ kit: TestKit; queue: ReliableQueue<string> }> {
  const kit = await createTestKit({ url: redisUrl(), startAt: START })
  onCleanup(() => kit.close())
  return { kit, queue: kit.client.getReliableQueue<string>(kit.uniqueName('repeats'), string) }
}

async function allNow(queue: ReliableQueue<string>): Promise<ReliableMessage<string>[]> {
  const all: ReliableMessage<string>[] = []
  for (let some = await queue.pollMany({ count: 100 }); some.length > 0; some = await queue.pollMany({ count: 100 })) {
    all.push(...some)
    await queue.acknowledge(...some)
  }
  return all
}

const minutesOf = (messages: readonly ReliableMessage<string>[]): number[] =>
  messages.map(({ visibleAt }) => (visibleAt - START.getTime()) / MINUTE)

/** Until what a poll has begun beside is there: the message of a tick after `now`. */
async function prepared(queue: ReliableQueue<string>, count: number): Promise<void> {
  await eventually(async () => expect((await queue.counts()).delayed).to.equal(count))
}

describe('repeats', () => {
  afterEach(cleanUp)

  for (const [what, damage] of [
    ['the time of its next tick was deleted', (raw, { ticks }) => raw.zrem(ticks, 'r')],
    ['its next tick is at the end of all times', (raw, { ticks }) => raw.zadd(ticks, 8e15, 'r')],
    [
      'its last tick comes from a clock that was set back',
      async (raw, { repeats }) => {
        const value = (await raw.hget(repeats, 'r')) ?? ''
        return raw.hset(repeats, 'r', value.replace(/^\d+/, String(8e15)))
      },
    ],
  ] as [string, (raw: Redis, keys: ReliableKeys) => Promise<unknown>][]) {
    it(`the same call brings back a repeat when ${what}`, async () => {
      const queue = make()
      const options = { every: 100, missed: 'one' as const }
      expect(await queue.upsertSchedule('r', 'x', options)).to.equal(true)
      expect(await queue.upsertSchedule('r', 'x', options)).to.equal(false)
      await damage(rawClient(), reliableKeys(queue.name))
      expect(await queue.upsertSchedule('r', 'x', options)).to.equal(true)
      for (let n = 0; n < 3; n++) await (await queue.poll({ timeout: 10_000 }))!.acknowledge()
      expect(await queue.upsertSchedule('r', 'x', options)).to.equal(false)
    })
  }

  it('the same call changes nothing while ticks wait for room in the queue, and when no tick is left', async () => {
    const { kit, queue } = await onKit()
    await queue.setConfig({ maxSize: 1 })
    const each = { every: MINUTE }
    await queue.upsertSchedule('full', 'x', each)
    await kit.advance(10 * MINUTE)
    await queue.poll({ visibilityTimeout: 60 * MINUTE })
    await eventually(async () => expect((await queue.counts()).inFlight).to.equal(1))
    expect(await queue.upsertSchedule('full', 'x', each)).to.equal(false)
    await queue.setConfig({ maxSize: null })
    const ends = { every: MINUTE, endAt: new Date(START.getTime() + 11 * MINUTE) }
    await queue.upsertSchedule('ends', 'x', ends)
    await kit.advance(10 * MINUTE)
    await allNow(queue)
    expect(await queue.upsertSchedule('ends', 'x', ends)).to.equal(false)
  })

  it('one message per tick, however many processes poll, each on time and with its payload', async () => {
    const name = uniqueName('repeats')
    const queues = Array.from({ length: 4 }, () => make(makeClient(), name))
    const options = {
      every: 40,
      missed: 'all' as const,
      headers: { a: '1' },
      priority: 3,
      task: 'tidy',
      deliveryLimit: 2,
    }
    const set = await Promise.all(queues.map((queue) => queue.upsertSchedule('tidy-up', 'x', options)))
    expect(set.filter(Boolean)).to.have.length(1)

    const ended = new AbortController()
    const seen: ReliableMessage<string>[] = []
    const polling = queues.map(async (queue) => {
      while (!ended.signal.aborted) {
        const message = await queue.poll({ timeout: Infinity, signal: ended.signal }).catch(() => null)
        if (message === null) continue
        seen.push(message)
        await message.acknowledge()
      }
    })
    await eventually(() => expect(seen.length).to.be.greaterThan(15))
    ended.abort()
    await Promise.all(polling)

    const ticks = seen.map(({ id }) => Number(id.split('@')[1])).sort((a, b) => a - b)
    ticks.forEach((tick, at) => expect(tick).to.equal((ticks[0] ?? 0) + 40 * at))
    for (const message of seen) {
      expect(message.visibleAt).to.equal(Number(message.id.split('@')[1]))
      expect(message.polledAt).to.be.at.least(message.visibleAt)
      expect({ ...message.headers }).to.deep.equal({ a: '1', task: 'tidy' })
      expect(message).to.include({ payload: 'x', priority: 3 })
    }
  })

  it('the next message is in the queue beforehand, at its time', async () => {
    const queue = make()
    const now = await redisNow()
    expect(await queue.upsertSchedule('hourly', 'x', { every: 3_600_000 })).to.equal(true)
    const [next] = await queue.listSchedules()
    const tick = next?.lastPrepared.getTime() ?? 0
    expect(tick)
      .to.be.greaterThan(now)
      .and.at.most(now + 3_601_000)
    expect(tick % 3_600_000).to.equal(0)
    expect(await queue.get(`hourly@${tick}`)).to.include({ visibleAt: tick, state: 'delayed', payload: 'x' })
  })

  it('the same call again changes nothing; another one replaces the schedule and its message', async () => {
    const queue = make()
    const times = { every: 3_600_000, missed: 'all' } as const
    expect(await queue.upsertSchedule('r', 'x', times)).to.equal(true)
    expect(await queue.upsertSchedule('r', 'x', { missed: 'all', every: 3_600_000, headers: {} })).to.equal(false)
    expect((await queue.counts()).total).to.equal(1)

    for (const change of [{ every: 7_200_000 }, { cron: '0 0 1 1 *' }, { cron: '0 0 1 1 *', priority: 1 }]) {
      expect(await queue.upsertSchedule('r', 'x', change), JSON.stringify(change)).to.equal(true)
      expect((await queue.counts()).total).to.equal(1)
    }
    expect(await queue.upsertSchedule('r', 'y', { cron: '0 0 1 1 *', priority: 1 })).to.equal(true)
    const [info] = await queue.listSchedules()
    expect(info).to.include({ name: 'r', payload: 'y', cron: '0 0 1 1 *', timeZone: 'UTC', every: null, priority: 1 })
    expect(await queue.get(`r@${info?.lastPrepared.getTime()}`)).to.include({ payload: 'y', priority: 1 })
  })

  it('ends when it is removed, with the message of the tick to come', async () => {
    const queue = make()
    await queue.upsertSchedule('a', 'x', { every: 3_600_000 })
    await queue.upsertSchedule('b', 'x', { every: 3_600_000 })
    expect(await queue.removeSchedule('a')).to.equal(true)
    expect(await queue.removeSchedule('a')).to.equal(false)
    expect((await queue.listSchedules()).map(({ name }) => name)).to.deep.equal(['b'])
    expect(await queue.size()).to.equal(1)
    expect(await rawClient().zrange(reliableKeys(queue.name).ticks, '0', '-1')).to.deep.equal(['b'])
  })

  it('a worker handles each tick as the task that was named', async () => {
    const { kit, queue } = await onKit()
    const seen: string[] = []
    kit.client.createWorker(queue, {
      tidy: (payload: string) => void seen.push(`${payload} ${kit.now.toISOString()}`),
    })
    await queue.upsertSchedule('daily', 'now', { cron: '0 9 * * *', timeZone: 'Europe/Berlin', task: 'tidy' })
    await kit.advance('2d')
    expect(seen).to.deep.equal(['now 2030-01-01T08:00:00.000Z', 'now 2030-01-02T08:00:00.000Z'])
  })

  it('a group holds back the ticks of one task while it is paused, and no others', async () => {
    const { kit, queue } = await onKit()
    await queue.upsertSchedule('report', 'r', { every: MINUTE, task: 'report', group: 'report' })
    await queue.upsertSchedule('ping', 'p', { every: MINUTE, task: 'ping' })
    const groups = (await queue.listSchedules()).map(({ name, group }) => [name, group])
    expect(groups).to.deep.equal([
      ['ping', null],
      ['report', 'report'],
    ])
    await queue.pauseGroup('report')
    await kit.advance(MINUTE)
    const [ping, ...others] = await allNow(queue)
    expect(others).to.deep.equal([])
    expect(ping).to.deep.include({ payload: 'p', group: null })
    await queue.resumeGroup('report')
    const [report, ...more] = await allNow(queue)
    expect(more).to.deep.equal([])
    expect(report).to.deep.include({ payload: 'r', group: 'report', headers: { task: 'report' }, priority: 0 })
    await prepared(queue, 2)
    expect(await queue.countsOfGroup('report')).to.include({ visible: 0, delayed: 1, inFlight: 0 })
    expect(await queue.removeSchedule('report')).to.equal(true)
    expect(await queue.countsOfGroup('report')).to.include({ visible: 0, delayed: 0, inFlight: 0 })
  })

  describe('ticks that no client polled for', () => {
    const missed: readonly [ScheduleOptions['missed'], number[]][] = [
      [undefined, [1]],
      ['one', [1]],
      ['all', [1, 2, 3, 4, 5]],
      ['none', []],
    ]
    for (const [policy, minutes] of missed) {
      it(`missed: ${policy ?? 'one, the default'}`, async () => {
        const { kit, queue } = await onKit()
        await queue.upsertSchedule('r', 'x', { every: MINUTE, ...(policy && { missed: policy }) })
        await kit.advance('5m')
        const first = await allNow(queue)
        await prepared(queue, 1)
        expect(minutesOf([...first, ...(await allNow(queue))])).to.deep.equal(minutes)
        await kit.advance('1m')
        expect(minutesOf(await allNow(queue))).to.deep.equal([6])
      })
    }

    it('more than one script prepares are prepared one after the other', async () => {
      const { kit, queue } = await onKit()
      await queue.upsertSchedule('r', 'x', { every: MINUTE, missed: 'all' })
      await kit.advance('450m')
      const seen: number[] = []
      await kit.eventually(async () => {
        seen.push(...minutesOf(await allNow(queue)))
        return seen.length >= 450
      })
      expect(seen).to.deep.equal(Array.from({ length: 450 }, (_, at) => at + 1))
    })
  })

  it('ends after endAt, and the same again does not begin it anew', async () => {
    const { kit, queue } = await onKit()
    const options = { every: MINUTE, missed: 'all', endAt: new Date(START.getTime() + 2 * MINUTE) } as const
    await queue.upsertSchedule('r', 'x', options)
    await kit.advance('1m')
    const seen = minutesOf(await allNow(queue))
    await prepared(queue, 1)
    await kit.advance('5m')
    seen.push(...minutesOf(await allNow(queue)))
    expect(seen).to.deep.equal([1, 2])
    await eventually(async () => {
      expect(await rawClient().zcard(reliableKeys(queue.name).ticks)).to.equal(0)
    })
    expect(await queue.upsertSchedule('r', 'x', options)).to.equal(false)
    expect(await queue.size()).to.equal(0)
  })

  it('a process that dies after it took a tick is made up for by the next poll', async () => {
    const { kit, queue } = await onKit()
    await queue.upsertSchedule('r', 'x', { every: MINUTE })
    await kit.advance('1m')
    // as the poll of a process that died before it prepared the next message
    const { ticks } = reliableKeys(queue.name)
    await rawClient().zadd(ticks, kit.now.getTime() + 1_000, 'r')
    expect(minutesOf(await allNow(queue))).to.deep.equal([1])
    expect((await queue.counts()).delayed).to.equal(0)
    await kit.advance('1s')
    expect(await queue.poll()).to.equal(null)
    await prepared(queue, 1)
  })

  it('an unreadable schedule stays where it is, is reported once, and stops nothing', async () => {
    const queue = make()
    const { client, name } = { client: queue, name: queue.name }
    const { repeats, ticks } = reliableKeys(name)
    const quarantined: QuarantinedEvent[] = []
    const errors: RedelayedError[] = []
    client.on('quarantined', (event) => quarantined.push(event)).on('error', (error) => errors.push(error))
    await rawClient().hset(repeats, 'odd', '5 {"every":0,"missed":"one","priority":0,"payload":""}')
    await rawClient().zadd(ticks, 5, 'odd')
    await queue.add('good')
    expect((await queue.poll())?.payload).to.equal('good')
    await eventually(() => expect(quarantined).to.have.length(1))
    expect(quarantined[0]?.error).to.be.instanceOf(DecodeError)
    await eventually(async () => expect(await rawClient().zcard(ticks)).to.equal(0))
    expect(await rawClient().hexists(repeats, 'odd')).to.equal(1)
    expect(await queue.listSchedules()).to.deep.equal([])
    expect(errors.every(({ queue }) => queue === name)).to.equal(true)
    expect(await queue.upsertSchedule('odd', 'x', { every: 3_600_000 })).to.equal(true)
    expect(await queue.listSchedules()).to.have.length(1)
  })

  describe('hostile definitions', () => {
    const base = { every: MINUTE, missed: 'one', priority: 0, payload: 'eA==' }
    const json = (change: object): string => `5 ${JSON.stringify({ ...base, ...change })}`
    const bad: readonly [what: string, value: string | Buffer][] = [
      ['a payload that asks for memory', json({ payload: { length: 100_000_000 } })],
      ['a payload of a number', json({ payload: 100_000_000 })],
      ['a payload that is no base64', json({ payload: 'x?' })],
      ['a payload over maxPayloadBytes', json({ payload: Buffer.alloc(2_000).toString('base64') })],
      ['a payload that is much longer', json({ payload: 'A'.repeat(4_000_000) })],
      ['headers over the limit', json({ headers: { a: 'x'.repeat(70_000) } })],
      ['headers that are no texts', json({ headers: { a: { length: 9 } } })],
      ['an interval of 0', json({ every: 0 })],
      ['an interval as a text', json({ every: '5' })],
      ['a priority of 1e9', json({ priority: 1e9 })],
      ['an unknown field', json({ more: 1 })],
      ['a startAt of a list', json({ startAt: [1] })],
      ['a startAt beyond all dates', json({ startAt: 1e17 })],
      ['a deliveryLimit of 0', json({ deliveryLimit: 0 })],
      ['an endless cron expression', json({ every: undefined, cron: '* '.repeat(10_000) })],
      ['a cron expression that never comes', json({ every: undefined, cron: '0 0 30 2 *', timeZone: 'UTC' })],
      [
        'a cron expression at the end of all dates',
        json({ every: undefined, cron: '* * * * *', startAt: 8.64e15 - 1 }),
      ],
      ['a long time zone', json({ every: undefined, cron: '* * * * *', timeZone: 'z'.repeat(100_000) })],
      ['a tick of nan', 'nan {}'],
      ['a tick before all others', `-1 ${JSON.stringify(base)}`],
      ['a tick beyond all dates', `9007199254740991 ${JSON.stringify(base)}`],
      ['a list', '5 []'],
      ['deep brackets', `5 {"payload":${'['.repeat(100_000)}`],
      ['junk', Buffer.from([0xff, 0, 0x80])],
      ['nothing', ''],
    ]
    it('are set aside once each, with an event, and the good one beside continues', async () => {
      const queue = make(makeClient({ maxPayloadBytes: 1_000 }))
      const { repeats, ticks } = reliableKeys(queue.name)
      const quarantined: QuarantinedEvent[] = []
      const errors: RedelayedError[] = []
      queue.on('quarantined', (event) => quarantined.push(event)).on('error', (error) => errors.push(error))
      for (const [what, value] of bad) await rawClient().hset(repeats, what, value)
      const odd = [Buffer.from([0xff, 0xfe]), Buffer.from('n'.repeat(1_000_000))]
      for (const name of odd) await rawClient().hset(repeats, name, json({}))
      for (const name of [...bad.map(([what]) => what), ...odd]) await rawClient().zadd(ticks, 5, name)
      await queue.upsertSchedule('good', 'x', { every: 50 })
      await eventually(async () => {
        const message = await queue.poll({ timeout: 100 })
        await message?.acknowledge()
        expect(message?.id).to.match(/^good@/)
        expect(await rawClient().zrange(ticks, '0', '-1')).to.deep.equal(['good'])
        expect(quarantined).to.have.length(bad.length + odd.length)
      })
      for (const { error } of quarantined) expect(error).to.be.instanceOf(DecodeError)
      expect(errors.map(({ code }) => code)).to.deep.equal(quarantined.map(() => 'ERR_DECODE'))
      expect(await rawClient().hlen(repeats)).to.equal(bad.length + odd.length) // they stay, but for the empty one
      for (const value of await rawClient().hvals(repeats)) expect(value.length).to.be.lessThan(6_000_000)
    })

    it('missed ticks since 1970 are made up for up to ten thousand, the last ones', async () => {
      const queue = make()
      const { repeats, ticks } = reliableKeys(queue.name)
      const errors: RedelayedError[] = []
      queue.on('error', (error) => errors.push(error))
      await rawClient().hset(repeats, 'all', json({ every: 1, missed: 'all' }).replace('5 ', '0 '))
      await rawClient().zadd(ticks, 5, 'all')
      await queue.setConfig({ maxSize: 300 })
      const first = await eventually(async () => {
        const message = await queue.poll()
        expect(message).to.not.equal(null)
        return message
      })
      expect(Number(first?.id.split('@')[1])).to.be.greaterThan((await redisNow()) - 30_000)
      expect(errors.map(({ code }) => code)).to.include('ERR_TICKS_SKIPPED')
      await eventually(async () => {
        await queue.poll({ visibilityTimeout: 60_000 })
        expect(await queue.size()).to.equal(300)
      })
      await queue.poll()
      expect(await queue.size()).to.equal(300) // the queue is full: nothing is added beyond
    })

    it('messages of missed ticks with large headers are prepared about 1 MiB at a time', async () => {
      const queue = make()
      const { repeats, ticks, messages } = reliableKeys(queue.name)
      queue.on('error', () => undefined) // ticks are skipped
      const headers = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`k${n}`, 'v']))
      await rawClient().hset(repeats, 'large', json({ every: 1, missed: 'all', headers }))
      await rawClient().zadd(ticks, 5, 'large')
      await queue.poll()
      await eventually(async () => expect(await rawClient().hlen(messages)).to.be.greaterThan(0))
      expect(await rawClient().hlen(messages)).to.be.within(10, 20) // 59 KB each; they were 200
    })

    it('cron expressions that never come let the event loop continue in between', async () => {
      const cron = '0 0 31 2,4,6,9,11 *'
      const never = json({ every: undefined, cron, timeZone: 'UTC' })
      const cpuMs = (): number => process.cpuUsage().user / 1_000

      async function computed(): Promise<number> {
        const begin = cpuMs()
        const error = await make()
          .upsertSchedule('r', 'x', { cron })
          .catch((thrown: unknown) => thrown)
        expect(error).to.be.instanceOf(InvalidArgumentError)
        return cpuMs() - begin
      }

      /** The CPU time of the longest turn of the event loop while sixty of them are read. */
      async function longestTurn(): Promise<number> {
        const queue = make()
        const { repeats, ticks } = reliableKeys(queue.name)
        let refused = 0
        queue.on('error', () => undefined).on('quarantined', () => refused++)
        const added = rawClient().pipeline()
        for (let n = 0; n < 60; n++) added.hset(repeats, `never ${n}`, never).zadd(ticks, 5, `never ${n}`)
        await added.exec()
        let [longest, before, watching] = [0, cpuMs(), true]
        const look = (): void => {
          longest = Math.max(longest, cpuMs() - before)
          before = cpuMs()
          if (watching) setImmediate(look)
        }
        setImmediate(look)
        try {
          await Promise.all(Array.from({ length: 6 }, () => queue.poll()))
          await eventually(() => expect(refused).to.equal(60))
        } finally {
          watching = false
        }
        return longest
      }

      const each: number[] = []
      for (let n = 0; n < 6; n++) each.push(await computed()) // the first time takes much longer than the others
      // each turn computes for 20 ms, and ends what it has begun; the rest of its work, and the collection of garbage, come on top
      const limit = 20 + 2 * Math.min(...each.slice(1)) + 15
      const rounds: number[] = []
      while (rounds.length < 4 && !rounds.some((ms) => ms <= limit)) rounds.push(await longestTurn())
      expect(Math.min(...rounds), `CPU ms of the longest turn; one takes ${each.join()}`).to.be.at.most(limit)
    })

    it('missed ticks of many repeats are made up for up to ten thousand together', async () => {
      const queue = make()
      const { repeats, ticks } = reliableKeys(queue.name)
      const errors: RedelayedError[] = []
      queue.on('error', (error) => errors.push(error))
      const names = Array.from({ length: 20 }, (_, n) => `all ${n}`)
      const all = json({ every: 600_000, missed: 'all' }).replace('5 ', '0 ')
      const added = rawClient().pipeline()
      for (const name of names) added.hset(repeats, name, all).zadd(ticks, 5, name)
      await added.exec()
      const startedAt = performance.now()
      await eventually(async () => {
        await queue.poll({ visibilityTimeout: 600_000 })
        const size = await queue.size()
        const seconds = (performance.now() - startedAt) / 1000
        expect(size).to.be.within(1, 10_000 + 1_000 * seconds + names.length)
        expect(await rawClient().zcount(ticks, '-inf', await redisNow())).to.equal(0)
      })
      expect(await queue.size()).to.be.greaterThan(5_000)
      expect(errors.map(({ code }) => code)).to.deep.equal(names.map(() => 'ERR_TICKS_SKIPPED'))
    })

    it('a shutdown after a repeat that asks for memory ends at once', async () => {
      const client = makeClient()
      const queue = make(client)
      const { repeats, ticks } = reliableKeys(queue.name)
      queue.on('error', () => undefined)
      const quarantined = new Promise((resolve) => queue.on('quarantined', resolve))
      await rawClient().hset(repeats, 'a', json({ every: 1, payload: { length: 100_000_000 } }))
      await rawClient().zadd(ticks, 5, 'a')
      const waiting = queue.poll({ timeout: Infinity }).catch((error: unknown) => error)
      await quarantined
      const startedAt = performance.now()
      await client.shutdown()
      expect(performance.now() - startedAt).to.be.lessThan(3_000) // it sent 130 MB at each tick, and waited 14 s for that
      expect(await waiting).to.include({ code: 'ERR_SHUTDOWN' })
    })

    for (const part of ['repeats', 'ticks', 'messages'] as const) {
      it(`a shutdown after a repeat failed because ${part} has another type ends at once`, async () => {
        for (const redis of [undefined, rawClient().duplicate({ maxRetriesPerRequest: null })]) {
          const client = makeClient(redis === undefined ? {} : { redis })
          onCleanup(() => redis?.quit())
          const queue = make(client)
          queue.on('error', () => undefined)
          await rawClient().set(reliableKeys(queue.name)[part], 'in the way')
          const waiting = queue.poll({ timeout: Infinity }).catch((error: unknown) => error)
          const thrown: unknown = await queue.upsertSchedule('r', 'x', { every: 5 }).catch((error: unknown) => error)
          expect(thrown).to.include({ code: 'ERR_WRONG_TYPE' })
          const startedAt = performance.now()
          await client.shutdown()
          expect(performance.now() - startedAt).to.be.lessThan(3_000)
          await waiting
        }
      })
    }

    for (const fault of ['silent', 'gone'] as const) {
      it(`a shutdown after a repeat failed because the server is ${fault} ends in time`, async () => {
        for (const isBorrowed of [false, true]) {
          const proxy = await startProxy({ targetPort: Number(new URL(redisUrl()).port) })
          onCleanup(() => proxy.stop())
          const redis = isBorrowed ? rawTo(proxy.port, { maxRetriesPerRequest: null }) : undefined
          redis?.on('error', () => undefined)
          const url = `redis://127.0.0.1:${proxy.port}`
          const client = makeClient({
            ...(redis === undefined ? { url } : { redis }),
            connectTimeout: 1_000,
            commandTimeout: 1_000,
          })
          client.on('error', () => undefined)
          const queue = make(client)
          queue.on('error', () => undefined)
          await queue.upsertSchedule('r', 'x', { every: 20 })
          const waiting = queue.poll({ timeout: Infinity, signal: new AbortController().signal }).catch(() => undefined)
          if (fault === 'silent') proxy.blackhole(true)
          else {
            proxy.refuse(true)
            proxy.cut()
          }
          const thrown: unknown = await queue.upsertSchedule('s', 'x', { every: 20 }).catch((error: unknown) => error)
          expect(thrown).to.be.instanceOf(ConnectionError)
          const startedAt = performance.now()
          await client.shutdown()
          expect(performance.now() - startedAt).to.be.lessThan(6_000)
          await waiting
          proxy.blackhole(false)
          proxy.refuse(false)
        }
      }).timeout(30_000)
    }

    it('a full queue refuses a repeat', async () => {
      const queue = make()
      await queue.setConfig({ maxSize: 1 })
      await queue.add('x')
      const thrown: unknown = await queue.upsertSchedule('r', 'x', { every: MINUTE }).catch((error: unknown) => error)
      expect(thrown).to.include({ code: 'ERR_QUEUE_FULL', queue: queue.name })
      expect(await queue.listSchedules()).to.deep.equal([])
    })
  })

  describe('refuses', () => {
    const bad: readonly [what: string, name: unknown, payload: unknown, options: unknown, says: RegExp][] = [
      ['a name that is no text', 5, 'x', { every: 1 }, /name/],
      ['an empty name', '', 'x', { every: 1 }, /name/],
      ['a name of 401 bytes', 'n'.repeat(401), 'x', { every: 1 }, /400 bytes/],
      ['no times', 'n', 'x', {}, /one of the two/],
      ['no options', 'n', 'x', undefined, /options/],
      ['an unknown option', 'n', 'x', { every: 1, evry: 2 }, /evry/],
      ['an unknown policy', 'n', 'x', { every: 1, missed: 'some' }, /missed/],
      ['an empty group', 'n', 'x', { every: 1, group: '' }, /group/],
      ['a group of 256 bytes', 'n', 'x', { every: 1, group: 'g'.repeat(256) }, /255 bytes/],
      ['a group with a priority', 'n', 'x', { every: 1, group: 'g', priority: 1 }, /priority/],
      ['priority 10', 'n', 'x', { every: 1, priority: 10 }, /priority/],
      ['headers over 64 KiB', 'n', 'x', { every: 1, headers: { a: 'x'.repeat(65_536) } }, /headers/],
      ['a header that is no text', 'n', 'x', { every: 1, headers: { a: 1 } }, /headers\.a/],
      ['an unknown cron field', 'n', 'x', { cron: '* * * * XYZ' }, /cron/],
      ['no payload', 'n', null, { every: 1 }, /payload/],
    ]
    for (const [what, name, payload, options, says] of bad) {
      it(what, async () => {
        const queue = make()
        const thrown: unknown = await queue
          .upsertSchedule(name as string, payload as string, options as ScheduleOptions)
          .catch((error: unknown) => error)
        expect(thrown).to.be.instanceOf(InvalidArgumentError)
        expect((thrown as Error).message).to.match(says)
        expect(await queue.listSchedules()).to.deep.equal([])
      })
    }
  })
})
