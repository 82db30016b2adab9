/** `redelayed doctor`: each finding is provoked on a real Redis, found, repaired where `--fix` repairs it, and gone then. */
import { expect } from 'chai'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { codecs } from '../../src/index.js'
import { deadLettersOf, prefixName, queueKeys, reliableKeys } from '../../src/keys.js'
import { openAccess } from '../../src/doctor/access.js'
import { examine } from '../../src/doctor/doctor.js'
import { inspectBoth } from '../../src/doctor/inspect-queue.js'
import { inspectReliable } from '../../src/doctor/inspect-reliable.js'
import { TimeLimit } from '../../src/doctor/time-limit.js'
import { old, ordered, senderOf, unordered } from '../lua/support.js'
import { cli, inProcess, type Result } from '../support/cli.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startCluster, startRedis, type RedisServer } from '../support/redis-server.js'
import { placesOf } from '../../src/sharding/id-places.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import {
  cleanUp,
  forgetReliable,
  javaOffer,
  makeClient,
  makePair,
  onCleanup,
  rawKeys,
  rawState,
  rawTo,
  redisNow,
} from './fixtures.js'

interface FoundFinding {
  readonly code: string
  readonly level: string
  readonly queue: string | null
  readonly server: string | null
  readonly found: string
  readonly figures: Readonly<Record<string, unknown>>
  readonly means: string
  readonly repair: string
  readonly fixable: boolean
}

interface Document {
  readonly server: { cluster: boolean; servers: Readonly<Record<string, unknown>>[] }
  readonly queues: Readonly<Record<string, unknown>>[]
  readonly reliableQueues: Readonly<Record<string, unknown>>[]
  readonly findings: FoundFinding[]
  readonly notExamined: number
  readonly fixed: { queue: string; code: string; count: number; error?: string }[]
  readonly left?: FoundFinding[]
}

const doctor = (args: readonly string[], url = redisUrl()): Promise<Result> =>
  inProcess(['doctor', '--url', url, ...args])

async function examined(
  args: readonly string[],
  url?: string,
): Promise<Document & { exit: number | null; err: string }> {
  const { code, out, err } = await doctor(['--json', ...args], url)
  return { ...(JSON.parse(out) as Document), exit: code, err }
}

const codesOf = (findings: readonly FoundFinding[] = [], about: 'queue' | 'server' = 'queue'): string[] =>
  findings.filter((finding) => finding[about] !== null).map(({ level, code }) => `${level} ${code}`)

/** A process that holds the queue, as far as anybody can see. */
async function subscribe(name: string): Promise<void> {
  const subscriber = rawClient().duplicate()
  onCleanup(() => subscriber.quit())
  await subscriber.subscribe(rawKeys(name).channel)
}

/** Finds exactly this about the queue, repairs it, and finds `left` then; a second run has nothing to repair. */
async function expectRepaired(
  name: string,
  code: string,
  count: number,
  left: readonly string[] = [],
): Promise<Document> {
  const before = await examined([name])
  const found = before.findings.filter((finding) => finding.code === code)
  expect(found.map(({ queue, fixable }) => ({ queue, fixable }))).to.deep.equal([{ queue: name, fixable: true }])
  expect(before.exit).to.equal(1)
  const { fixed, left: after, err } = await examined([name, '--fix'])
  expect(err).to.include('--fix does this now').and.include(`${name}: ${code}: `)
  expect(fixed.filter((step) => step.code === code)).to.have.lengthOf(1)
  expect(fixed.find((step) => step.code === code)).to.deep.include({ queue: name, count })
  expect(codesOf(after)).to.deep.equal(left)
  expect(codesOf((await examined([name])).findings)).to.deep.equal(left)
  return before
}

