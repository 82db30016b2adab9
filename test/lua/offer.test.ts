import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import type { ArgsOf } from '../../src/store/script.js'
import { offer } from '../../src/store/scripts.js'
import {
  ALL_BYTES,
  expected,
  old,
  ordered,
  rejection,
  unordered,
  useRedis,
  type Fixture,
  type Rig,
  type State,
} from './support.js'

type Args = ArgsOf<(typeof offer)['source']>

const NOW = 1_000_000
const MAX = Number.MAX_SAFE_INTEGER

function offerTo(rig: Rig, queue: Fixture, args: Partial<Args> & Pick<Args, 'entry'>): Promise<number> {
  const base = { channel: queue.keys.channel, nowMs: NOW, delayMs: 500, ordered: true, undeliveredUntilMs: -1 }
  return run(rig.sender, offer, queue.keys, { ...base, ...args })
}

describe('offer.lua', () => {
  const rig = useRedis()
  const [a, b, c, e] = [ordered('a', 'A'), ordered('b', 'B'), unordered('c', 'C'), old('e', 'E')]
  const full = ordered('\x00\xff\r\n', ALL_BYTES)
  const empty = ordered('a', '')
  const DUE = NOW + 500

  const cases: {
    what: string
    before: State
    args: Partial<Args> & Pick<Args, 'entry'>
    reply: number
    after: State
    published: number[]
  }[] = [
    {
      what: 'adds the first entry to schedule and order list and announces it',
      before: {},
      args: { entry: a },
      reply: DUE,
      after: { timeouts: [[a, DUE]], order: [a] },
      published: [DUE],
    },
    {
      what: 'leaves the order list out when `ordered` is false',
      before: {},
      args: { entry: c, ordered: false },
      reply: DUE,
      after: { timeouts: [[c, DUE]] },
      published: [DUE],
    },
    {
      what: 'adds an entry behind the head without a word',
      before: { timeouts: [[b, DUE - 1]], order: [b] },
      args: { entry: a },
      reply: DUE,
      after: {
        timeouts: [
          [b, DUE - 1],
          [a, DUE],
        ],
        order: [b, a],
      },
      published: [],
    },
    {
      what: 'announces the first one behind entries with a negative due time, which are never delivered',
      before: { timeouts: [[b, -1]], order: [b] },
      args: { entry: a },
      reply: DUE,
      after: {
        timeouts: [
          [b, -1],
          [a, DUE],
        ],
        order: [b, a],
      },
      published: [DUE],
    },
    {
      what: 'announces a new head, and appends it to the order list all the same',
      before: {
        timeouts: [
          [b, DUE + 1],
          [e, DUE + 2],
        ],
        order: [b, e],
      },
      args: { entry: a },
      reply: DUE,
      after: {
        timeouts: [
          [a, DUE],
          [b, DUE + 1],
          [e, DUE + 2],
        ],
        order: [b, e, a],
      },
      published: [DUE],
    },
    {
      what: 'does not announce the second entry of a millisecond',
      before: { timeouts: [[a, DUE]], order: [a] },
      args: { entry: b },
      reply: DUE,
      after: {
        timeouts: [
          [a, DUE],
          [b, DUE],
        ],
        order: [a, b],
      },
      published: [],
    },
    {
      what: 'announces an entry that its id puts before another one of the same millisecond',
      before: { timeouts: [[b, DUE]], order: [b] },
      args: { entry: a },
      reply: DUE,
      after: {
        timeouts: [
          [a, DUE],
          [b, DUE],
        ],
        order: [b, a],
      },
      published: [DUE],
    },
    {
      what: 'takes a delay of 0',
      before: {},
      args: { entry: a, delayMs: 0 },
      reply: NOW,
      after: { timeouts: [[a, NOW]], order: [a] },
      published: [NOW],
    },
    {
      what: 'keeps all byte values, and empty payloads',
      before: { timeouts: [[empty, 1]] },
      args: { entry: full },
      reply: DUE,
      after: {
        timeouts: [
          [empty, 1],
          [full, DUE],
        ],
        order: [full],
      },
      published: [],
    },
    {
      what: 'refuses bytes that are there already: a collision',
      before: { timeouts: [[a, 77]], order: [a] },
      args: { entry: a },
      reply: -1,
      after: { timeouts: [[a, 77]], order: [a] },
      published: [],
    },
    {
      what: 'finds an entry of an earlier attempt, and changes nothing',
      before: {
        timeouts: [
          [a, 77],
          [b, 78],
        ],
        order: [a, b],
      },
      args: { entry: a, undeliveredUntilMs: MAX },
      reply: 77,
      after: {
        timeouts: [
          [a, 77],
          [b, 78],
        ],
        order: [a, b],
      },
      published: [],
    },
    {
      what: 'adds the entry when the earlier attempt did not arrive',
      before: {},
      args: { entry: a, undeliveredUntilMs: MAX },
      reply: DUE,
      after: { timeouts: [[a, DUE]], order: [a] },
      published: [DUE],
    },
    {
      what: 'adds nothing when the entry of an earlier attempt may have been delivered meanwhile',
      before: { timeouts: [[b, 1]], order: [b] },
      args: { entry: a, undeliveredUntilMs: 1 },
      reply: -3,
      after: { timeouts: [[b, 1]], order: [b] },
      published: [],
    },
    {
      what: 'finds an entry of an earlier attempt also when it is too late to repeat',
      before: { timeouts: [[a, 77]], order: [a] },
      args: { entry: a, undeliveredUntilMs: 1 },
      reply: 77,
      after: { timeouts: [[a, 77]], order: [a] },
      published: [],
    },
    {
      what: 'takes the largest due time that is a whole number',
      before: {},
      args: { entry: a, delayMs: MAX - NOW },
      reply: MAX,
      after: { timeouts: [[a, '9007199254740991']], order: [a] },
      published: [MAX],
    },
    {
      what: 'refuses a due time above 2^53-1',
      before: { timeouts: [[b, 1]], order: [b] },
      args: { entry: a, delayMs: MAX - NOW + 1 },
      reply: -2,
      after: { timeouts: [[b, 1]], order: [b] },
      published: [],
    },
    {
      what: 'refuses the largest delay',
      before: {},
      args: { entry: a, delayMs: MAX },
      reply: -2,
      after: {},
      published: [],
    },
  ]
  for (const { what, before, args, reply, after, published } of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      expect(await offerTo(rig, queue, args)).to.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(after))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }

  it('adds an entry once, however often it is sent', async () => {
    const queue = await rig.queue()
    const first = await offerTo(rig, queue, { entry: a, nowMs: -1 })
    for (let i = 0; i < 3; i++)
      expect(await offerTo(rig, queue, { entry: a, nowMs: -1, undeliveredUntilMs: MAX })).to.equal(first)
    expect(await queue.read()).to.deep.equal(expected({ timeouts: [[a, first]], order: [a] }))
    expect(await queue.published()).to.deep.equal([String(first)])
  })

  it('uses the clock of the server without a given time', async () => {
    const queue = await rig.queue()
    const millis = async () => {
      const [seconds, micros] = (await rig.redis.time()) as unknown as [string, string]
      return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
    }
    const earliest = (await millis()) + 500
    const due = await offerTo(rig, queue, { entry: a, nowMs: -1 })
    expect(due).to.be.within(earliest, (await millis()) + 500)
    expect(await queue.read()).to.deep.equal(expected({ timeouts: [[a, due]], order: [a] }))
    expect(await queue.published()).to.deep.equal([String(due)])
  })

  it('changes nothing when the order list is not a list', async () => {
    const queue = await rig.queue({ timeouts: [[b, DUE + 1]] })
    await rig.redis.set(queue.keys.order, 'in the way')

    expect(await rejection(offerTo(rig, queue, { entry: a }))).to.include({ code: 'ERR_WRONG_TYPE' })

    expect(await rig.redis.get(queue.keys.order)).to.equal('in the way')
    await rig.redis.del(queue.keys.order)
    expect(await queue.read()).to.deep.equal(expected({ timeouts: [[b, DUE + 1]] }))
    expect(await queue.published()).to.deep.equal([])
  })

  it('changes nothing when the schedule is not a sorted set', async () => {
    const queue = await rig.queue({ order: [b] })
    await rig.redis.set(queue.keys.timeouts, 'in the way')
    expect(await rejection(offerTo(rig, queue, { entry: a }))).to.include({ code: 'ERR_WRONG_TYPE' })
    await rig.redis.del(queue.keys.timeouts)
    expect(await queue.read()).to.deep.equal(expected({ order: [b] }))
    expect(await queue.published()).to.deep.equal([])
  })

  it('announces the first one behind an entry of another program that is overdue by more than 365 days, and no other', async () => {
    const [now, days] = [4_000_000_000_000, 86_400_000]
    const dated = { nowMs: 0, delayMs: now + 500 }
    for (const args of [{ nowMs: now }, dated])
      for (const [score, hides] of [
        ['-inf', false],
        [0.5, false],
        [1_000, false],
        // by the server's clock for a due time
        [args === dated ? Date.now() - 366 * days : now - 366 * days, false],
        [args === dated ? Date.now() - 364 * days : now - 364 * days, true],
        [now + 499, true],
      ] as const) {
        const queue = await rig.queue({ timeouts: [[b, score]] })
        expect(await offerTo(rig, queue, { entry: a, ...args })).to.equal(now + 500)
        const published = hides ? [] : [String(now + 500)]
        expect(await queue.published(), `behind ${score}`).to.deep.equal(published)
      }
  })

  describe('on a server of its own', () => {
    const own = useRedis([])

    it('changes nothing when memory is out', async () => {
      const queue = await own.queue({ timeouts: [[b, 1]], order: [b] })
      await own.redis.config('SET', 'maxmemory', '1')
      try {
        expect(await rejection(offerTo(own, queue, { entry: a }))).to.include({ code: 'ERR_COMMAND', redisCode: 'OOM' })
        expect(await queue.read()).to.deep.equal(expected({ timeouts: [[b, 1]], order: [b] }))
      } finally {
        await own.redis.config('SET', 'maxmemory', '0')
      }
    })
  })
})
