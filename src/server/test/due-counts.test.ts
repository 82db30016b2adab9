import { expect } from 'chai'
import { Redis } from 'ioredis'
import { AgendaReader } from '../console/agenda.js'
import { HeldTopics } from '../console/held-topics.js'
import { DueMessages, type DuePlace } from '../console/due-messages.js'
import { countQueue } from '../console/queue-counts.js'
import { countKeysOf, dueKeysOf, inFlightKeyOf } from '../console/reliable-keys.js'
import { Sampler } from '../console/sampler.js'
import type { Topics } from '../topics/topics.js'
import { eventually } from './support/eventually.js'
import { LosableRedis } from './support/losable-redis.js'

const NOW = 1_800_000_000_000
const HOUR = 3_600_000

describe('what is due when', function () {
  this.timeout(60_000)
  let server: LosableRedis
  let redis: Redis
  before(async () => {
    server = await LosableRedis.start()
    redis = new Redis(server.url)
  })
  after(async () => {
    redis?.disconnect()
    await server?.stop()
  })
  let run = 0
  beforeEach(() => void run++)
  /** Each test has queues of its own. */
  const queueOf = (name: string): string => `due ${run} ${name}`
  const keysOf = (name: string): readonly string[] => dueKeysOf(queueOf(name))

  const topicsOf = (queues: Readonly<Record<string, readonly string[]>>): Pick<Topics, 'now' | 'queuesOf'> => ({
    now: () => NOW,
    queuesOf: (names) =>
      Promise.resolve(names.map((name) => ({ topic: name, queues: (queues[name] ?? []).map(queueOf) }))),
  })

  /** Adds messages to several schedules; returns all their times. */
  async function filled(queue: string, schedules: readonly number[], count: number, most: number): Promise<number[]> {
    const times: number[] = []
    const pipeline = redis.pipeline()
    for (const schedule of schedules) {
      for (let n = 0; n < count; n++) {
        const time = NOW - HOUR + Math.floor(Math.random() * most)
        times.push(time)
        pipeline.zadd(keysOf(queue)[schedule] ?? '', time, `${schedule} ${n}`)
      }
    }
    await pipeline.exec()
    return times
  }

  const between = (times: readonly number[], from: number, to: number): number =>
    times.filter((time) => time >= from && time < to).length

  for (const [parts, most] of [
    [60, 3 * HOUR],
    [500, 3 * HOUR],
    [7, 3 * HOUR],
    [60, HOUR + 50],
  ] as const) {
    it(`is exact, in ${parts} parts, of messages over ${most} ms in all schedules of all shards`, async () => {
      const queues = { a: ['a0', 'a1'], b: ['b'], none: ['empty'] }
      const times = [
        ...(await filled('a0', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 120, most)),
        ...(await filled('a1', [0], 1, most)),
        ...(await filled('b', [0, 10], 300, most)),
      ]
      await redis.zadd(keysOf('b')[3] ?? '', NOW, 'at the beginning', NOW + HOUR, 'at the end')
      times.push(NOW, NOW + HOUR)
      const reader = new AgendaReader(redis, topicsOf(queues))
      const agenda = await reader.read(['a', 'gone', 'b', 'none'], { from: NOW, to: NOW + HOUR, count: parts })
      expect(agenda.buckets).to.have.length(parts)
      for (const { from, to, count } of agenda.buckets) expect(count, String(from)).to.equal(between(times, from, to))
      expect(agenda.buckets.at(-1)?.to).to.equal(NOW + HOUR)
      expect(agenda).to.include({
        exact: true,
        overdue: between(times, -Infinity, NOW),
        later: between(times, NOW + HOUR, Infinity),
      })
    })
  }

  it('runs no script that counts more than nine hundred times', async () => {
    await filled('full', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 2_000, 2 * HOUR)
    const reader = new AgendaReader(redis, topicsOf({ full: ['full'] }))
    await redis.config('RESETSTAT')
    const agenda = await reader.read(['full'], { from: NOW - HOUR, to: NOW + HOUR, count: 500 })
    expect(agenda.buckets.reduce((sum, { count }) => sum + count, 0)).to.equal(22_000)
    const stats = await redis.info('commandstats')
    const calls = (command: string): number => Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1])
    expect(calls('zcount')).to.be.within(5_000, 11 * 504)
    // the first call is repeated with the script's text
    expect(calls('evalsha'), 'each key has more than 400').to.be.at.least(11)
    await redis.config('RESETSTAT')
    await reader.read(['full'], { from: NOW + HOUR, to: NOW + 2 * HOUR, count: 500 })
    expect(/cmdstat_zcount:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]).to.equal('55')
  })

  it('skips a schedule of another type', async () => {
    await redis.set(keysOf('a')[0] ?? '', 'text')
    await redis.zadd(keysOf('a')[1] ?? '', NOW + 1, 'x')
    const agenda = await new AgendaReader(redis, topicsOf({ a: ['a'] })).read(['a'], {
      from: NOW,
      to: NOW + HOUR,
      count: 2,
    })
    expect(agenda.buckets.map(({ count }) => count)).to.deep.equal([1, 0])
  })

  it('is counted over thousands of topics, some of them at once', async () => {
    const names = Array.from({ length: 2_000 }, (_, n) => `topic ${n}`)
    const pipeline = redis.pipeline()
    for (const [n, name] of names.entries()) pipeline.zadd(keysOf(name)[0] ?? '', NOW + n, 'x')
    await pipeline.exec()
    const topics = topicsOf(Object.fromEntries(names.map((name) => [name, [name]])))
    const agenda = await new AgendaReader(redis, topics).read(names, { from: NOW, to: NOW + 2_000, count: 4 })
    expect(agenda.buckets.map(({ count }) => count)).to.deep.equal([500, 500, 500, 500])
    expect(agenda.exact).to.equal(true)
  })

  describe('of many queues', () => {
    const names = Array.from({ length: 100 }, (_, n) => `topic ${n}`)
    const topics = topicsOf(Object.fromEntries(names.map((name) => [name, [name, `${name} b`]])))
    const hour = { from: NOW, to: NOW + HOUR, count: 1 }
    let [running, most, sent] = [0, 0, 0]
    /** Each script counts nothing. */
    const scripts = (during?: () => Promise<unknown>) => ({
      evalsha: async () => {
        sent++
        most = Math.max(most, ++running)
        await (during?.() ?? new Promise((resolve) => setImmediate(resolve)))
        running--
        return [0, 0, 0]
      },
      eval: () => Promise.reject(new Error('it was not asked for')),
    })
    beforeEach(() => ([running, most, sent] = [0, 0, 0]))

    it('is counted with 32 scripts at once, for all requests together', async () => {
      const reader = new AgendaReader(scripts(), topics)
      const agendas = await Promise.all([1, 2, 3].map(() => reader.read(names, hour)))
      expect(agendas.map(({ exact }) => exact)).to.deep.equal([true, true, true])
      expect({ most, sent, running }).to.deep.equal({ most: 32, sent: 600, running: 0 })
    })

    it('ends in the middle of a topic when the time is over', async () => {
      // a script takes longer than the agenda may
      const long = scripts(() => new Promise((resolve) => setTimeout(resolve, 1_100)))
      const agenda = await new AgendaReader(long, topics, 1_000).read(['topic 0'], hour)
      expect({ exact: agenda.exact, sent }).to.deep.equal({ exact: false, sent: 1 })
    })

    it('ends when its reader is gone, and others continue', async () => {
      const reader = new AgendaReader(scripts(), topics)
      const [left, other] = await Promise.all([
        reader.read(names, hour, () => sent > 0),
        reader.read(['topic 1'], hour),
      ])
      expect([left.exact, other.exact]).to.deep.equal([false, true])
      expect(sent).to.equal(3)
    })
  })

  it('is listed exactly over thousands of topics, the earliest first, in pages', async () => {
    const names = Array.from({ length: 2_500 }, (_, n) => `topic ${n}`)
    const pipeline = redis.pipeline()
    // the later topics have the earlier messages
    for (const [n, name] of names.entries()) {
      pipeline.zadd(keysOf(name)[n % 11] ?? '', NOW + 2 * (2_500 - n), `first of ${n}`)
      pipeline.zadd(keysOf(name)[0] ?? '', NOW + HOUR, 'later', NOW - 1, 'before')
    }
    await pipeline.exec()
    const topics = topicsOf(Object.fromEntries(names.map((name) => [name, [name]])))
    const due = new DueMessages(redis, topics, 60_000) // a busy machine is given the time
    const first = await due.list(names, { from: NOW, skip: 0 }, NOW + HOUR, 3)
    expect(first).to.deep.include({ complete: true, next: { from: NOW + 6, skip: 1 } })
    expect(first.messages.map(({ id }) => id)).to.deep.equal(['first of 2499', 'first of 2498', 'first of 2497'])
    const second = await due.list(names, first.next as DuePlace, NOW + HOUR, 2)
    expect(second.messages.map(({ id }) => id)).to.deep.equal(['first of 2496', 'first of 2495'])
  })

  it('is listed with what is set aside for paused tasks, by when it was visible', async () => {
    const aside = (task: number, at: number): number => 2 ** 53 + 2 * (task * 2 ** 43 + at)
    await redis.zadd(
      keysOf('a')[3] ?? '',
      aside(1, NOW - 30),
      'a1',
      aside(1, NOW - 10),
      'a3',
      aside(511, NOW - 20),
      'a2',
    )
    await redis.zadd(keysOf('a')[10] ?? '', aside(511, NOW - HOUR - 1), 'before', NOW - 5, 'free')
    await redis.zadd(keysOf('b')[0] ?? '', aside(7, NOW - 15), 'b', aside(7, NOW), 'behind')
    const due = new DueMessages(redis, topicsOf({ a: ['a'], b: ['b'] }), 60_000)
    const found: string[] = []
    for (let place: DuePlace | undefined = { from: NOW - HOUR, skip: 0 }; place;) {
      const { messages, next, complete } = await due.list(['a', 'b'], place, NOW, 2)
      expect(complete).to.equal(true)
      for (const { id, dueAt, state, priority } of messages) found.push(`${id} ${dueAt - NOW} ${state} ${priority}`)
      place = next
    }
    expect(found).to.deep.equal([
      ...['a1 -30 visible 3', 'a2 -20 visible 3', 'b -15 visible 0', 'a3 -10 visible 3', 'free -5 visible 0'],
    ])
  })

  it('is listed only in part when messages of hundreds of tasks are set aside', async () => {
    for (let task = 1; task <= 201; task++) {
      await redis.zadd(keysOf('a')[0] ?? '', 2 ** 53 + 2 * (task * 2 ** 43 + NOW + task), `of ${task}`)
    }
    const due = new DueMessages(redis, topicsOf({ a: ['a'] }), 60_000)
    const page = await due.list(['a'], { from: NOW, skip: 0 }, NOW + HOUR, 1_000)
    expect(page.complete).to.equal(false)
    expect(page.messages).to.have.length(200)
  })

  it('is listed for at least some topics, however long the list of all took', async () => {
    await redis.zadd(keysOf('a')[0] ?? '', NOW + 1, 'x')
    const topics = topicsOf({ a: ['a'], b: ['b'] })
    const slow = {
      ...topics,
      queuesOf: async (names: readonly string[]) => {
        await new Promise((resolve) => setTimeout(resolve, 30)) // longer than the list may take
        return topics.queuesOf(names)
      },
    }
    const page = await new DueMessages(redis, slow, 0).list(['a', 'b'], { from: NOW, skip: 0 }, NOW + HOUR, 1)
    expect(page.messages.map(({ id }) => id)).to.deep.equal(['x'])
  })

  it('is listed for the topics that were asked when not all could be asked in time', async () => {
    const names = Array.from({ length: 70 }, (_, n) => `topic ${n}`)
    for (const [n, name] of names.entries()) await redis.zadd(keysOf(name)[0] ?? '', NOW + n, `of ${n}`)
    // a Redis that answers each request late
    const slow = {
      pipeline: (commands: string[][]) => redis.pipeline(commands),
      evalsha: async (...args: Parameters<Redis['evalsha']>) => {
        await new Promise((resolve) => setTimeout(resolve, 100)) // longer than the list may take
        return redis.evalsha(...args)
      },
      eval: (...args: Parameters<Redis['eval']>) => redis.eval(...args),
    }
    const topics = topicsOf(Object.fromEntries(names.map((name) => [name, [name]])))
    const page = await new DueMessages(slow, topics, 50).list(names, { from: NOW, skip: 0 }, NOW + HOUR, 1)
    expect(page).to.have.property('complete', false)
    expect(page.messages.map(({ id }) => id)).to.deep.equal(['of 0'])
  })

  it('finds what is in flight in a few of thousands of topics without opening any', async () => {
    const names = Array.from({ length: 1_200 }, (_, n) => `topic ${n}`)
    const topics = topicsOf(Object.fromEntries(names.map((name) => [name, [`${name} a`, `${name} b`]])))
    const held = new HeldTopics(redis, topics)
    expect(await held.of(names)).to.deep.equal([])
    await redis.zadd(inFlightKeyOf(queueOf('topic 3 b')), NOW, 'x')
    await redis.zadd(inFlightKeyOf(queueOf('topic 1100 a')), NOW, 'x')
    expect(await held.of(names.slice(2))).to.deep.equal(['topic 3', 'topic 1100'])
  })

  it('is counted for one queue in all its schedules, with pauses and foreign data', async () => {
    const [messages = '', config = '', dead = '', inFlight = ''] = countKeysOf(queueOf('a'))
    await redis.hset(messages, Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`m${n}`, ''])))
    await redis.hset(dead, 'd', '')
    await redis.hset(config, { pollPaused: '1', addPaused: 'x'.repeat(1_000) })
    await redis.zadd(inFlight, NOW - 10, 'm0', NOW + 10, 'm1')
    await redis.zadd(keysOf('a')[0] ?? '', NOW + 10, 'm2', NOW + 20, 'm3')
    await redis.zadd(keysOf('a')[10] ?? '', NOW - 30, 'm4', NOW + 20, 'm5')
    expect(await countQueue(redis, queueOf('a'), NOW)).to.deep.equal({
      ...{ total: 6, visible: 2, delayed: 3, inFlight: 1, dead: 1, oldestMs: 30, paused: ['receive'] },
      hasAside: false,
    })
    await redis.hset(messages, 'm6', '')
    await redis.zadd(keysOf('a')[1] ?? '', '-inf', 'm6')
    expect(await countQueue(redis, queueOf('a'), NOW)).to.include({ total: 7, visible: 3, oldestMs: 0 })
    await redis.zadd(keysOf('a')[10] ?? '', 2 ** 53 + 2 ** 45, 'm5')
    expect(await countQueue(redis, queueOf('a'), NOW)).to.include({ visible: 4, delayed: 2, hasAside: true })
    expect(await countQueue(redis, queueOf('none'), NOW)).to.include({ total: 0, visible: 0, oldestMs: 0 })
  })

  it('is counted over all topics with many scripts at once for a first reader, later at a bounded rate', async () => {
    const names = Array.from({ length: 600 }, (_, n) => `topic ${n}`)
    const topics = {
      ...topicsOf(Object.fromEntries(names.map((name) => [name, [name]]))),
      list: () => Promise.resolve(names.map((name) => ({ name }))),
      hasJournal: false,
      openIfThere: () => Promise.reject(new Error('no topic is opened to be counted')),
      journalLag: () => Promise.reject(new Error('there is no journal')),
    }
    await redis.hset(countKeysOf(queueOf('topic 7'))[0] ?? '', 'a', '', 'b', '')
    await redis.zadd(keysOf('topic 7')[10] ?? '', NOW - 5, 'a', NOW + 1, 'b')
    let [running, most, sent] = [0, 0, 0]
    const counting = {
      evalsha: async (...args: Parameters<Redis['evalsha']>) => {
        sent++
        most = Math.max(most, ++running)
        return redis.evalsha(...args).finally(() => running--)
      },
      eval: (...args: Parameters<Redis['eval']>) => redis.eval(...args),
    }
    const sampler = new Sampler(topics, counting, (error) => expect.fail(String(error)))
    try {
      await eventually(async () => expect((await sampler.read()).topics).to.have.length(600))
      const found = (await sampler.read()).topics.find(({ topic }) => topic === 'topic 7')
      expect(found).to.deep.include({
        total: 2,
        visible: 1,
        delayed: 1,
        inFlight: 0,
        dead: 0,
        oldestMs: 5,
        paused: [],
        hasAside: false,
      })
      expect([most, sent]).to.deep.equal([64, 600])
      most = 0
      await eventually(() => expect(sent).to.be.above(601))
    } finally {
      await sampler.stop()
    }
    expect(most).to.be.within(1, 16)
    expect(sent).to.be.below(1_200)
  })
})
