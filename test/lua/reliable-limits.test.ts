/** The limits of a queue over all processes: in the poll, and at every end of a claim. */
import { expect } from 'chai'
import {
  acknowledge,
  add,
  extend,
  negativeAcknowledge,
  poll,
  remove,
  restore,
  type PollReply,
} from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  expected,
  handled,
  having,
  NOW,
  pollArgs,
  useReliable,
  type PollArgs,
  type ReliableFixture,
  type State,
  LONGEST,
} from './reliable-support.js'

const waiting = ['a', 'b', 'c', 'd'].map((id, n) => ({ id, at: NOW - 9 + n }))
const held = (id: string, until: number) => ({ id, until, token: 'u' })
const limited = (messages: Parameters<typeof having>[0], config: Record<string, string>, more: State = {}): State =>
  having(messages, { ...more, config: Object.entries(config) })

describe('limits over all processes', () => {
  const rig = useReliable()

  it('claims without a message, which end never or long after all others, hold no slot', async () => {
    const forged = ['inf', 2 ** 53 - 1, NOW + 90_000].map((ends, n) => [`${n}none ${n}`, ends] as const)
    const queue = await rig.queue(
      limited([...waiting, held('x', NOW + 50)], { concurrency: '3' }, { inFlight: [...forged, ['gnone', '1e300']] }),
    )
    expect((await claim(queue)).messages.map(({ id }) => id)).to.deep.equal(['a', 'b'])
    expect((await queue.read()).queue.inFlight).to.deep.equal([
      ['0x', String(NOW + 50)],
      ['0a', String(NOW + 500)],
      ['0b', String(NOW + 500)],
    ])
  })

  it('nor do a thousand of them, after which a poll reports that it can continue at once', async () => {
    const forged = Array.from({ length: 2_000 }, (_, n) => [`0none ${n}`, 'inf'] as const)
    const queue = await rig.queue(limited(waiting, { concurrency: '3' }, { inFlight: forged }))
    const nexts: (number | null)[] = []
    for (let n = 0; n < 3; n++) {
      const { messages, next } = await claim(queue)
      nexts.push(next)
      if (messages.length > 0) break
    }
    expect(nexts).to.deep.equal([NOW, NOW, NOW + 500])
  })

  it('a claim without a consumer comes back at the limit, however late it would end, and is lost no more than another', async () => {
    const queue = await rig.queue(limited([{ id: 'y', until: 'inf', attempts: 3 }], { concurrency: '1' }))
    await rig.redis.hset(queue.keys.deliveries, 'y', '3')
    expect((await claim(queue)).messages).to.deep.equal([])
    expect((await claim(queue)).messages.map(({ id, delivery }) => [id, delivery])).to.deep.equal([['y', '4 t']])
  })

  const redisNow = async (): Promise<number> => {
    const [seconds, microseconds] = await rig.redis.time()
    return Math.floor(Number(seconds) * 1_000 + Number(microseconds) / 1_000)
  }

  for (const what of ['8e15', 'inf', 'a minute and a day too late']) {
    it(`a claim that ends later than any client can set ends as a new one would: ${what}`, async () => {
      const until = what.startsWith('a') ? (await redisNow()) + LONGEST + 61_000 + 86_400_000 : what
      const x = { id: 'x', until: until as number, token: 'u', attempts: 2, priority: 3 }
      const queue = await rig.queue(limited([x], { concurrency: '1', visibilityTimeout: '60000' }))
      const before = await redisNow()
      const { messages, next } = await claim(queue, { nowMs: -1 })
      expect(messages).to.deep.equal([])
      expect(next).to.be.within(before + 60_000, (await redisNow()) + 60_000)
      expect(Number(await rig.redis.zscore(queue.keys.inFlight, '3x'))).to.equal(next)
      // its consumer, if it has one, still has it
      const args = { channel: queue.channel, nowMs: -1, visibilityMs: 1, unbegun: 0, handled: handled(['x', '2 u', 3]) }
      const [ends] = await run(rig.sender, extend, queue.keys, args)
      expect(ends).to.be.a('number')
      expect((await claim(queue, { nowMs: ends! + 1 })).messages.map(({ id }) => id)).to.deep.equal(['x'])
    })
  }

  it('a client whose clock is decades behind takes no claim for one that ends too late', async () => {
    const until = (await redisNow()) + 50_000
    const queue = await rig.queue(limited([held('x', until)], {}))
    expect(await claim(queue, { nowMs: NOW })).to.deep.include({ messages: [], next: until })
    const longest = await rig.queue(limited([held('x', until + LONGEST)], {}))
    expect(await claim(longest, { nowMs: -1 })).to.deep.include({ messages: [], next: until + LONGEST })
  })

  it('no client sets a later end', async () => {
    const queue = await rig.queue(limited([{ id: 'x' }], {}))
    expect((await claim(queue, { visibilityMs: 2 ** 53 - 1 })).visibilityMs).to.equal(LONGEST)
    const args = {
      channel: queue.channel,
      nowMs: NOW + 5,
      visibilityMs: 2 ** 53 - 1,
      unbegun: 0,
      handled: handled(['x', '1 t']),
    }
    expect(await run(rig.sender, extend, queue.keys, args)).to.deep.equal([NOW + 5 + LONGEST])
  })

  const claim = (queue: ReliableFixture, args: Partial<PollArgs> = {}): Promise<PollReply> =>
    run(rig.sender, poll, queue.keys, pollArgs(queue, args))

  interface Case {
    what: string
    before: State
    args?: Partial<PollArgs>
    ids: string[]
    next: number | null
    published: (number | string)[]
    /** The stored rate afterwards. */
    rate?: string
  }

  const cases: Case[] = [
    {
      what: 'fills the free slots, and polls again when a visibility timeout ends',
      before: limited([...waiting, held('x', NOW + 50)], { concurrency: '3' }),
      ids: ['a', 'b'],
      next: NOW + 50,
      published: [NOW + 50],
    },
    {
      what: 'hands out nothing at the limit',
      before: limited([...waiting, held('x', NOW + 50)], { concurrency: '1' }),
      ids: [],
      next: NOW + 50,
      published: [],
    },
    {
      what: 'hands out nothing beyond a limit that was lowered',
      before: limited([...waiting, held('x', NOW + 50), held('y', NOW + 60)], { concurrency: '1' }),
      ids: [],
      next: NOW + 50,
      published: [],
    },
    {
      what: 'counts a message that was prefetched, to the millisecond',
      before: limited(
        [...waiting],
        { concurrency: '1' },
        { inFlight: [['0x', NOW + 0.75]], messages: [['x', '\0']], deliveries: [['x', '1 ~u']] },
      ),
      ids: [],
      next: NOW + 1,
      published: [],
    },
    {
      what: 'has the slot of a visibility that has just ended',
      before: limited([...waiting, held('x', NOW)], { concurrency: '1' }),
      ids: ['a'],
      next: NOW + 500,
      published: [NOW + 500],
    },
    {
      what: 'looks for ticks at the limit too',
      before: limited([...waiting, held('x', NOW + 50)], { concurrency: '1' }, { ticks: [['r', NOW + 7]] }),
      ids: [],
      next: NOW + 7,
      published: [],
    },
    {
      what: 'says what is next while a slot is left',
      before: limited([...waiting, held('x', NOW + 50)], { concurrency: '3' }),
      args: { count: 1 },
      ids: ['a'],
      next: NOW - 8,
      published: [NOW - 8],
    },
    ...['', '0', '-1', 'nan', 'inf', '1e3', '1000001', '9'.repeat(17)].map((value) => ({
      what: `takes a stored concurrency of "${value}" for none`,
      before: limited([...waiting, held('x', NOW + 50)], { concurrency: value }),
      ids: ['a', 'b', 'c', 'd'],
      next: NOW + 50,
      published: [NOW + 50],
    })),
    {
      what: 'counts the claims of a rate',
      before: limited(waiting, { rateLimit: '9/1000' }),
      ids: ['a', 'b', 'c', 'd'],
      next: NOW + 500,
      published: [NOW + 500],
      rate: `4@${NOW} `,
    },
    {
      what: 'adds up what another program has written, so that it reads all that it writes',
      before: limited(waiting, { rateLimit: '100/32000' }, { rate: `1@${NOW - 4} `.repeat(60) }),
      args: { count: 1 },
      ids: ['a'],
      next: NOW - 8,
      published: [NOW - 8],
      rate: `60@${NOW - 4} 1@${NOW} `,
    },
    {
      what: 'adds up what lies behind too many cells, as of the last',
      before: limited(waiting, { rateLimit: '100/3200' }, { rate: `1@${NOW - 1_000} 1@${NOW - 100} `.repeat(30) }),
      args: { count: 1 },
      ids: ['a'],
      next: NOW - 8,
      published: [NOW - 8],
      rate: `1@${NOW - 1_000} 1@${NOW - 100} `.repeat(16) + `28@${NOW - 100} 1@${NOW} `,
    },
    {
      what: 'hands out what the rate admits, and looks again when it admits the next',
      before: limited(waiting, { rateLimit: '3/100' }, { rate: `1@${NOW - 90} ` }),
      ids: ['a', 'b'],
      next: NOW + 10,
      published: [NOW + 10],
      rate: `1@${NOW - 90} 2@${NOW} `,
    },
    {
      what: 'hands out nothing while the rate admits none',
      before: limited(waiting, { rateLimit: '3/100' }, { rate: `1@${NOW - 99} 2@${NOW - 90} ` }),
      ids: [],
      next: NOW + 1,
      published: [],
      rate: `1@${NOW - 99} 2@${NOW - 90} `,
    },
    {
      what: 'forgets claims after the stretch, to the millisecond',
      before: limited(waiting, { rateLimit: '3/100' }, { rate: `1@${NOW - 100} 2@${NOW - 90} ` }),
      ids: ['a'],
      next: NOW + 10,
      published: [NOW + 10],
      rate: `2@${NOW - 90} 1@${NOW} `,
    },
    {
      what: 'counts the claims of a thirty-second of the stretch as of the last of them',
      before: limited(waiting, { rateLimit: '9/32000' }, { rate: `1@${NOW - 1_001} 2@${NOW - 64} ` }),
      args: { nowMs: NOW + 10 },
      ids: ['a', 'b', 'c', 'd'],
      next: NOW + 510,
      published: [NOW + 510],
      rate: `1@${NOW - 1_001} 2@${NOW - 64} 4@${NOW + 10} `,
    },
    {
      what: 'puts claims of the same thirty-second together',
      before: limited(waiting, { rateLimit: '9/32000' }, { rate: `1@${NOW} ` }),
      args: { nowMs: NOW + 10 },
      ids: ['a', 'b', 'c', 'd'],
      next: NOW + 510,
      published: [NOW + 510],
      rate: `5@${NOW + 10} `,
    },
    {
      what: 'looks for what is visible later than the rate admits it',
      before: limited([{ id: 'a', at: NOW + 70 }], { rateLimit: '1/100' }, { rate: `1@${NOW - 90} ` }),
      ids: [],
      next: NOW + 70,
      published: [],
      rate: `1@${NOW - 90} `,
    },
    {
      what: 'waits for nothing with an empty queue, whatever the rate',
      before: limited([], { rateLimit: '1/100' }, { rate: `1@${NOW - 90} ` }),
      ids: [],
      next: null,
      published: [],
      rate: `1@${NOW - 90} `,
    },
    {
      what: 'waits at most for the stretch after the clock was set back',
      before: limited(waiting, { rateLimit: '1/100' }, { rate: `1@${NOW + 1e6} ` }),
      ids: [],
      next: NOW + 101,
      published: [],
      rate: `1@${NOW + 1} `,
    },
    {
      what: 'keeps both limits',
      before: limited([...waiting, held('x', NOW + 50)], { concurrency: '3', rateLimit: '1/100' }),
      ids: ['a'],
      next: NOW + 50,
      published: [NOW + 50],
      rate: `1@${NOW} `,
    },
    ...['', '5', '5/', '/5', '0/5', '5/0', '-1/5', 'nan/5', '5/inf', '1000001/5', '5/86400001', '1/1/1'].map(
      (value) => ({
        what: `takes a stored rate of "${value}" for none`,
        before: limited(waiting, { rateLimit: value }, { rate: `9@${NOW} ` }),
        ids: ['a', 'b', 'c', 'd'],
        next: NOW + 500,
        published: [NOW + 500],
        rate: `9@${NOW} `,
      }),
    ),
    ...['nan@1 ', '-1@5 ', `1@${'9'.repeat(30)} `, `${'9'.repeat(30)}@${NOW} `, '@', 'x'.repeat(5_000)].map((text) => ({
      what: `passes over "${text.slice(0, 40)}" where the claims of a rate are`,
      before: limited(waiting, { rateLimit: '9/100' }, { rate: text }),
      ids: ['a', 'b', 'c', 'd'],
      next: NOW + 500,
      published: [NOW + 500],
      rate: `4@${NOW} `,
    })),
  ]

  for (const { what, before, args, ids, next, published, rate } of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      const reply = await claim(queue, args)
      expect(reply.problem).to.equal('')
      expect(reply.messages.map(({ id }) => id)).to.deep.equal(ids)
      expect(reply.next).to.equal(next)
      expect(await queue.published()).to.deep.equal(published.map(String))
      expect((await queue.read()).queue.rate).to.equal(rate)
    })
  }

  it('hands out and reports where the claims of a rate have another type', async () => {
    const queue = await rig.queue(limited(waiting, { rateLimit: '2/100' }))
    await rig.redis.hset(queue.keys.rate, 'in', 'the way')
    const reply = await claim(queue)
    expect(reply.messages).to.have.length(2)
    expect(reply.problem).to.match(/^the claims of the rate limit: WRONGTYPE/)
    await rig.redis.unlink(queue.keys.rate)
  })

  it('keeps the text of a rate short, however many claims there are, and never admits more', async () => {
    const many = Array.from({ length: 400 }, (_, n) => ({ id: `${n}`, at: NOW }))
    const queue = await rig.queue(limited(many, { rateLimit: '50/1000' }))
    const times: number[] = []
    for (let nowMs = NOW; times.length < 400; nowMs += 19) {
      const { messages } = await claim(queue, { nowMs, count: 1 + (nowMs % 7), visibilityMs: 1e6 })
      for (const _ of messages) times.push(nowMs)
      expect(((await queue.read()).queue.rate ?? '').length).to.be.lessThan(1_024)
    }
    for (const [n, time] of times.entries()) expect((times[n + 50] ?? Infinity) - time).to.be.at.least(1_000)
    // and not much less than it may: 8 stretches of 50, each begun at once
    expect(times.at(-1)! - NOW).to.be.lessThan(9_000)
  })

  /** Each of them ends the claim `x`, or one of an id that is not held. */
  const ends: readonly [what: string, end: (queue: ReliableFixture, id: string) => Promise<unknown>][] = [
    [
      'an acknowledgement',
      ({ keys }, id) =>
        run(rig.sender, acknowledge, keys, {
          nowMs: NOW,
          client: 'me',
          withResults: false,
          handled: handled([id, '1 u']),
        }),
    ],
    ...(['failed', 'rejected', 'released'] as const).map((how): (typeof ends)[number] => [
      `a negative acknowledgement (${how})`,
      ({ keys, channel, deadChannel }, id) =>
        run(rig.sender, negativeAcknowledge, keys, {
          channel,
          deadChannel,
          nowMs: NOW,
          how,
          delayMs: 5_000,
          reason: '""',
          client: 'me',
          handled: handled([id, '1 u']),
        }),
    ]),
    [
      'a removal',
      ({ keys }, id) => run(rig.sender, remove, keys, { nowMs: NOW, alsoHeld: true, client: 'me', ids: [id] }),
    ],
    [
      'a replacement',
      ({ keys, channel }, id) =>
        run(rig.sender, add, keys, {
          channel,
          nowMs: NOW,
          existing: 'replace',
          sentAgoMs: -1,
          durable: false,
          batch: '',
          client: 'me',
          items: [id, '0,5000,,,0,,', 'new'],
        }),
    ],
  ]

  for (const [what, end] of ends) {
    it(`${what} notifies waiting clients when the queue was at its limit`, async () => {
      const queue = await rig.queue(limited([...waiting, held('x', NOW + 50)], { concurrency: '1' }))
      await end(queue, 'x')
      const published = (await queue.published()).filter((text) => !text.startsWith('dead'))
      expect(published).to.deep.equal([String(NOW)])
      expect((await claim(queue)).messages.map(({ id }) => id)).to.deep.equal(['a'])
    })

    it(`${what} publishes nothing below the limit, nor without one`, async () => {
      for (const config of [{ concurrency: '2' }, {} as Record<string, string>]) {
        const queue = await rig.queue(limited([...waiting, held('x', NOW + 50)], config))
        await end(queue, 'x')
        expect((await queue.published()).filter((text) => !text.startsWith('dead'))).to.deep.equal([])
      }
    })
  }

  it('a message that is put back in place of a held one wakes waiting consumers', async () => {
    const now = Math.floor(Date.now() + 60_000)
    const queue = await rig.queue(limited([{ id: 'x', until: now, token: 'u' }, ...waiting], { concurrency: '1' }))
    const items = ['x', `0,${now + 5_000},0,,,0,0,${now}`, 'new']
    expect(
      await run(rig.sender, restore, queue.keys, { channel: queue.channel, client: 'me', known: false, items }),
    ).to.deep.equal([2])
    const published = await queue.published()
    expect(published).to.have.length(1)
    expect(Number(published[0])).to.be.lessThan(now)
  })

  it('a visibility that is cut short at the limit is announced, however much is visible', async () => {
    const before = limited([...waiting, held('x', NOW + 50_000)], { concurrency: '1' })
    const queue = await rig.queue(before)
    const args = { channel: queue.channel, nowMs: NOW, visibilityMs: 9, unbegun: 0, handled: handled(['x', '1 u']) }
    expect(await run(rig.sender, extend, queue.keys, args)).to.deep.equal([NOW + 9])
    expect(await queue.published()).to.deep.equal([String(NOW + 9)])
    expect((await queue.read()).queue).to.deep.equal(
      expected(limited([...waiting, held('x', NOW + 9)], { concurrency: '1' })).queue,
    )
  })
})