describe('redelayed doctor', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  const HOUR = 3_600_000
  const QUARANTINED = ['warning quarantine']

  describe('about a queue', () => {
    it('finds nothing in a healthy one with both layouts, and changes nothing', async () => {
      const { delayed, name } = makePair('redisson')
      await delayed.offer('a', HOUR)
      await makePair('compact', { queueName: name }).delayed.offer('b', HOUR)
      await eventually(async () => expect((await delayed.stats()).subscribers).to.equal(2))
      const state = await rawState(name)
      const { findings, queues, fixed } = await examined([name])
      expect(codesOf(findings)).to.deep.equal([])
      expect(queues[0]).to.deep.include({ queue: name, pending: 2, overdue: 0, subscribers: 2, missing: 0, orphans: 0 })
      expect(fixed).to.deep.equal([])
      expect(await rawState(name)).to.deep.equal(state)
    })

    it('no-subscriber: until a client listens', async () => {
      const name = uniqueName('doctor')
      await javaOffer(name, 'x', Date.now() + HOUR)
      expect(codesOf((await examined([name])).findings)).to.deep.equal(['warning no-subscriber'])
      const { fixed, err } = await examined([name, '--fix'])
      expect({ fixed, err: err.split('\n')[0] }).to.deep.equal({
        fixed: [],
        err: '--fix finds nothing that it can repair',
      })
      await subscribe(name)
      expect(codesOf((await examined([name])).findings)).to.deep.equal([])
    })

    it('overdue: delivered by --fix, in order', async () => {
      const name = uniqueName('doctor')
      const now = await redisNow()
      await javaOffer(name, 'second', now - 2_000)
      await javaOffer(name, 'first', now - 7_200_000)
      await javaOffer(name, 'just now', now)
      await javaOffer(name, 'later', now + HOUR)
      await subscribe(name)
      const { findings, queues } = await expectRepaired(name, 'overdue', 3)
      expect(codesOf(findings)).to.deep.equal(['warning overdue'])
      expect(findings.find(({ code }) => code === 'overdue')?.figures).to.deep.include({ overdue: 2, subscribers: 1 })
      expect(queues[0]?.['mostOverdueMs']).to.be.within(7_200_000, 7_260_000)
      expect(await rawClient().lrange(name, 0, -1)).to.deep.equal(['first', 'second', 'just now'])
      expect(await rawClient().zcard(rawKeys(name).timeouts)).to.equal(1)
    })

    it('overdue: an error without a subscriber', async () => {
      const name = uniqueName('doctor')
      await javaOffer(name, 'x', (await redisNow()) - 5_000)
      const { findings } = await expectRepaired(name, 'overdue', 1)
      expect(codesOf(findings)).to.deep.equal(['error overdue', 'warning no-subscriber'])
      expect(findings.find(({ code }) => code === 'overdue')?.found).to.include('no process holds this delayed queue')
    })

    it("order-missing: pushed by --fix, those of layout 'compact' and all others left alone", async () => {
      const name = uniqueName('doctor')
      await subscribe(name)
      const { timeouts, order } = rawKeys(name)
      const due = (await redisNow()) + HOUR
      const [lost, lostOld, free] = [ordered('lost', 'L'), old('lost old', 'O'), unordered('free', 'F', 5)]
      const kept = await javaOffer(name, 'kept', due)
      await rawClient().zadd(timeouts, ...[lost, lostOld, free].flatMap((entry) => [due, entry]))
      const { findings } = await expectRepaired(name, 'order-missing', 2, ['info old-format'])
      expect(findings.find(({ code }) => code === 'order-missing')?.figures).to.deep.equal({ missing: 2, suspected: 0 })
      const [first, ...rest] = await rawClient().lrangeBuffer(order, 0, -1)
      expect(first).to.deep.equal(kept)
      expect(rest).to.have.deep.members([lost, lostOld])
      expect(await rawClient().zcard(timeouts)).to.equal(4)
    })

    it('compares a list whose ids do not fit into memory share by share, and counts nothing twice', async () => {
      const name = uniqueName('doctor')
      const { timeouts, order } = rawKeys(name)
      const due = (await redisNow()) + HOUR
      for (let i = 0; i < 600; i++) await javaOffer(name, `kept ${i}`, due + (i % 3), { publish: false })
      const lost = Array.from({ length: 20 }, (_, i) => ordered(`${i} lost`, 'L'))
      await rawClient().zadd(timeouts, ...lost.flatMap((entry) => [due, entry]), -1, 'negative', due, 'junk')
      await rawClient().rpush(order, 'gone')
      const inspected = await inspectBoth(senderOf(rawClient()), queueKeys(name), () => {}, { idsAtOnce: 100 })
      expect(inspected.missing.map(({ prefix }) => prefix)).to.have.deep.members(
        lost.map((entry) => entry.subarray(0, 9)),
      )
      const { missing: _, ...counts } = inspected
      expect(counts).to.deep.equal({ suspected: 0, orphans: 1, negative: 1, malformed: 1, malformedDue: 0, old: 0 })
    })

    it('order-orphan: moved to the quarantine by --fix, also many among many', async () => {
      const name = uniqueName('doctor')
      await subscribe(name)
      const { order, quarantine } = rawKeys(name)
      const due = (await redisNow()) + HOUR
      const kept: Buffer[] = []
      for (let i = 0; i < 700; i++) {
        kept.push(await javaOffer(name, `kept ${i}`, due + i, { publish: false }))
        if (i % 2 === 0) await rawClient().rpush(order, ordered(`gone ${i}`, 'gone'))
      }
      const { findings } = await expectRepaired(name, 'order-orphan', 350, QUARANTINED)
      expect(findings.find(({ code }) => code === 'order-orphan')?.figures).to.deep.equal({ orphans: 350 })
      expect(await rawClient().lrangeBuffer(order, 0, -1)).to.deep.equal(kept)
      const records = await rawClient().lrangeBuffer(quarantine, 0, -1)
      expect(records).to.have.lengthOf(350)
      expect(records[0]?.subarray(-29 + 4).toString('latin1')).to.include('gone')
      expect(records[0]?.toString('latin1')).to.match(/^order-orphan \d{13} /)
    })

    it('malformed: moved to the quarantine by --fix when due, left alone before', async () => {
      const name = uniqueName('doctor')
      await subscribe(name)
      const { timeouts, quarantine } = rawKeys(name)
      await rawClient().zadd(timeouts, (await redisNow()) + HOUR, 'later')
      const [early] = (await examined([name])).findings.filter(({ code }) => code === 'malformed')
      expect(early).to.deep.include({ level: 'warning', fixable: false, figures: { malformed: 1, malformedDue: 0 } })
      await rawClient().zadd(timeouts, 5, 'garbage')
      await expectRepaired(name, 'malformed', 1, ['warning malformed', ...QUARANTINED])
      expect(await rawClient().zrange(timeouts, '0', '-1')).to.deep.equal(['later'])
      expect(await rawClient().lindex(quarantine, 0)).to.match(/^malformed \d+ garbage$/)
    })

    it('negative-due: moved to the quarantine by --fix, more than one script takes', async () => {
      const name = uniqueName('doctor')
      await subscribe(name)
      const entries = Array.from({ length: 250 }, (_, i) => [String(-1 - i), ordered(`n${i}`, 'x')] as const)
      await rawClient().zadd(rawKeys(name).timeouts, ...entries.flat())
      await expectRepaired(name, 'negative-due', 250, QUARANTINED)
      expect(await rawClient().llen(rawKeys(name).quarantine)).to.equal(250)
    })

    it('reports and counts the deliveries that come with setting malformed or negative entries aside', async () => {
      for (const code of ['malformed', 'negative-due'] as const) {
        const name = uniqueName('doctor')
        await subscribe(name)
        // due, but not overdue yet when it is examined
        const now = await redisNow()
        const entry = code === 'malformed' ? ([now, 'junk'] as const) : ([-1, ordered('n', 'x')] as const)
        await rawClient().zadd(rawKeys(name).timeouts, ...entry)
        for (let i = 0; i < 3; i++) await javaOffer(name, `due ${i}`, now)
        const { findings, fixed, err } = await examined([name, '--fix'])
        expect(codesOf(findings)).to.include(`warning ${code}`)
        expect(err).to.include(`${name}: overdue: moves what is due to the queue`).and.include(`${name}: ${code}: `)
        expect(fixed.map((step) => [step.code, step.count])).to.deep.equal([
          ['overdue', 3],
          [code, 1],
        ])
        expect(await rawClient().llen(name)).to.equal(3)
      }
    })

    it('old-format: worth knowing, and exit code 0 when the server gives no reason either', async () => {
      const name = uniqueName('doctor')
      await subscribe(name)
      const { timeouts, order } = rawKeys(name)
      const entry = old('old', 'x')
      await rawClient().zadd(timeouts, (await redisNow()) + HOUR, entry)
      await rawClient().rpush(order, entry)
      expect(codesOf((await examined([name])).findings)).to.deep.equal(['info old-format'])
    })

    it('quarantine: until the list is deleted', async () => {
      const name = uniqueName('doctor')
      await rawClient().rpush(rawKeys(name).quarantine, 'malformed 1 x')
      expect(codesOf((await examined([name])).findings)).to.deep.equal(QUARANTINED)
      await rawClient().del(rawKeys(name).quarantine)
      expect(codesOf((await examined([name])).findings)).to.deep.equal([])
    })

    it('wrong-type: each of the keys', async () => {
      for (const which of ['destination', 'timeouts', 'order', 'quarantine'] as const) {
        const name = uniqueName('doctor')
        await rawClient().hset(rawKeys(name)[which], 'in the', 'way')
        const { findings, queues } = await examined([name, '--fix'])
        expect(codesOf(findings)).to.deep.equal(['error wrong-type'])
        expect(findings.at(-1)?.figures).to.deep.include({ key: rawKeys(name)[which], type: 'hash' })
        expect(queues).to.deep.equal([{ queue: name, subscribers: 0 }])
      }
    })

    describe('that is reliable', () => {
      const ESCAPES = '\u001b[2J\u202e'

      it('finds nothing in a healthy one', async () => {
        const name = uniqueName('doctor')
        forgetReliable(name)
        const queue = makeClient().getReliableQueue(name, { codec: codecs.json() })
        await queue.setConfig({ visibilityTimeout: 5_000, deliveryLimit: 3, deadLetters: false })
        await queue.upsertSchedule('hourly', 1, { every: HOUR })
        const { findings, reliableQueues } = await examined([name])
        expect(codesOf(findings)).to.deep.equal([])
        expect(reliableQueues).to.deep.equal([{ queue: name, repeats: 1 }])
      })

      it('group-claims-lost: groups that have more claims than consumers have messages', async () => {
        const name = uniqueName('doctor')
        forgetReliable(name)
        const queue = makeClient().getReliableQueue(name)
        await queue.setConfig({ groupConcurrency: 2 })
        for (const group of ['a', 'b', 'b']) await queue.add(1, { group })
        await queue.pollMany({ count: 3 })
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
        const { groups } = reliableKeys(name)
        await rawClient().hset(groups, 'b', '4 ')
        const { findings } = await examined([name])
        expect(codesOf(findings)).to.deep.equal(['warning group-claims-lost'])
        const lost = findings.find(({ code }) => code === 'group-claims-lost')
        expect(lost!.figures).to.deep.equal({ counted: 5, held: 3, group: 'b', most: 4 })
      })

      it('expires: keys that Redis will delete, but not the claims of a rate', async () => {
        const name = uniqueName('doctor')
        forgetReliable(name)
        const queue = makeClient().getReliableQueue(name)
        await queue.setConfig({ rateLimit: { max: 5, perMs: HOUR } })
        await queue.addMany([{ payload: 1 }, { payload: 2, delay: HOUR }])
        await queue.poll()
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
        const { messages, config } = reliableKeys(name)
        for (const key of [messages, config]) await rawClient().pexpire(key, HOUR)
        const { findings } = await examined([name])
        expect(codesOf(findings)).to.deep.equal(['warning expires'])
        expect(findings.find(({ code }) => code === 'expires')!.figures).to.include({ keys: 2 })
        const pair = makePair()
        await pair.delayed.offer('x', HOUR)
        const before = codesOf((await examined([pair.name])).findings)
        await pair.delayed.expire(HOUR)
        const after = await examined([pair.name])
        expect(codesOf(after.findings).filter((code) => !before.includes(code))).to.deep.equal(['info expires'])
        expect(after.findings.find(({ code }) => code === 'expires')!.figures).to.include({ keys: 2 })
        await pair.delayed.clearExpire()
        expect(codesOf((await examined([pair.name])).findings)).to.deep.equal(before)
      })

      it('minutes-lost and expires: buckets of a wheel, also of a queue of which nothing else is left', async () => {
        const name = uniqueName('doctor')
        const client = makeClient()
        const delayed = client.getDelayedQueue(client.getQueue(name), { layout: 'wheel', deliver: false })
        onCleanup(() => delayed.delete())
        await subscribe(name)
        await delayed.offerAll([
          { value: 1, delay: HOUR },
          { value: 2, delay: 2 * HOUR },
          { value: 3, delay: 29 * 24 * HOUR },
        ])
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
        const { wheel, horizon } = queueKeys(name)
        const [first, second, third] = await rawClient().zrange(wheel, '0', '-1')
        await rawClient().del(wheel, horizon)
        for (const args of [[], [name]]) {
          const { findings } = await examined(args)
          const lost = findings.filter(({ queue, code }) => queue === name && code === 'minutes-lost')
          expect(
            lost.map(({ figures, level }) => ({ level, ...figures })),
            args.join(),
          ).to.deep.equal([{ level: 'warning', lacking: 3 }])
        }
        expect(await rawClient().exists(wheel)).to.equal(0)
        await expectRepaired(name, 'minutes-lost', 3)
        expect(await rawClient().zrange(wheel, '0', '-1')).to.deep.equal([first, second, third])
        expect(await delayed.size()).to.equal(3)
        const bucket = prefixName(`redelayed:wheel-${third}`, name)
        await rawClient().pexpire(bucket, HOUR)
        for (const args of [[], [name]]) {
          const { findings } = await examined(args)
          const expires = findings.filter(({ queue, code }) => queue === name && code === 'expires')
          expect(expires.map(({ level }) => level)).to.deep.equal(['warning'])
          expect(expires[0]!.figures).to.include({ keys: 1, first: bucket })
        }
      })

      it('minutes-lost: minutes with a wrong time, and those of any time; bucket-misnamed: lists with other names', async () => {
        const name = uniqueName('doctor')
        const client = makeClient()
        const delayed = client.getDelayedQueue(client.getQueue(name), { layout: 'wheel', deliver: false })
        onCleanup(() => delayed.delete())
        await subscribe(name)
        await delayed.offerAll([1, 2, 60 * 24].map((hours) => ({ value: hours, delay: hours * HOUR })))
        const { wheel } = queueKeys(name)
        const [first, second, third] = await rawClient().zrange(wheel, '0', '-1')
        const times = await rawClient().zrange(wheel, '0', '-1', 'WITHSCORES')
        const bucket = (minute: string | number): string => prefixName(`redelayed:wheel-${minute}`, name)
        const old = Math.floor(Date.now() / 60_000) - 401 * 24 * 60
        await rawClient().rename(bucket(first!), bucket(old))
        await rawClient().zrem(wheel, first!, third!)
        await rawClient().zadd(wheel, 'inf', second!)
        const found = async (args: string[], wanted: string): Promise<unknown[]> => {
          const { findings } = await examined(args)
          const mine = findings.filter(({ queue, code }) => queue === name && code === wanted)
          return mine.map(({ figures, level }) => ({ level, ...figures }))
        }
        expect(await found([name], 'minutes-lost')).to.deep.equal([{ level: 'warning', lacking: 1 }])
        expect(await found([], 'minutes-lost')).to.deep.equal([{ level: 'warning', lacking: 3 }])
        const misnamed = [bucket('x'), bucket(`0${old}`), bucket('7.5')]
        onCleanup(() => rawClient().del(...misnamed, bucket('text')))
        await rawClient().set(bucket('text'), 'x')
        for (const key of misnamed) await rawClient().rpush(key, 'x')
        const [error] = (await found([], 'bucket-misnamed')) as { level: string; keys: number; first: string }[]
        expect(error).to.include({ level: 'error', keys: 3 })
        expect(misnamed).to.include(error!.first)
        const bytes = Buffer.from(bucket('\xff'), 'latin1')
        onCleanup(() => rawClient().del(bytes))
        await rawClient().del(...misnamed)
        await rawClient().rpush(bytes, 'x')
        expect(await found([], 'bucket-misnamed')).to.deep.equal([{ level: 'error', keys: 1, first: bucket('\\xff') }])
        await examined(['--fix'])
        expect(await found([], 'minutes-lost')).to.deep.equal([])
        await rawClient().rename(bucket(old), bucket(first!))
        await rawClient().zrem(wheel, String(old))
        await examined(['--fix'])
        expect(await rawClient().zrange(wheel, '0', '-1', 'WITHSCORES')).to.deep.equal(times)
      })

      it('wrong-type: buckets of a delayed queue, and their cancelled ids', async () => {
        const name = uniqueName('doctor')
        const client = makeClient()
        const delayed = client.getDelayedQueue(client.getQueue(name), { layout: 'wheel', deliver: false })
        onCleanup(() => delayed.delete())
        await subscribe(name)
        await delayed.offerAll([1, 2].map((hours) => ({ value: hours, delay: hours * HOUR })))
        const [first, second] = await rawClient().zrange(queueKeys(name).wheel, '0', '-1')
        const bucket = prefixName(`redelayed:wheel-${first!}`, name)
        const gone = prefixName(`redelayed:gone-${second!}`, name)
        onCleanup(() => rawClient().del(bucket, gone))
        const found = async (args: string[]): Promise<unknown[]> => {
          const { findings } = await examined(args)
          const mine = findings.filter(({ queue, code }) => queue === name && code === 'wrong-type')
          return mine.map(({ figures, level }) => ({ level, ...figures }))
        }
        for (const args of [[], [name]]) expect(await found(args)).to.deep.equal([])
        await rawClient().set(gone, 'x')
        const ofIds = { level: 'error', keys: 1, key: gone, type: 'string', expected: 'set' }
        for (const args of [[], [name]]) expect(await found(args)).to.deep.equal([ofIds])
        await rawClient().del(bucket)
        await rawClient().hset(bucket, 'a', 'b')
        const ofBoth = { level: 'error', keys: 2, key: bucket, type: 'hash', expected: 'list' }
        for (const args of [[], [name]]) expect(await found(args)).to.deep.equal([ofBoth])
      })

      it('repeat-stopped: those whose next message has no time, or one after their next tick', async () => {
        const name = uniqueName('doctor')
        forgetReliable(name)
        const queue = makeClient().getReliableQueue(name)
        const { ticks } = reliableKeys(name)
        const schedules = {
          ahead: { every: HOUR },
          gone: { cron: '0 9 * * *' },
          sound: { every: HOUR },
          daily: { cron: '0 9 * * *', timeZone: 'Asia/Tokyo' },
          later: { every: HOUR, startAt: new Date(Date.now() + 9 * HOUR) },
          ended: { every: HOUR, endAt: new Date(1) },
        }
        for (const [each, times] of Object.entries(schedules)) await queue.upsertSchedule(each, 1, times)
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
        await rawClient().zadd(ticks, Date.now() + 2 * HOUR, 'ahead')
        await rawClient().zrem(ticks, 'gone')
        const { findings } = await examined([name])
        expect(codesOf(findings)).to.deep.equal(['warning repeat-stopped'])
        const stopped = findings.find(({ code }) => code === 'repeat-stopped')
        expect(stopped!.figures).to.deep.equal({ stopped: 2, stored: 6 })
        expect(stopped!.found)
          .to.match(/"ahead"/)
          .and.match(/"gone"/)
        for (const each of ['ahead', 'gone'] as const) await queue.upsertSchedule(each, 1, schedules[each])
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
      })

      it('visibility-far: claims that end later than a client sets', async () => {
        const name = uniqueName('doctor')
        forgetReliable(name)
        const queue = makeClient().getReliableQueue(name)
        await queue.setConfig({ concurrency: 1, visibilityTimeout: 100 })
        await queue.add(1, { id: 'a' })
        await queue.poll({ visibilityTimeout: '365d' })
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
        await rawClient().zadd(reliableKeys(name).inFlight, 8e15, '0a')
        const { findings } = await examined([name])
        expect(codesOf(findings)).to.deep.equal(['warning visibility-far'])
        expect((await queue.poll({ timeout: 5_000 }))?.id).to.equal('a')
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
      })

      it('times-ahead: completed messages, batches and dead letters whose times no client writes', async () => {
        const name = uniqueName('doctor')
        forgetReliable(name)
        const queue = makeClient().getReliableQueue(name)
        const { deadLetters } = queue
        await queue.setConfig({ keepCompleted: 10 })
        await queue.addMany([1, 2, 3].map((payload) => ({ payload })))
        for (let n = 0; n < 2; n++) await (await queue.poll())!.negativeAcknowledge({ reject: true })
        await (await queue.poll())!.acknowledge()
        await queue.batch('b').close()
        await queue.add(4, { deduplicate: { by: 'payload', forMs: '365d' } })
        await (await deadLetters.poll())!.negativeAcknowledge({ delay: '364d' })
        await deadLetters.pauseTask('none')
        const names = [name, deadLetters.name]
        expect(codesOf((await examined(names)).findings)).to.deep.equal(['info tasks-paused'])
        const [{ completedAt, batchesAt, once }, { due }] = [reliableKeys(name), reliableKeys(deadLetters.name)]
        await rawClient().zadd(completedAt, Date.now() + 2 * HOUR, 'forged')
        await rawClient().zadd(batchesAt, 'inf', 'forged', Date.now() + 2 * HOUR, 'b')
        await rawClient().zunionstore(once, 1, once, 'WEIGHTS', 1_000)
        await rawClient().zadd(due[0]!, 'inf', 'forged', 2 ** 53 + 2, 'aside', Date.now() + 366 * 24 * HOUR, 'far')
        const findings = (await examined(names)).findings.filter(({ code }) => code === 'times-ahead')
        expect(findings.map(({ figures }) => figures)).to.deep.equal([
          { completed: 1, batches: 2, dead: 0, marks: 1 },
          { completed: 0, batches: 0, dead: 2, marks: 0 },
        ])
      })

      it('wrong-shard: schedules and messages that hash to other shards with any number of shards', async () => {
        const name = uniqueName('doctor')
        const queue = makeClient().getShardedReliableQueue(name, { shards: 3 })
        for (const shard of queue.names) forgetReliable(shard)
        await queue.upsertSchedule('daily', 1, { every: HOUR })
        await queue.addMany(Array.from({ length: 20 }, (_, n) => ({ payload: n, id: String(n), delay: HOUR })))
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
        const places = (id: string) => placesOf(id, { shards: 256, covered: 256 })
        const third = queue.shards[2]!
        const [id, schedule] = Array.from({ length: 99 }, (_, n) => `foreign ${n}`).filter(
          (each) => !places(each).includes(2),
        )
        await third.add(1, { id: id!, delay: HOUR })
        await third.upsertSchedule(schedule!, 1, { every: HOUR })
        const { findings } = await examined([name])
        expect(codesOf(findings)).to.deep.equal(['warning wrong-shard'])
        const found = findings.find(({ code }) => code === 'wrong-shard')!
        expect(found.figures).to.include({ schedules: 1 })
        expect(found.found).to.include(`"${schedule!}"`).and.to.include(`"${id!}"`)
        await third.removeSchedule(schedule!)
        await third.remove(id!)
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
      })

      describe('the times of repeats', () => {
        const withRepeats = async (...names: string[]): Promise<[name: string, ticks: string]> => {
          const name = uniqueName('doctor')
          forgetReliable(name)
          const queue = makeClient().getReliableQueue(name)
          for (const each of names) await queue.upsertSchedule(each, 1, { every: HOUR })
          return [name, reliableKeys(name).ticks]
        }
        /** What the doctor finds when a command does something else first, or is another one. */
        const inspected = async (name: string, around: (command: string) => Promise<string>) => {
          const sender = senderOf(rawClient())
          const state = await inspectReliable(
            { ...sender, call: async (command, ...rest) => sender.call(await around(command), ...rest) },
            name,
          )
          return { ...state!, refused: state!.refusals.list.map(([what]) => what) }
        }

        it('can be infinite: never is too late, and what is due at once is not', async () => {
          const [name, ticks] = await withRepeats('never', 'at once', 'large')
          await rawClient().zadd(ticks, '+inf', 'never', '-inf', 'at once', '1e300', 'large')
          const { findings } = await examined([name])
          expect(codesOf(findings)).to.deep.equal(['warning repeat-stopped', 'warning repeat-stuck'])
          expect(findings.find(({ code }) => code === 'repeat-stopped')!.found)
            .to.match(/"never"/)
            .and.match(/"large"/)
            .and.not.match(/at once/)
          await makeClient().getReliableQueue(name).removeSchedule('never')
        })

        it('are read again before one is reported', async () => {
          const [name, ticks] = await withRepeats('one', 'other')
          await rawClient().zrem(ticks, 'one', 'other')
          let reads = 0
          const { repeats } = await inspected(name, async (command) => {
            if (command === 'ZMSCORE' && ++reads === 2) await rawClient().zadd(ticks, Date.now(), 'one')
            return command
          })
          expect(repeats.stopped).to.have.lengthOf(1)
          expect(reads).to.equal(3)
        })

        it('are what a server or user without ZMSCORE cannot read, and unreadable repeats are found all the same', async () => {
          const [name, ticks] = await withRepeats('one')
          await rawClient().zrem(ticks, 'one')
          await rawClient().hset(reliableKeys(name).repeats, 'bad', 'x')
          const { repeats, refused } = await inspected(name, async (command) =>
            command === 'ZMSCORE' ? 'NO_SUCH_COMMAND' : command,
          )
          expect(repeats).to.deep.include({ stored: 2, examined: 2, unreadable: 1, stopped: [] })
          expect(refused).to.deep.equal(['the times of repeats (ZMSCORE)'])
        })
      })

      it('place-lost: messages that no poll finds', async () => {
        const name = uniqueName('doctor')
        forgetReliable(name)
        const queue = makeClient().getReliableQueue(name)
        await queue.addMany([
          { payload: 1, id: 'a' },
          { payload: 2, id: 'b', delay: HOUR },
          { payload: 3, id: 'c', group: 'g' },
        ])
        await queue.poll()
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
        await rawClient().zrem(reliableKeys(name).due[0]!, 'b')
        const { findings } = await examined([name])
        expect(codesOf(findings)).to.deep.equal(['warning place-lost'])
        expect(findings.find(({ code }) => code === 'place-lost')!.figures).to.deep.equal({ lost: 1, total: 3 })
        expect((await queue.add(2, { id: 'b', delay: HOUR })).outcome).to.equal('added')
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
      })

      it('records-left: messages of batches, and places of what has ended, that another program has deleted', async () => {
        const name = uniqueName('doctor')
        forgetReliable(name)
        const queue = makeClient().getReliableQueue(name)
        const keys = reliableKeys(name)
        await queue.setConfig({ keepCompleted: 10 })
        await queue.addMany([{ payload: 1, id: 'a' }], { batch: 'ended' })
        await (await queue.poll())!.acknowledge()
        await queue.batch('ended').close()
        await queue.addMany(
          [
            { payload: 1, id: 'b' },
            { payload: 2, id: 'c' },
          ],
          { batch: 'open' },
        )
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
        await rawClient().hdel(keys.messages, 'b')
        await rawClient().zrem(keys.due[0]!, 'b')
        await rawClient().unlink(keys.completedAt, keys.batchesAt)
        const { findings } = await examined([name])
        expect(codesOf(findings)).to.deep.equal(['warning records-left'])
        const left = findings.find(({ code }) => code === 'records-left')!
        expect(left.figures).to.deep.equal({ messages: 1, batches: 1, completed: 1 })
        await (await queue.poll())!.acknowledge()
        let polls = 0
        while ((await examined([name])).findings.some(({ code }) => code === 'records-left')) {
          expect(polls++).to.be.lessThan(500)
          await queue.poll()
        }
        expect(await queue.batch('open').counts()).to.include({ pending: 0, completed: 1, removed: 1 })
      })

      it('batch-miscounted: a closed batch whose count another program has raised, until a second close ends it', async () => {
        const name = uniqueName('doctor')
        forgetReliable(name)
        const queue = makeClient().getReliableQueue(name)
        const keys = reliableKeys(name)
        const batch = queue.batch('rows')
        await queue.addMany([{ payload: 1 }, { payload: 2 }], { batch: batch.name })
        await batch.close({ last: { payload: 'last' } })
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
        const counts = (await rawClient().hget(keys.batches, 'brows'))!
        await rawClient().hset(keys.batches, 'brows', counts.replace('c,2', 'c,3'))
        const { findings } = await examined([name])
        expect(codesOf(findings)).to.deep.equal(['warning batch-miscounted'])
        const found = findings.find(({ code }) => code === 'batch-miscounted')!
        expect(found.found).to.include('"rows" counts 3 and has 2')
        expect(found.figures).to.deep.equal({ batches: 1, pending: 3, held: 2 })
        for (const message of await queue.pollMany({ count: 2 })) await message.acknowledge()
        expect(await batch.close()).to.include({ state: 'finished', completed: 2, removed: 1 })
        expect((await queue.poll())?.payload).to.equal('last')
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
      })

      it('setting-without-effect: each that the scripts do not take, none of the others, and nothing that steers', async () => {
        const name = uniqueName('doctor')
        const { config } = reliableKeys(name)
        const wrong = {
          visibilityTimeout: 'nan',
          delay: '-inf',
          deliveryLimit: '0',
          maxSize: ESCAPES,
          timeToLive: '9'.repeat(100_000),
          deadLetters: 'yes',
        }
        await rawClient().hset(config, { ...wrong, maxMessageBytes: '100', addPaused: '1', ofLater: 'x' })
        const { findings, exit } = await examined([name])
        const found = findings.filter(({ code }) => code === 'setting-without-effect')
        expect(found.map(({ figures }) => figures['setting'])).to.have.members(Object.keys(wrong))
        expect(found.map(({ level, fixable }) => ({ level, fixable }))[0]).to.deep.equal({
          level: 'warning',
          fixable: false,
        })
        expect(exit).to.equal(1)
        const { out } = await doctor([name])
        expect(out)
          .to.include('visibilityTimeout is "nan"')
          .and.not.match(/\p{Cf}|(?!\n)\p{Cc}/u)
          .and.not.include('9'.repeat(100))
        await rawClient().del(config)
        expect(codesOf((await examined([name])).findings)).to.deep.equal([])
      })

      it('repeat-unreadable: set aside or not, also among the dead letters', async () => {
        const name = uniqueName('doctor')
        const [{ repeats }, dead] = [reliableKeys(name), reliableKeys(deadLettersOf(name))]
        const good = '5 {"every":60000,"missed":"one","priority":0,"payload":""}'
        await rawClient().hset(repeats, { good, bomb: '5 {"every":1,"payload":{"length":100000000}}', [ESCAPES]: 'x' })
        await rawClient().hset(dead.repeats, 'bad', '')
        const { findings } = await examined([name])
        const found = findings.filter(({ code }) => code === 'repeat-unreadable')
        expect(found.map(({ queue, figures }) => [queue, figures])).to.deep.equal([
          [name, { unreadable: 2, examined: 3, stored: 3 }],
          [deadLettersOf(name), { unreadable: 1, examined: 1, stored: 1 }],
        ])
        expect(found[0]?.found)
          .to.include('"bomb"')
          .and.not.match(/\p{Cf}|(?!\n)\p{Cc}/u)
        await rawClient().del(repeats, dead.repeats)
      })

      it('wrong-type: each of the keys, also the ones besides the messages', async () => {
        const name = uniqueName('doctor')
        const { channel: _, ends: __, batchEnds: ___, due, rate, ...others } = reliableKeys(name)
        const keys = [rate, ...Object.values(others), ...due]
        await rawClient().rpush(rate, 'in the way')
        for (const key of keys.slice(1)) await rawClient().set(key, 'in the way')
        const { findings } = await examined([name])
        expect(new Set(codesOf(findings))).to.deep.equal(new Set(['error wrong-type']))
        expect(findings.flatMap(({ queue, figures }) => (queue === null ? [] : [figures['key']]))).to.have.members(keys)
        await rawClient().del(...keys)
      })
    })

    it('reports no disagreement while a queue is busy', async () => {
      const { delayed, queue, name } = makePair('redisson')
      const controller = new AbortController()
      const consumer = (async () => {
        for await (const _ of queue.elements({ signal: controller.signal })) if (controller.signal.aborted) return
      })().catch(() => undefined)
      let busy = true
      const producer = (async () => {
        while (busy) {
          await delayed.offerAll(Array.from({ length: 100 }, (_, i) => ({ value: 'x', delay: (i % 7) * 10 })))
          // busy, and not buried: bulks are added faster than one transfers them out of order
          while (busy && (await delayed.size()) > 2_000);
        }
      })()
      for (let look = 0; look < 5; look++) {
        const { findings, queues } = await examined([name])
        expect(findings.map(({ code }) => code)).not.to.include.members(['order-missing'])
        expect(queues[0]).to.deep.include({ missing: 0, suspected: 0, orphans: 0, malformed: 0 })
      }
      busy = false
      await producer
      controller.abort()
      await consumer
    })
  })

  describe('about a server', () => {
    let server: RedisServer
    let redis: Redis

    async function start(context: Mocha.Context, args: string[] = []): Promise<void> {
      requireServerBin(context)
      server = await startRedis({ args })
      onCleanup(() => server.stop())
      redis = rawTo(server.port)
    }
    const look = (args: string[] = []) => examined(args, server.url)
    const found = async (): Promise<string[]> => codesOf((await look()).findings, 'server')

    it('finds nothing in a careful one without queues', async function () {
      await start(this, ['--appendonly', 'yes', '--appendfsync', 'always'])
      expect(await doctor([], server.url)).to.deep.include({ code: 0, err: '' })
      const { out } = await doctor([], server.url)
      expect(out).to.match(
        /^(Redis|Valkey) \S+ at 127\.0\.0\.1:\d+, master\nNo delayed queue was found\.\nNo findings\n$/,
      )
      const { server: described, exit } = await look()
      expect({ exit, ...described.servers[0] }).to.deep.include({
        exit: 0,
        role: 'master',
        user: 'default',
        appendonly: true,
      })
    })

    it('takes a word after --fix for a name, whatever it is', async function () {
      await start(this)
      expect((await look(['--fix', 'true'])).queues).to.have.nested.property('[0].queue', 'true')
    })

    it('persistence-off, snapshots-only, aof-everysec, aof-no-fsync: until it is set', async function () {
      await start(this)
      expect(await found()).to.deep.equal(['warning persistence-off'])
      await redis.config('SET', 'save', '60 1')
      expect(await found()).to.deep.equal(['info snapshots-only'])
      expect((await look()).exit).to.equal(0)
      await redis.config('SET', 'appendonly', 'yes')
      expect(await found()).to.deep.equal(['info aof-everysec'])
      await redis.config('SET', 'appendfsync', 'no')
      expect(await found()).to.deep.equal(['warning aof-no-fsync'])
      await redis.config('SET', 'appendfsync', 'always')
      expect(await found()).to.deep.equal([])
    })

    it('persistence-failing: after a snapshot that could not be written', async function () {
      await start(this, ['--appendonly', 'yes', '--appendfsync', 'always', '--dbfilename', 'taken.rdb'])
      mkdirSync(join(server.dir, 'taken.rdb', 'x'), { recursive: true })
      await redis.set('doctor', 'x')
      await redis.bgsave().catch(() => undefined)
      await eventually(
        async () => expect(await redis.info('persistence')).to.include('rdb_last_bgsave_status:err'),
        20_000,
      )
      expect(await found()).to.deep.equal(['error persistence-failing'])
    })

    it('eviction: until it is noeviction', async function () {
      await start(this, ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'allkeys-lru'])
      expect(await found()).to.deep.equal(['info eviction'])
      await redis.config('SET', 'maxmemory', '100mb')
      expect(await found()).to.deep.equal(['error eviction'])
      await redis.config('SET', 'maxmemory-policy', 'noeviction')
      expect(await found()).to.deep.equal([])
    })

    it('replica-lag and is-replica', async function () {
      await start(this, ['--appendonly', 'yes', '--appendfsync', 'always', '--repl-diskless-sync-delay', '0'])
      const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', `${server.port}`] })
      onCleanup(() => replica.stop())
      await eventually(async () => expect(await redis.info('replication')).to.match(/slave0:.*state=online/), 20_000)
      expect(await found()).to.deep.equal([])
      const atReplica = await examined([], replica.url)
      expect(codesOf(atReplica.findings, 'server')).to.include('error is-replica')
      await replica.kill('SIGSTOP')
      await redis.set('doctor', Buffer.alloc(3 * 1024 * 1024))
      const { findings } = await look()
      expect(codesOf(findings, 'server')).to.deep.equal(['warning replica-lag'])
      expect(findings[0]?.figures['behindBytes']).to.be.within(3 * 1024 * 1024, 4 * 1024 * 1024)
      await replica.kill('SIGCONT')
      await eventually(async () => expect(await found()).to.deep.equal([]), 20_000)
    })

    it('clock-skew: when the clock here is wrong', async function () {
      await start(this, ['--appendonly', 'yes', '--appendfsync', 'always'])
      const { now } = Date
      try {
        Date.now = () => now() - 90_000
        const { findings } = await look()
        expect(codesOf(findings, 'server')).to.deep.equal(['warning clock-skew'])
        expect(findings[0]?.found).to.include('1.5 min ahead')
      } finally {
        Date.now = now
      }
      expect(await found()).to.deep.equal([])
    })

    it('server-too-old: reports it instead of failing', async () => {
      const fake = createServer((socket) => {
        const info = 'redis_version:4.0.14\r\nrole:master\r\n'
        // one reply for each command, of which several can come in one piece
        socket.on('data', (bytes: Buffer) => {
          for (const _ of bytes.toString().matchAll(/^\*\d/gm)) socket.write(`$${info.length}\r\n${info}\r\n`)
        })
        socket.on('error', () => {})
      })
      await once(fake.listen(0, '127.0.0.1'), 'listening')
      onCleanup(() => new Promise((resolve) => fake.close(resolve)))
      const { port } = fake.address() as AddressInfo
      const { findings, exit } = await examined([], `redis://127.0.0.1:${port}`)
      expect(findings.map(({ code, level }) => ({ code, level }))).to.deep.equal([
        { code: 'server-too-old', level: 'error' },
      ])
      expect(exit).to.equal(1)
      expect(findings[0]?.found).to.include('4.0.14')
    })

    describe('and its users', () => {
      /** The doctor as a user with these rights. */
      const as = async (rules: readonly string[], args: string[] = []) => {
        await redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>pw', ...rules)
        return examined(args, server.url.replace('redis://', 'redis://app:pw@'))
      }
      const careful = ['--appendonly', 'yes', '--appendfsync', 'always']
      const of = ({ findings }: Document): Record<string, unknown>[] =>
        findings.map(({ level, code, figures }) => ({ level, code, ...figures }))

      it('acl-missing: commands, also those for single purposes', async function () {
        await start(this, careful)
        expect((await as(['~*', '&*', '+@all'])).findings).to.deep.equal([])
        expect(of(await as(['~*', '&*', '+@all', '-rpush', '-client|unblock', '-blmove']))).to.deep.equal([
          { level: 'error', code: 'acl-missing', user: 'app', commands: ['RPUSH', 'CLIENT|UNBLOCK'] },
          { level: 'info', code: 'acl-missing', user: 'app', commands: ['BLMOVE'], purpose: 'deques' },
        ])
      })

      it('acl-missing: the same by rules, where a dry run is refused', async function () {
        await start(this, careful)
        const rules = ['~*', '&*', '+@all', '-acl|dryrun']
        expect((await as(rules)).findings).to.deep.equal([])
        expect(of(await as([...rules, '-@sortedset', '+zadd', '-blmove']))[0]?.['commands']).to.include.members([
          'ZREM',
          'ZCARD',
        ])
        expect(of(await as([...rules, '-@sortedset', '+zadd']))[0]?.['commands']).not.to.include('ZADD')
      })

      it('acl-missing: keys and channels of a queue', async function () {
        await start(this, careful)
        const { findings } = await as(
          ['~*{mine}', '~mine', '~redisson_delay_queue_timeout:*', '~redisson_delay_queue:*', '&*{mine}', '+@all'],
          ['mine', 'other'],
        )
        const denied = findings.filter(({ code }) => code === 'acl-missing')
        expect(denied.map(({ queue, figures }) => [queue, figures['denied']])).to.deep.equal([
          [
            'other',
            [
              'other',
              'redelayed:quarantine:{other}',
              'redelayed:leader:{other}',
              'redelayed:wheel:{other}',
              'redisson_delay_queue_channel:{other}',
            ],
          ],
        ])
      })

      it('not-examined: a refused command is not a failure', async function () {
        await start(this, careful)
        const { findings, exit } = await as(['~*', '&*', '+@all', '-config', '-info', '-acl', '-type', '-time'])
        expect(exit).to.equal(0)
        expect(new Set(codesOf(findings, 'server'))).to.deep.equal(new Set(['info not-examined']))
        expect(findings.map(({ figures }) => figures['what'])).to.include.members(['INFO', 'CONFIG GET save', 'TIME'])
        const scripts = await as(['~*', '&*', '+@all', '-evalsha', '-eval', '-type', '-pubsub'], ['orders'])
        const about = scripts.findings.filter(({ queue }) => queue === 'orders')
        expect(about.map(({ code }) => code)).to.deep.equal(['not-examined', 'not-examined', 'not-examined'])
        const plain = ['~orders', '~redisson*', '~redelayed:[a-v]*', '~redelayed:wheel:*', '&*', '+@all']
        const buckets = (await as(plain, ['orders'])).findings.filter(
          ({ figures }) => figures['what'] === 'the buckets',
        )
        expect(buckets.map(({ level, code, queue }) => [level, code, queue])).to.deep.equal([
          ['info', 'not-examined', 'orders'],
        ])
      })
    })

    it('finds all queues in many keys, by any of their keys', async function () {
      await start(this, ['--appendonly', 'yes', '--appendfsync', 'always'])
      const others = redis.pipeline()
      for (let i = 0; i < 5_000; i++) others.set(`redisson_other:${i}`, 'x')
      await others.exec()
      await redis.hset('redelayed:reliable:repeats:{kept}', 'a', 'b')
      await redis.set('redelayed:reliable:in-flight:a{kept}', 'in the way')
      const names = ['plain', 'with {tag} inside', 'x{y', 'quarantined', 'ordered']
      await redis.zadd('redisson_delay_queue_timeout:{plain}', Date.now() + HOUR, unordered('a', 'x'))
      await redis.zadd('redisson_delay_queue_timeout:with {tag} inside', Date.now() + HOUR, unordered('a', 'x'))
      await redis.zadd('redisson_delay_queue_timeout:x{y', Date.now() + HOUR, unordered('a', 'x'))
      await redis.rpush('redelayed:quarantine:{quarantined}', 'x')
      await redis.rpush('redisson_delay_queue:{ordered}', 'x')
      const { queues, findings } = await look()
      expect(queues.map(({ queue }) => queue)).to.deep.equal([...names].sort())
      expect(findings.map(({ queue, code }) => `${queue} ${code}`)).to.deep.equal([
        'ordered order-orphan',
        'plain no-subscriber',
        'quarantined quarantine',
        'with {tag} inside no-subscriber',
        'x{y no-subscriber',
        'a{kept} wrong-type',
        'kept repeat-unreadable',
      ])
    })

    it('begins with no other queue when its time is over, and says how many are left', async function () {
      await start(this, [])
      const names = Array.from({ length: 40 }, (_, at) => `kept-${String(at).padStart(2, '0')}`)
      for (const name of names) await redis.hset(`redelayed:reliable:repeats:{${name}}`, 'a', 'b')
      await redis.zadd('redisson_delay_queue_timeout:{late}', Date.now() + HOUR, unordered('a', 'x'))
      const access = await openAccess({ url: server.url })
      try {
        let ms = 0
        const whenFound = (what: string): void => void (what.endsWith('queues found') && (ms = HOUR))
        const none = await examine(access, [], whenFound, 1_000, () => ms)
        expect([none.queues.length, none.reliable.length, none.left]).to.deep.equal([0, 0, 41])
        expect(none.servers).to.have.length(1)
        const all = await examine(access, [], () => {}, HOUR)
        expect(all.left).to.equal(0)
        expect(all.queues.map(({ name }) => name)).to.deep.equal(['late'])
        expect(all.reliable.map(({ name }) => name)).to.deep.equal(names) // in order again
      } finally {
        await access.close()
      }
      const { code, out } = await doctor(['--json', '--within', '1h'], server.url)
      expect([code, (JSON.parse(out) as Document).notExamined]).to.deep.equal([1, 0])
    })

    it('reports of a queue whose entries take too long that it was examined in part, and the part of its schedule that it read', async function () {
      await start(this, [])
      const entries = Array.from({ length: 600 }, (_, at) => ordered(`id-${at}`, 'x'))
      await redis.zadd(rawKeys('long').timeouts, ...entries.flatMap((entry, at) => [Date.now() + HOUR + at, entry]))
      await redis.zadd(rawKeys('long').timeouts, -1, ordered('negative', 'x'), Date.now() + HOUR - 1, 'malformed')
      await redis.rpush(rawKeys('long').order, 'an orphan', ...entries.slice(0, 550))
      const inPart = await inspectBoth(senderOf(redis), queueKeys('long'), () => {}, { limit: new TimeLimit(0) })
      // a page of each; entries that the rest of the list has are not missing
      expect(inPart).to.include({ negative: 1, malformed: 1, orphans: 1, suspected: 0 })
      expect(inPart.missing).to.deep.equal([])
      expect(inPart.readInTime).to.be.within(400, 500)
      const whole = await inspectBoth(senderOf(redis), queueKeys('long'), () => {})
      expect(whole.missing).to.have.length(50)
      expect(whole).not.to.have.property('readInTime')
    })

    it('gives a long queue a quarter of the time, and each kind of queue its part', async function () {
      await start(this, [])
      const entries = Array.from({ length: 20_000 }, (_, at) => unordered(`id-${at}`, 'x'))
      await redis.zadd(rawKeys('long').timeouts, ...entries.flatMap((entry, at) => [Date.now() + HOUR + at, entry]))
      const short = ['short-1', 'short-2', 'short-3']
      for (const queue of short) await redis.zadd(rawKeys(queue).timeouts, Date.now() + HOUR, unordered('a', 'x'))
      await redis.hset('redelayed:reliable:repeats:{kept}', 'a', 'b')
      const access = await openAccess({ url: server.url })
      // each look at the clock takes a millisecond
      const within = (withinMs: number) => {
        let ms = 0
        return examine(
          access,
          [],
          () => {},
          withinMs,
          () => ms++,
        )
      }
      try {
        for (let turn = 0; turn < 8; turn++) {
          const { queues, reliable, findings, left } = await within(120) // in another order each time
          expect(queues.map(({ name }) => name)).to.deep.equal(['long', ...short])
          expect([reliable.map(({ name }) => name), left]).to.deep.equal([['kept'], 0])
          const inPart = findings.filter(({ code }) => code === 'partly-examined').map(({ queue }) => queue)
          expect(inPart).to.deep.equal(['long'])
        }
        expect((await within(1)).findings.map(({ code }) => code)).to.include('not-examined')
      } finally {
        await access.close()
      }
    })

    it('delivers no message of an unnamed queue whose messages may be those of its twin', async function () {
      await start(this, ['--appendonly', 'yes', '--appendfsync', 'always'])
      const { timeouts, quarantine } = rawKeys('orders')
      await redis.zadd(timeouts, 1, ordered('due', 'x'), 2, 'malformed', -1, ordered('negative', 'x'))
      await redis.rpush(rawKeys('orders').order, 'an orphan')
      const lengths = async () =>
        Promise.all([redis.zcard(timeouts), ...['orders', '{orders}', quarantine].map((list) => redis.llen(list))])

      const unnamed = await look(['--fix'])
      expect(unnamed.fixed.map(({ code }) => code)).to.deep.equal(['order-orphan', 'order-missing'])
      expect(unnamed.findings.find(({ code }) => code === 'overdue')?.found).to.include(
        '--fix delivers only queues that are named',
      )
      expect(codesOf(unnamed.left)).to.include.members(['error overdue', 'warning malformed', 'warning negative-due'])
      expect(await lengths(), 'without names').to.deep.equal([3, 0, 0, 1])
      expect((await look(['--fix', 'orders', '{orders}'])).fixed, 'both named').to.deep.equal([])
      expect(await lengths(), 'both named').to.deep.equal([3, 0, 0, 1])
      const { fixed, left } = await look(['--fix', '{orders}'])
      expect(fixed.map(({ queue, code, count }) => [queue, code, count])).to.deep.equal([
        ['{orders}', 'overdue', 1],
        ['{orders}', 'malformed', 1],
        ['{orders}', 'negative-due', 1],
      ])
      expect(codesOf(left)).to.deep.equal(['warning quarantine'])
      expect(await lengths(), 'named').to.deep.equal([0, 0, 1, 3])
    })

    it('finds the queues of every master of a cluster, counts subscribers on all, and names that spread', async function () {
      requireServerBin(this)
      const cluster = await startCluster()
      onCleanup(() => cluster.stop())
      const raws = cluster.nodes.map(({ port }) => rawTo(port))
      const names = ['a', 'b', 'c', 'd', 'e', 'f']
      const entry = unordered('a', 'x')
      const write = async (key: string) => {
        for (const raw of raws) {
          const error = await raw.zadd(key, Date.now() + HOUR, entry).then(
            () => undefined,
            (thrown: Error) => thrown,
          )
          if (error === undefined) return
          expect(error.message).to.match(/^MOVED/)
        }
      }
      for (const name of names) await write(rawKeys(name).timeouts)
      await write('redisson_delay_queue_timeout:x{y')
      const subscriber = rawTo(cluster.nodes[2]!.port)
      await subscriber.subscribe(...names.slice(1).map((name) => rawKeys(name).channel))
      const url = `redis://127.0.0.1:${cluster.nodes[0]!.port}`
      const { queues, findings, server: described } = await examined(['--cluster'], url)
      expect(described).to.deep.include({ cluster: true })
      expect(described.servers).to.have.lengthOf(3)
      expect(queues.map(({ queue }) => queue)).to.deep.equal([...names, 'x{y'])
      expect(findings.filter(({ queue }) => queue !== null).map(({ queue, code }) => `${queue} ${code}`)).to.deep.equal(
        ['a no-subscriber', 'x{y cross-slot'],
      )
    })
  })

  describe('on the command line', () => {
    it('prints tables and findings for people, and ends with 1', async () => {
      const name = uniqueName('doctor')
      await javaOffer(name, 'x', (await redisNow()) - 60_000)
      await javaOffer(name, 'later', (await redisNow()) + HOUR)
      const { code, out, err } = await doctor(['--fix', name])
      const lines = out.split('\n')
      expect(lines[1]).to.match(/^QUEUE +PENDING +OVERDUE +DELIVERED +QUARANTINED +SUBSCRIBERS$/)
      expect(lines[2]).to.match(/^\S+ +2 +1 \(by up to 1 min\) +0 +0 +0$/)
      expect(out).to.match(
        /\nerror {2}overdue\n {2}\S+: 1 entry is overdue by up to 1 min: no process holds this delayed queue\.\n {2}\S.*\n {2}\S.*--fix moves/,
      )
      expect(out.indexOf('--fix does this now:')).to.be.within(out.indexOf('error  overdue'), out.indexOf('Done:'))
      expect(out).to.match(/Done:\n {2}\S+: overdue: 1 entry repaired\n/)
      expect(out).to.include('\nLeft:\n').and.include('has no subscriber')
      expect(code).to.equal(1) // what is left counts
      expect(err).to.match(/^redelayed: \d+ errors? and \d+ warnings? were found\n$/)
    })

    it('works as a process, with its help', async () => {
      const help = await cli(['doctor', '--help'])
      expect(help.out)
        .to.match(/\$ redelayed doctor \[/)
        .and.include('--fix')
        .and.include('--url <url>')
      const name = uniqueName('doctor')
      const { code, out } = await cli(['--fix', 'doctor', name, '--json'])
      expect(code).to.be.oneOf([0, 1])
      expect(JSON.parse(out)).to.have.keys(
        'server',
        'queues',
        'reliableQueues',
        'findings',
        'notExamined',
        'fixed',
        'left',
      )
    })

    it('fails as the other commands do', async function () {
      expect(await doctor([''])).to.include({ code: 2, out: '' })
      expect(await doctor(['--frobnicate'])).to.include({ code: 2, out: '' })
      requireServerBin(this)
      const server = await startRedis({ args: ['--requirepass', 'right'] })
      onCleanup(() => server.stop())
      const wrong = await doctor([], server.url.replace('redis://', 'redis://:wr0ng@'))
      expect(wrong).to.deep.include({ code: 1, out: '' })
      expect(wrong.err).to.match(/^redelayed: [^\n]*WRONGPASS[^\n]*\n$/)
      await server.stop()
      const gone = await doctor([], server.url)
      expect(gone).to.deep.include({ code: 1, out: '' })
      expect(gone.err).to.match(/^redelayed: no connection to Redis within 3 s[^\n]*ECONNREFUSED[^\n]*\n$/)
    })
  })
})
