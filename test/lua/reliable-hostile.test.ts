/** Values of other programs in the keys of a reliable queue: settings, histories, and keys of another type. */
import { expect } from 'chai'
import {
  acknowledge,
  add,
  configure,
  count,
  extend,
  get,
  negativeAcknowledge,
  poll,
  reschedule,
  update,
} from '../../src/store/reliable-scripts.js'
import { refreshGroups } from '../../src/store/reliable-group-scripts.js'
import { run } from '../../src/store/run.js'
import {
  handled,
  having,
  LOOK,
  NEXT_LOOK,
  NOW,
  record,
  useReliable,
  pollArgs,
  type PollArgs,
  type ReliableFixture,
} from './reliable-support.js'
import { commandCalls, rejection } from './support.js'

const HOSTILE = [
  'nan',
  '-nan',
  'inf',
  '-inf',
  '-1',
  '1e3',
  '1e400',
  '0x10',
  ' 5',
  '5 ',
  '',
  '9'.repeat(400),
  `${'0'.repeat(20)}5`, // to read millions of digits takes seconds, so that no script reads more than a setting has
  '\xff\x00',
]
const MINUTE = 60_000

describe('hostile data of a reliable queue', () => {
  const rig = useReliable()

  const asSet = (queue: ReliableFixture): PollArgs => pollArgs(queue, { visibilityMs: -1, idleMs: 1_000 })

  for (const value of [...HOSTILE, '0']) {
    it(`takes the default where a setting is ${JSON.stringify(value.slice(0, 20))}`, async () => {
      const names = ['visibilityTimeout', 'deliveryLimit', 'timeToLive', 'delay', 'maxSize', 'maxMessageBytes']
      const queue = await rig.queue(having([{ id: 'x' }], { config: names.map((name) => [name, value] as const) }))
      const { messages, visibilityMs, deadLettered } = await run(rig.sender, poll, queue.keys, asSet(queue))
      expect({ ids: messages.map(({ id }) => id), visibilityMs, deadLettered }).to.deep.equal({
        ids: ['x'],
        visibilityMs: 30_000,
        deadLettered: 0,
      })
      const { channel, deadChannel } = queue
      const claim = handled(['x', '1 t'])
      const args = { channel, nowMs: NOW + 5, visibilityMs: -1, unbegun: 0, handled: claim }
      expect(await run(rig.sender, extend, queue.keys, args)).to.deep.equal([NOW + 30_005])
      const back = {
        channel,
        deadChannel,
        client: 'me',
        nowMs: NOW,
        how: 'failed',
        delayMs: 0,
        reason: '""',
        handled: claim,
      }
      expect(await run(rig.sender, negativeAcknowledge, queue.keys, back)).to.deep.equal([1])
      const changed = { client: 'me', nowMs: NOW, id: Buffer.from('x'), payload: Buffer.from('longer than before') }
      expect(await run(rig.sender, update, queue.keys, changed)).to.equal(1)
      const items = [Buffer.from('y'), Buffer.from('0,,,,0,,'), Buffer.from('payload')]
      const added = {
        channel,
        client: 'me',
        nowMs: NOW,
        existing: 'keep',
        sentAgoMs: -1,
        durable: false,
        batch: '',
        items,
      }
      expect(await run(rig.sender, add, queue.keys, added)).to.deep.equal({ now: NOW, outcomes: [1] })
      expect((await rig.redis.hgetBuffer(queue.keys.messages, 'y'))?.equals(record('payload'))).to.equal(true)
      expect(await rig.redis.zscore(queue.keys.due0, 'y')).to.equal(String(NOW))
    })
  }

  it('announces an added message behind one that another program made visible more than 365 days ago, or one in flight since then', async () => {
    const [now, days] = [4_000_000_000_000, 86_400_000]
    const items = [Buffer.from('y'), Buffer.from('0,500,,,0,,'), Buffer.from('payload')]
    for (const key of ['due0', 'due3', 'inFlight', 'ticks'] as const)
      for (const [score, hides] of [
        ['-inf', false],
        [0.5, false],
        [now - 366 * days, false],
        [now - 364 * days, true],
        [now + 499, true],
      ] as const) {
        const queue = await rig.queue()
        await rig.redis.zadd(queue.keys[key], score, '0x')
        const how = { client: 'me', existing: 'keep', sentAgoMs: -1, durable: false, batch: '' }
        await run(rig.sender, add, queue.keys, { channel: queue.channel, nowMs: now, items, ...how })
        const published = hides ? [] : [`${now + 500}`]
        expect(await queue.published(), `behind ${score} in ${key}`).to.deep.equal(published)
      }
  })

  it('reads no setting that is longer than any of them: each script would copy it', async () => {
    const names = [
      'pollPaused',
      'addPaused',
      'visibilityTimeout',
      'deliveryLimit',
      'deadLetters',
      'maxSize',
      'maxMessageBytes',
    ]
    const long = names.map((name) => [name, `1${' '.repeat(16)}`] as const)
    const queue = await rig.queue({ config: long })
    const { channel } = queue
    const item = [Buffer.from('y'), Buffer.from('0,5000,,,0,,'), Buffer.from('payload')]
    const how = {
      channel,
      nowMs: NOW,
      existing: 'keep',
      sentAgoMs: -1,
      durable: false,
      batch: '',
      client: 'me',
      items: item,
    }
    const calls = await commandCalls(rig.redis, async () => {
      expect(await run(rig.sender, add, queue.keys, how)).to.deep.equal({ now: NOW, outcomes: [1] })
    })
    expect(calls).to.include({ hmget: 1, hlen: 1 }) // the record
    expect(calls).to.not.include.keys('hget')
    const polled = await commandCalls(rig.redis, () => run(rig.sender, poll, queue.keys, asSet(queue)))
    expect(polled).to.not.include.any.keys('hget', 'hmget')
    const counted = await commandCalls(rig.redis, () => run(rig.sender, count, queue.keys, { nowMs: NOW }))
    expect(counted).to.not.include.any.keys('hget', 'hmget')
  })

  for (const [what, history] of [
    ['newlines', '\n'.repeat(1_048_576)],
    ['one line', 'x'.repeat(1_048_576)],
  ] as const) {
    it(`cuts a history of 1 MiB of ${what} at once`, async () => {
      const queue = await rig.queue(having([{ id: 'x', until: NOW - 1, failures: history }]))
      const startedAt = performance.now()
      const { messages } = await run(rig.sender, poll, queue.keys, asSet(queue))
      expect(performance.now() - startedAt).to.be.lessThan(1_000) // line by line it was minutes
      expect(messages).to.have.length(1)
      const kept = (await rig.redis.hget(queue.keys.failures, 'x')) ?? ''
      expect(kept).to.match(/1 1000000 "its visibility ended"\n$/)
      expect(kept.length).to.be.at.most(8_192)
    })
  }

  for (const [what, count, attempt] of [
    ['a number of 1 MiB', '9'.repeat(1_048_576), '1'],
    ['a number of 70 digits', '9'.repeat(70), '1'],
    ['a number of 14 digits', '9'.repeat(14), '1'],
    ['a number before 1 MiB of junk', `3 ${'x'.repeat(1_048_576)}`, '1'],
  ] as const) {
    for (const until of [undefined, NOW - 1]) {
      it(`reads ${what} as deliveries at once, ${until === undefined ? 'visible' : 'not acknowledged'}`, async () => {
        const all = Array.from({ length: 4 }, (_, n) => ({ id: `${n}`, ...(until !== undefined && { until }) }))
        const queue = await rig.queue(having(all))
        for (const { id } of all) await rig.redis.hset(queue.keys.deliveries, id, count)
        const got: string[] = []
        let deadLettered = 0
        for (let n = 0; n < 6; n++) {
          const reply = await run(rig.sender, poll, queue.keys, asSet(queue))
          got.push(...reply.messages.map(({ id, delivery }) => `${id}: ${delivery}`))
          deadLettered += reply.deadLettered
        }
        expect({ got, deadLettered }).to.deep.equal({
          got: all.map(({ id }) => `${id}: ${attempt} t`),
          deadLettered: 0,
        })
      })
    }
  }

  for (const digits of [13, 14, 16, 17]) {
    it(`says a whole number of attempts, and hands the message out, where ${digits} digits are stored`, async () => {
      const queue = await rig.queue(having([{ id: 'x', limit: 9_007_199_254_740_991 }]))
      await rig.redis.hset(queue.keys.deliveries, 'x', '9'.repeat(digits))
      const known = digits > 13 ? 0 : 9_999_999_999_999
      const stored = await run(rig.sender, get, queue.keys, { nowMs: NOW, ids: [Buffer.from('x')] })
      expect(stored.messages.map((message) => message?.attempts)).to.deep.equal([known])
      const polled = await run(rig.sender, poll, queue.keys, asSet(queue))
      expect(polled.messages.map(({ delivery }) => delivery)).to.deep.equal([`${known + 1} t`])
    })
  }

  it('reschedules a message whose meta data have no room for a longer time', async () => {
    const meta = `1,${'9'.repeat(251)},0`
    const queue = await rig.queue(having([{ id: 'x', record: Buffer.from(`\xff${meta}payload`, 'latin1') }]))
    const { channel } = queue
    const args = { channel, nowMs: NOW, id: Buffer.from('x'), when: '5', priority: -1, client: 'me' }
    expect(await run(rig.sender, reschedule, queue.keys, args)).to.equal(NOW + 5)
  })

  it('reads no more of a delivery than a script writes', async () => {
    const queue = await rig.queue(having([{ id: 'x', until: NOW - 1 }]))
    await rig.redis.hset(queue.keys.deliveries, 'x', `3${' '.repeat(100)}~`)
    await run(rig.sender, poll, queue.keys, { ...asSet(queue), count: 0 })
    expect(await rig.redis.hget(queue.keys.deliveries, 'x')).to.equal('0')
  })

  it('hands out many messages whose deliveries another program wrote, and copies few of these', async () => {
    const all = Array.from({ length: 200 }, (_, n) => ({ id: `m${n}` }))
    const queue = await rig.queue(having(all))
    const long = 'x'.repeat(65_536)
    for (const { id } of all) await rig.redis.hset(queue.keys.deliveries, id, long)
    let handed = 0
    const calls = await commandCalls(rig.redis, async () => {
      handed = (await run(rig.sender, poll, queue.keys, { ...asSet(queue), count: 200 })).messages.length
    })
    expect(handed).to.equal(200)
    expect(calls).to.not.include.keys('hget')
    expect(calls).to.include({ hmget: 21 }) // 20 pages of records, and one of deliveries
  })

  describe('200 held messages whose deliveries no script has written', () => {
    const ids = Array.from({ length: 200 }, (_, n) => `m${n}`)
    const claims = handled(...ids.map((id) => [id, '1 t', 0] as const))
    for (const [what, call] of [
      [
        'acknowledge',
        ({ keys }) =>
          run(rig.sender, acknowledge, keys, { nowMs: NOW, client: 'me', withResults: false, handled: claims }),
      ],
      [
        'extend',
        ({ keys, channel }) =>
          run(rig.sender, extend, keys, { channel, nowMs: NOW, visibilityMs: 9, unbegun: 0, handled: claims }),
      ],
      [
        'give back',
        ({ keys, channel, deadChannel }) =>
          run(rig.sender, negativeAcknowledge, keys, {
            ...{ channel, deadChannel, nowMs: NOW, how: 'failed', delayMs: 0, reason: '""', client: 'me' },
            handled: claims,
          }),
      ],
      ['look at', ({ keys }) => run(rig.sender, get, keys, { nowMs: NOW, ids: ids.map((id) => Buffer.from(id)) })],
      ['bring back', (queue) => run(rig.sender, poll, queue.keys, { ...asSet(queue), nowMs: NOW + MINUTE, count: 0 })],
    ] satisfies [string, (queue: ReliableFixture) => Promise<unknown>][]) {
      it(`${what}: reads few of these`, async () => {
        const queue = await rig.queue(having(ids.map((id) => ({ id, priority: 0, until: NOW + 1 }))))
        for (const id of ids) await rig.redis.hset(queue.keys.deliveries, id, 'x'.repeat(65_536))
        const calls = await commandCalls(rig.redis, () => call(queue))
        const { hget = 0, hmget = 0, hstrlen = 0 } = calls
        expect(hget + hmget, JSON.stringify(calls)).to.be.lessThan(what === 'look at' ? 205 : 20) // the records are read, too
        expect(hstrlen).to.be.within(what === 'bring back' ? 83 : 166, 450)
      })
    }
  })

  it('drops a history that no script has written without reading it', async () => {
    const queue = await rig.queue(having([{ id: 'x', until: NOW - 1, failures: '1 2 "x"\n'.repeat(131_072) }]))
    await run(rig.sender, poll, queue.keys, asSet(queue))
    expect(await rig.redis.hget(queue.keys.failures, 'x')).to.equal('1 1000000 "its visibility ended"\n')
  })

  for (const long of ['1 2 "x"\n'.repeat(131_072), `1 2 ${'['.repeat(1_048_576)}\n`]) {
    it(`does not show a history that no script has written: ${long.slice(0, 10)}`, async () => {
      const queue = await rig.queue(having([{ id: 'x', failures: long }]))
      const reply = await run(rig.sender, get, queue.keys, { nowMs: NOW, ids: [Buffer.from('x')] })
      expect(reply.messages.map((message) => message?.failures)).to.deep.equal([''])
    })

    it(`gives no such history to the dead letters: ${long.slice(0, 10)}`, async () => {
      const queue = await rig.queue(having([{ id: 'x', attempts: 10, failures: long }]))
      expect(await run(rig.sender, poll, queue.keys, asSet(queue))).to.include({ deadLettered: 1 })
      expect(await rig.redis.exists(queue.keys.deadFailures)).to.equal(0)
    })
  }

  it('keeps messages that come back to a schedule of another type for a minute, and hands out the others', async () => {
    const queue = await rig.queue(having([{ id: 'x', priority: 7, until: NOW - 1 }, { id: 'good' }]))
    await queue.block('due7')
    const first = await run(rig.sender, poll, queue.keys, asSet(queue))
    expect(first.messages.map(({ id }) => id)).to.deep.equal(['good'])
    expect(first.problem).to.match(/^the schedule of priority 7: WRONGTYPE/)
    expect(await rig.redis.zscore(queue.keys.inFlight, '7x')).to.equal(String(NOW + MINUTE))
    expect(await rig.redis.hget(queue.keys.deliveries, 'x')).to.equal('1 t')
    await queue.unblock('due7')
    const later = await run(rig.sender, poll, queue.keys, { ...asSet(queue), nowMs: NOW + MINUTE })
    expect(later.messages.map(({ id }) => id)).to.deep.equal(['x', 'good'])
  })

  it('neither reads nor asks again for a repeat that is larger than any may be', async () => {
    const repeats = [
      ['large', 'x'.repeat(1_000_001)],
      ['small', '5 {}'],
    ] as const
    const queue = await rig.queue(
      having([{ id: 'good' }], {
        repeats,
        ticks: [
          ['large', 5],
          ['small', 5],
        ],
      }),
    )
    const reply = await run(rig.sender, poll, queue.keys, asSet(queue))
    expect(reply.messages).to.have.length(1)
    const given = reply.repeats.map(({ name, value }) => [name, value?.toString() ?? null])
    expect(given).to.deep.equal([
      ['large', null],
      ['small', '5 {}'],
    ])
    expect(await rig.redis.zrange(queue.keys.ticks, '0', '-1')).to.deep.equal(['small'])
    expect(await rig.redis.hstrlen(queue.keys.repeats, 'large')).to.equal(1_000_001)
  })

  it('hands out no more ids than have 1 MiB together', async () => {
    const ids = Array.from({ length: 20 }, (_, n) => `${n}${'x'.repeat(400_000)}`)
    const queue = await rig.queue(having(ids.map((id) => ({ id }))))
    const { messages, next, changed } = await run(rig.sender, poll, queue.keys, { ...asSet(queue), count: 100 })
    // it has also removed the next one, which is longer than any client's, and asks for another poll
    expect({ handed: messages.length, next, changed }).to.deep.equal({ handed: 2, next: 0, changed: 4 })
  })

  it('takes few back at once where their ids are large', async () => {
    const ids = Array.from({ length: 20 }, (_, n) => `${n}${'x'.repeat(400_000)}`)
    const queue = await rig.queue(having(ids.map((id) => ({ id, until: 5 }))))
    const { returned } = await run(rig.sender, poll, queue.keys, asSet(queue))
    expect(returned).to.be.within(1, 4)
  })

  it('forgets marks of any size without reading them', async () => {
    const once = Array.from({ length: 30 }, (_, n) => [`${n}${'x'.repeat(100_000)}`, NOW - 1] as const)
    const queue = await rig.queue({ once })
    const args = {
      channel: queue.channel,
      client: 'me',
      nowMs: NOW,
      existing: 'keep',
      sentAgoMs: -1,
      durable: false,
      batch: '',
    }
    const calls = await commandCalls(rig.redis, async () => {
      await run(rig.sender, add, queue.keys, { ...args, items: [Buffer.from('x'), '0,,,,0,,', Buffer.from('y')] })
    })
    expect(await rig.redis.zcard(queue.keys.once)).to.equal(8)
    expect({ read: calls.zrangebyscore ?? 0 }).to.deep.equal({ read: 0 })
  })

  it('passes over hundreds that are in a schedule only with a few commands, and forgets them', async () => {
    const strangers = Array.from({ length: 300 }, (_, n) => [`s${n}`, n] as const)
    const queue = await rig.queue(having([{ id: 'good' }], { due: { 0: strangers }, deliveries: [['s5', '3']] }))
    const calls = await commandCalls(rig.redis, async () => {
      const { messages } = await run(rig.sender, poll, queue.keys, { ...asSet(queue), count: 100 })
      expect(messages.map(({ id }) => id)).to.deep.equal(['good'])
    })
    expect(calls.hdel).to.be.lessThan(20)
    expect(await rig.redis.zcard(queue.keys.due0)).to.equal(0)
    expect(await rig.redis.hkeys(queue.keys.deliveries)).to.deep.equal(['good'])
  })

  it('passes over them as quickly where a single message is wanted', async () => {
    const gone = Array.from({ length: 900 }, (_, n) => [`s${n}`, n] as const)
    const queue = await rig.queue(having([{ id: 'a' }, { id: 'b' }], { due: { 0: gone }, deliveries: [['s5', '3']] }))
    const calls = await commandCalls(rig.redis, async () => {
      const { messages, changed } = await run(rig.sender, poll, queue.keys, { ...asSet(queue), count: 1 })
      expect(messages.map(({ id }) => id)).to.deep.equal(['a'])
      expect(changed).to.be.at.least(901)
    })
    expect({ reads: calls.zrangebyscore, writes: calls.zrem }).to.satisfy(
      ({ reads = 0, writes = 0 }) => reads < 80 && writes < 40,
    )
    expect(await rig.redis.zrange(queue.keys.due0, '0', '-1')).to.deep.equal(['b'])
    expect(await rig.redis.hkeys(queue.keys.deliveries)).to.deep.equal(['a'])
  })

  it('forgets a claim without a message when its visibility ends, without bringing it back', async () => {
    const gone = Array.from({ length: 900 }, (_, n) => [`${n % 10}s${n}`, n] as const)
    const others = { deliveries: [['s5', '3 t']], failures: [['s6', '1 2 "x"\n']] } as const
    const queue = await rig.queue(having([{ id: 'back', until: 5 }, { id: 'good' }], { inFlight: gone, ...others }))
    const calls = await commandCalls(rig.redis, async () => {
      const { messages, returned } = await run(rig.sender, poll, queue.keys, { ...asSet(queue), count: 5 })
      expect(messages.map(({ id }) => id)).to.deep.equal(['back', 'good'])
      expect(returned).to.equal(1)
    })
    expect(calls.zadd).to.be.lessThan(5)
    expect(await rig.redis.zrange(queue.keys.inFlight, '0', '-1')).to.have.members(['0back', '0good'])
    expect(await rig.redis.hkeys(queue.keys.deliveries)).to.have.members(['back', 'good'])
    expect(await rig.redis.hkeys(queue.keys.failures)).to.deep.equal(['back'])
  })

  it('configures beside any number of settings with a few commands', async () => {
    const config = Array.from({ length: 5_000 }, (_, n) => [`s${n}`, '1'] as const)
    const queue = await rig.queue({ config })
    const args = { channel: queue.channel, epoch: 'e', ifAbsent: true, settings: ['delay', '5'] }
    const calls = await commandCalls(rig.redis, async () => {
      expect(await run(rig.sender, configure, queue.keys, args)).to.equal(false)
    })
    expect(calls.hkeys ?? 0).to.equal(0)
  })

  for (const wrong of ['deadMessages', 'deadDue', 'deadConfig'] as const) {
    it(`keeps what should become a dead letter for a minute while ${wrong} has another type`, async () => {
      const queue = await rig.queue(having([{ id: 'x', attempts: 10 }, { id: 'good' }]))
      await queue.block(wrong)
      const first = await run(rig.sender, poll, queue.keys, asSet(queue))
      expect(first.messages.map(({ id }) => id)).to.deep.equal(['good'])
      expect(first).to.include({ deadLettered: 0 })
      expect(first.problem).to.match(/^the dead letters: WRONGTYPE/)
      expect(await rig.redis.zscore(queue.keys.due0, 'x')).to.equal(String(NOW + MINUTE))
      await queue.unblock(wrong)
      const later = await run(rig.sender, poll, queue.keys, { ...asSet(queue), nowMs: NOW + MINUTE })
      expect(later).to.include({ deadLettered: 1, problem: '' })
      expect(await rig.redis.hkeys(queue.keys.deadMessages)).to.deep.equal(['x'])
    })
  }

  for (const times of [['inf'], [2 ** 53 - 1], [NOW + 90_000_000]]) {
    it(`keeps what was completed last, though other programs have completed ones of ${String(times[0])}`, async () => {
      const forged = Array.from({ length: 5 }, (_, n) => [`strange ${n}`, times[0]!] as const)
      const queue = await rig.queue(
        having([{ id: 'x', until: NOW + 9 }], {
          config: [['keepCompleted', '3']],
          completedAt: forged,
          completed: forged.map(([id]) => [id, `${NOW},1,\n`] as const),
        }),
      )
      const args = { nowMs: NOW, client: 'me', withResults: false, handled: handled(['x', '1 t']) }
      expect(await run(rig.sender, acknowledge, queue.keys, args)).to.deep.equal([true])
      expect(await rig.redis.hget(queue.keys.completed, 'x')).to.equal(`${NOW},1,\n`)
      expect(await rig.redis.zcard(queue.keys.completedAt)).to.equal(3)
    })
  }

  for (const [when, keeps, timeOf] of [
    ['within the next day', 5, (n: number) => NOW + MINUTE + 1 + n * 1_000],
    ['later than in a day', 10, (n: number) => NOW + 86_400_000 + n],
    ['at the end of all times', 10, () => 'inf'],
  ] as const) {
    it(`keeps what was completed last, though other programs have completed many more ${when}`, async () => {
      const forged = Array.from({ length: 400 }, (_, n) => [`strange ${n}`, timeOf(n)] as const)
      const ids = Array.from({ length: 12 }, (_, n) => `x${String(n).padStart(2, '0')}`)
      const queue = await rig.queue(
        having(
          ids.map((id) => ({ id, until: NOW + 9 })),
          { config: [['keepCompleted', '10']], completedAt: forged },
        ),
      )
      for (const [n, id] of ids.entries()) {
        const args = { nowMs: NOW, client: 'me', withResults: false, handled: handled([id, '1 t']) }
        await run(rig.sender, acknowledge, queue.keys, args)
        if (n === 0) expect(await rig.redis.zcard(queue.keys.completedAt)).to.equal(300) // at most 100 more than it adds
        const newest = ids.slice(Math.max(0, n + 1 - keeps), n + 1)
        expect(await rig.redis.hmget(queue.keys.completed, ...newest)).to.deep.equal(newest.map(() => `${NOW},1,\n`))
      }
      expect(await rig.redis.hkeys(queue.keys.completed)).to.have.members(ids.slice(-keeps))
      expect(await rig.redis.zcard(queue.keys.completedAt)).to.equal(10)
    })
  }

  it('gives completed messages whose places another program has deleted their places back, by their times', async () => {
    const stored = Array.from({ length: 60 }, (_, n) => [`c${n}`, `${NOW - n},1,1\nresult`] as const)
    const odd = [['later', `${NOW + 5},1,0\n`] as const, ['junk', 'x'] as const]
    const placed = [['placed', NOW - 70] as const, ['without a record', NOW] as const]
    const queue = await rig.queue({
      config: [['keepCompleted', '100']],
      completed: [...stored, ...odd, ['placed', `${NOW - 70},1,0\n`]],
      completedAt: placed,
    })
    const size = () => rig.redis.zcard(queue.keys.completedAt)
    for (let polls = 0; (await size()) < 63; polls++) {
      expect(polls).to.be.lessThan(500)
      const before = await size()
      const { next, changed } = await run(rig.sender, poll, queue.keys, { ...asSet(queue), nowMs: LOOK })
      const found = (await size()) - before
      expect({ next, changed }).to.deep.equal({ next: found > 0 ? NEXT_LOOK : null, changed: found })
    }
    const places = await rig.redis.zrange(queue.keys.completedAt, '0', '-1', 'WITHSCORES')
    const scores = Object.fromEntries(places.flatMap((name, n) => (n % 2 === 0 ? [[name, Number(places[n + 1])]] : [])))
    for (const [id] of stored) if (id in scores) expect(scores[id]).to.equal(Math.min(LOOK, NOW - Number(id.slice(1))))
    for (const [id, at] of [...placed, ['later', LOOK], ['junk', 0]] as const) {
      if (id in scores) expect(scores[id], id).to.equal(at)
    }
  })

  it('changes no group while the settings are of another type', async () => {
    const queue = await rig.queue({
      groups: [
        ['long', 'x'.repeat(2_000)],
        ['g', '1 '],
      ],
    })
    await queue.block('config')
    const before = await queue.read()
    const args = { channel: queue.channel, nowMs: NOW, cursor: '0' }
    expect(await rejection(run(rig.sender, refreshGroups, queue.keys, args))).to.include({ code: 'ERR_WRONG_TYPE' })
    expect(await queue.read()).to.deep.equal(before)
  })

  it('reads no completed record for its place where each has one', async () => {
    const queue = await rig.queue({
      config: [['keepCompleted', '100']],
      completed: [['c', `${NOW},1,1\nresult`]],
      completedAt: [['c', NOW]],
    })
    const calls = await commandCalls(rig.redis, () =>
      run(rig.sender, poll, queue.keys, { ...asSet(queue), nowMs: LOOK }),
    )
    expect(calls).to.not.include.any.keys('hrandfield')
  })

  it('removes no message that was completed now while there are completed ones of later times', async () => {
    const ids = ['x', 'y', 'z']
    const queue = await rig.queue(
      having(
        ids.map((id) => ({ id, until: NOW + 9 })),
        { config: [['keepCompleted', '3']], completedAt: [['strange', NOW + MINUTE + 1]] },
      ),
    )
    const args = {
      nowMs: NOW,
      client: 'me',
      withResults: false,
      handled: handled(...ids.map((id) => [id, '1 t'] as const)),
    }
    await run(rig.sender, acknowledge, queue.keys, args)
    expect(await rig.redis.zrange(queue.keys.completedAt, '0', '-1')).to.deep.equal(ids)
  })

  it('removes the oldest result, and not those of clients whose clocks are a little ahead', async () => {
    const ahead = Array.from({ length: 9 }, (_, n) => [`ahead ${n}`, NOW + 2_000 + n] as const)
    const state = { config: [['keepCompleted', '10'] as const], completedAt: [['oldest', NOW - 1] as const, ...ahead] }
    const queue = await rig.queue(having([{ id: 'x', until: NOW + 9 }], state))
    const args = { nowMs: NOW, client: 'me', withResults: false, handled: handled(['x', '1 t']) }
    await run(rig.sender, acknowledge, queue.keys, args)
    const kept = await rig.redis.zrange(queue.keys.completedAt, '0', '-1')
    expect(kept).to.deep.equal(['x', ...ahead.map(([id]) => id)])
  })

  it('keeps the results of the last completions, though the times of as many as it keeps are a little ahead', async () => {
    const ahead = Array.from({ length: 32 }, (_, n) => [`ahead ${n}`, NOW + 59_000 + n] as const)
    const ids = ['x', 'y', 'z']
    const state = { config: [['keepCompleted', '32'] as const], completedAt: ahead }
    const queue = await rig.queue(
      having(
        ids.map((id) => ({ id, until: NOW + 9 })),
        state,
      ),
    )
    for (const id of ids) {
      const args = { nowMs: NOW, client: 'me', withResults: false, handled: handled([id, '1 t']) }
      await run(rig.sender, acknowledge, queue.keys, args)
    }
    expect(await rig.redis.zrange(queue.keys.completedAt, '0', '3')).to.deep.equal([...ids, 'ahead 3'])
  })

  for (const flag of ['0', '', 'x'.repeat(40)]) {
    it(`hands out messages with a group whatever another program has written for their flag: ${JSON.stringify(flag)}`, async () => {
      const queue = await rig.queue({ config: [['grouped', flag]] })
      const { channel } = queue
      const how = { channel, nowMs: NOW, existing: 'keep', sentAgoMs: -1, durable: false, batch: '', client: 'me' }
      const items = ['x', 'g1,0,,,0,,', 'gpayload']
      expect(await run(rig.sender, add, queue.keys, { ...how, items })).to.deep.equal({ now: NOW, outcomes: [1] })
      await rig.redis.hset(queue.keys.config, 'grouped', flag.slice(0, 16))
      const { messages } = await run(rig.sender, poll, queue.keys, asSet(queue))
      expect(messages.map(({ id }) => id)).to.deep.equal(flag === '' ? [] : ['x'])
      // without any flag they wait for the next one that is added
      await run(rig.sender, add, queue.keys, { ...how, items: ['y', 'g1,0,,,0,,', 'gpayload'] })
      const later = await run(rig.sender, poll, queue.keys, { ...asSet(queue), nowMs: NOW + 1 })
      expect(later.messages.map(({ id }) => id)).to.deep.equal(flag === '' ? ['x', 'y'] : ['y'])
    })
  }

  it('keeps rejected messages while the dead letters have another type, and reports it', async () => {
    const queue = await rig.queue(
      having([
        { id: 'x', until: NOW + 9 },
        { id: 'y', until: NOW + 9 },
      ]),
    )
    await queue.block('deadMessages')
    const { channel, deadChannel } = queue
    const pairs = handled(['x', '1 t'], ['y', '1 t'])
    const args = {
      channel,
      deadChannel,
      client: 'me',
      nowMs: NOW,
      how: 'rejected',
      delayMs: 0,
      reason: '""',
      handled: pairs,
    }
    expect(await run(rig.sender, negativeAcknowledge, queue.keys, args)).to.deep.equal([3, 3])
    expect(await rig.redis.zrange(queue.keys.due0, '0', '-1', 'WITHSCORES')).to.deep.equal(
      ['x', 'y'].flatMap((id) => [id, String(NOW + MINUTE)]),
    )
    expect(await rig.redis.zcard(queue.keys.inFlight)).to.equal(0)
  })
})
