import { expect } from 'chai'
import {
  DecodeError,
  InvalidArgumentError,
  codecs,
  type QuarantinedEvent,
  type RedelayedError,
  type ReliableMessage,
  type ReliableQueue,
  type RepeatOptions,
} from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { createTestKit, type TestKit } from '../../src/testing/index.js'
import { eventually } from '../support/events.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, onCleanup, redisNow } from './fixtures.js'

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

  it('one message per tick, however many processes poll, each on time and with what was given', async () => {
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
    const set = await Promise.all(queues.map((queue) => queue.setRepeat('tidy-up', 'x', options)))
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
    expect(await queue.setRepeat('hourly', 'x', { every: 3_600_000 })).to.equal(true)
    const [next] = await queue.listRepeats()
    const tick = next?.lastPrepared.getTime() ?? 0
    expect(tick)
      .to.be.greaterThan(now)
      .and.at.most(now + 3_601_000)
    expect(tick % 3_600_000).to.equal(0)
    expect(await queue.get(`hourly@${tick}`)).to.include({ visibleAt: tick, state: 'delayed', payload: 'x' })
  })

  it('the same again is no change; another one takes its place, and so does its message', async () => {
    const queue = make()
    const times = { every: 3_600_000, missed: 'all' } as const
    expect(await queue.setRepeat('r', 'x', times)).to.equal(true)
    expect(await queue.setRepeat('r', 'x', { missed: 'all', every: 3_600_000, headers: {} })).to.equal(false)
    expect((await queue.counts()).total).to.equal(1)

    for (const change of [{ every: 7_200_000 }, { cron: '0 0 1 1 *' }, { cron: '0 0 1 1 *', priority: 1 }]) {
      expect(await queue.setRepeat('r', 'x', change), JSON.stringify(change)).to.equal(true)
      expect((await queue.counts()).total).to.equal(1)
    }
    expect(await queue.setRepeat('r', 'y', { cron: '0 0 1 1 *', priority: 1 })).to.equal(true)
    const [info] = await queue.listRepeats()
    expect(info).to.include({ name: 'r', payload: 'y', cron: '0 0 1 1 *', timeZone: 'UTC', every: null, priority: 1 })
    expect(await queue.get(`r@${info?.lastPrepared.getTime()}`)).to.include({ payload: 'y', priority: 1 })
  })

  it('ends when it is removed, with the message of the tick to come', async () => {
    const queue = make()
    await queue.setRepeat('a', 'x', { every: 3_600_000 })
    await queue.setRepeat('b', 'x', { every: 3_600_000 })
    expect(await queue.removeRepeat('a')).to.equal(true)
    expect(await queue.removeRepeat('a')).to.equal(false)
    expect((await queue.listRepeats()).map(({ name }) => name)).to.deep.equal(['b'])
    expect(await queue.size()).to.equal(1)
    expect(await rawClient().zrange(reliableKeys(queue.name).ticks, '0', '-1')).to.deep.equal(['b'])
  })

  it('a worker handles each tick as the task that was named', async () => {
    const { kit, queue } = await onKit()
    const seen: string[] = []
    kit.client.createWorker(queue, {
      tidy: (payload: string) => void seen.push(`${payload} ${kit.now.toISOString()}`),
    })
    await queue.setRepeat('daily', 'now', { cron: '0 9 * * *', timeZone: 'Europe/Berlin', task: 'tidy' })
    await kit.advance('2d')
    expect(seen).to.deep.equal(['now 2030-01-01T08:00:00.000Z', 'now 2030-01-02T08:00:00.000Z'])
  })

  describe('ticks that nobody polled for', () => {
    const missed: readonly [RepeatOptions['missed'], number[]][] = [
      [undefined, [1]],
      ['one', [1]],
      ['all', [1, 2, 3, 4, 5]],
      ['none', []],
    ]
    for (const [policy, minutes] of missed) {
      it(`missed: ${policy ?? 'one, the default'}`, async () => {
        const { kit, queue } = await onKit()
        await queue.setRepeat('r', 'x', { every: MINUTE, ...(policy && { missed: policy }) })
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
      await queue.setRepeat('r', 'x', { every: MINUTE, missed: 'all' })
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
    await queue.setRepeat('r', 'x', options)
    await kit.advance('1m')
    const seen = minutesOf(await allNow(queue))
    await prepared(queue, 1)
    await kit.advance('5m')
    seen.push(...minutesOf(await allNow(queue)))
    expect(seen).to.deep.equal([1, 2])
    await eventually(async () => {
      expect(await rawClient().zcard(reliableKeys(queue.name).ticks)).to.equal(0)
    })
    expect(await queue.setRepeat('r', 'x', options)).to.equal(false)
    expect(await queue.size()).to.equal(0)
  })

  it('a process that dies after it took a tick is made up for by the next poll', async () => {
    const { kit, queue } = await onKit()
    await queue.setRepeat('r', 'x', { every: MINUTE })
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

  it('what cannot be read stays where it is, is told of once, and stops nothing', async () => {
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
    expect(await queue.listRepeats()).to.deep.equal([])
    expect(errors.every(({ queue }) => queue === name)).to.equal(true)
    expect(await queue.setRepeat('odd', 'x', { every: 3_600_000 })).to.equal(true)
    expect(await queue.listRepeats()).to.have.length(1)
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
      ['priority 10', 'n', 'x', { every: 1, priority: 10 }, /priority/],
      ['a header that is no text', 'n', 'x', { every: 1, headers: { a: 1 } }, /headers\.a/],
      ['an unknown cron field', 'n', 'x', { cron: '* * * * XYZ' }, /cron/],
      ['no payload', 'n', null, { every: 1 }, /payload/],
    ]
    for (const [what, name, payload, options, says] of bad) {
      it(what, async () => {
        const queue = make()
        const thrown: unknown = await queue
          .setRepeat(name as string, payload as string, options as RepeatOptions)
          .catch((error: unknown) => error)
        expect(thrown).to.be.instanceOf(InvalidArgumentError)
        expect((thrown as Error).message).to.match(says)
        expect(await queue.listRepeats()).to.deep.equal([])
      })
    }
  })
})
