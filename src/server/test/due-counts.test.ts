import { expect } from 'chai'
import { Redis } from 'ioredis'
import { AgendaReader } from '../console/agenda.js'
import { DueMessages, type DuePlace } from '../console/due-messages.js'
import { dueKeysOf } from '../console/reliable-keys.js'
import { Sampler } from '../console/sampler.js'
import type { Topic } from '../topics/topic.js'
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

  const topicsOf = (queues: Readonly<Record<string, readonly string[]>>): Pick<Topics, 'now' | 'openIfThere'> => ({
    now: () => NOW,
    openIfThere: (name) => {
      const shards = queues[name]?.map((queue) => ({ name: queueOf(queue) }))
      return Promise.resolve(shards && ({ name, shards } as unknown as Topic))
    },
  })

  /** Some messages in each of some schedules; gives all their times. */
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

  it('takes no script that counts more than nine hundred times', async () => {
    await filled('full', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 2_000, 2 * HOUR)
    const reader = new AgendaReader(redis, topicsOf({ full: ['full'] }))
    await redis.config('RESETSTAT')
    const agenda = await reader.read(['full'], { from: NOW - HOUR, to: NOW + HOUR, count: 500 })
    expect(agenda.buckets.reduce((sum, { count }) => sum + count, 0)).to.equal(22_000)
    const stats = await redis.info('commandstats')
    const calls = (command: string): number => Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1])
    expect(calls('zcount')).to.be.within(5_000, 11 * 502)
    // the first one is sent once more with its text
    expect(calls('evalsha'), 'each key has more than 400').to.be.at.least(11)
    await redis.config('RESETSTAT')
    await reader.read(['full'], { from: NOW + HOUR, to: NOW + 2 * HOUR, count: 500 })
    expect(/cmdstat_zcount:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]).to.equal('33')
  })

  it('passes over a schedule of another type', async () => {
    await redis.set(keysOf('a')[0] ?? '', 'text')
    await redis.zadd(keysOf('a')[1] ?? '', NOW + 1, 'x')
    const agenda = await new AgendaReader(redis, topicsOf({ a: ['a'] })).read(['a'], {
      from: NOW,
      to: NOW + HOUR,
      count: 2,
    })
    expect(agenda.buckets.map(({ count }) => count)).to.deep.equal([1, 0])
  })

  it('is of thousands of topics, some of them asked for at once', async () => {
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

    it('is counted with sixteen scripts at once, for all requests together', async () => {
      const reader = new AgendaReader(scripts(), topics)
      const agendas = await Promise.all([1, 2, 3].map(() => reader.read(names, hour)))
      expect(agendas.map(({ exact }) => exact)).to.deep.equal([true, true, true])
      expect({ most, sent, running }).to.deep.equal({ most: 16, sent: 600, running: 0 })
    })

    it('ends in the middle of a topic when the time is over', async () => {
      const long = scripts(() => new Promise((resolve) => setTimeout(resolve, 1_100)))
      const agenda = await new AgendaReader(long, topics, 1_000).read(['topic 0'], hour)
      expect({ exact: agenda.exact, sent }).to.deep.equal({ exact: false, sent: 1 })
    })

    it('ends when no one waits for it any more, and others go on', async () => {
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

  it('is listed of the topics that were asked when not all could be asked in time', async () => {
    const names = Array.from({ length: 70 }, (_, n) => `topic ${n}`)
    for (const [n, name] of names.entries()) await redis.zadd(keysOf(name)[0] ?? '', NOW + n, `of ${n}`)
    const { now, openIfThere } = topicsOf(Object.fromEntries(names.map((name) => [name, [name]])))
    const slow = {
      now,
      openIfThere: async (name: string) => {
        await new Promise((resolve) => setTimeout(resolve, 100))
        return openIfThere(name)
      },
    }
    const page = await new DueMessages(redis, slow, 50).list(names, { from: NOW, skip: 0 }, NOW + HOUR, 1)
    expect(page).to.have.property('complete', false)
    expect(page.messages.map(({ id }) => id)).to.deep.equal(['of 0'])
  })

  it('of all topics is counted for a first reader with several questions at once, later with one at a time', async () => {
    const names = Array.from({ length: 200 }, (_, n) => `topic ${n}`)
    const rounds: number[] = []
    let asked = 0
    const topics = {
      now: () => NOW,
      hasJournal: false,
      list: () => {
        rounds.push(0)
        return Promise.resolve(names.map((name) => ({ name, record: { settings: { shards: 1 } } })))
      },
      openIfThere: (name: string) => Promise.resolve({ name, counts: () => counts() }),
    } as unknown as Topics
    const counts = async (): Promise<object> => {
      rounds[rounds.length - 1] = Math.max(rounds.at(-1) ?? 0, ++asked)
      await new Promise((resolve) => setImmediate(resolve))
      asked--
      return { total: 1, visible: 1, delayed: 0, inFlight: 0, dead: 0, oldestMs: 0 }
    }
    const sampler = new Sampler(topics, { of: () => Promise.resolve([[]]) } as never, (error) =>
      expect.fail(String(error)),
    )
    try {
      await eventually(async () => expect((await sampler.read()).topics).to.have.length(200))
      await eventually(() => expect(rounds).to.have.length(2))
      await eventually(() => expect(rounds[1]).to.be.above(0))
      expect(rounds[0]).to.be.within(2, 8)
    } finally {
      await sampler.stop()
    }
    expect(rounds[1]).to.equal(1)
  })
})
