import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { poll } from '../../src/store/scripts.js'
import {
  ALL_BYTES,
  commandCalls,
  expected,
  old,
  ordered,
  readable,
  rejection,
  unordered,
  useRedis,
  type Bytes,
  type State,
} from './support.js'

describe('poll.lua', () => {
  const rig = useRedis()
  const [a, b, c, e] = [ordered('a', 'A'), ordered('b', ALL_BYTES), unordered('c', ''), old('e', 'E')]
  const all: State = {
    timeouts: [
      [c, 1],
      [b, 2],
      [e, 3],
      [a, 4],
    ],
    order: [a, e, b],
    destination: ['there'],
  }
  const stale = Array.from({ length: 1001 }, (_, n) => ordered(`s${n}`, 'S'))

  const cases: { what: string; before?: State; count: number; ordered: boolean; reply: Bytes[]; after: State }[] = [
    {
      what: 'takes the oldest offered',
      count: 1,
      ordered: true,
      reply: [a],
      after: {
        timeouts: [
          [c, 1],
          [b, 2],
          [e, 3],
        ],
        order: [e, b],
        destination: ['there'],
      },
    },
    {
      what: 'takes several in offer order, whatever their due times',
      count: 2,
      ordered: true,
      reply: [a, e],
      after: {
        timeouts: [
          [c, 1],
          [b, 2],
        ],
        order: [b],
        destination: ['there'],
      },
    },
    {
      what: 'takes all that are in the order list when asked for more',
      count: 10,
      ordered: true,
      reply: [a, e, b],
      after: { timeouts: [[c, 1]], destination: ['there'] },
    },
    {
      what: 'takes the earliest due in the order of the schedule, and removes it from the order list too',
      count: 2,
      ordered: false,
      reply: [c, b],
      after: {
        timeouts: [
          [e, 3],
          [a, 4],
        ],
        order: [a, e],
        destination: ['there'],
      },
    },
    {
      what: 'takes all by due time when asked for more',
      count: 10,
      ordered: false,
      reply: [c, b, e, a],
      after: { destination: ['there'] },
    },
    { what: 'gives nothing from an empty order list', before: {}, count: 1, ordered: true, reply: [], after: {} },
    { what: 'gives nothing from an empty schedule', before: {}, count: 1, ordered: false, reply: [], after: {} },
    {
      what: 'passes over what was delivered already',
      before: { timeouts: [[b, 2]], order: [a, e, b] },
      count: 1,
      ordered: true,
      reply: [b],
      after: {},
    },
    {
      what: 'passes over a bounded number of them in one script',
      before: { timeouts: [[b, 2]], order: [...stale, b] },
      count: 1,
      ordered: true,
      reply: [],
      after: { timeouts: [[b, 2]], order: [b] },
    },
  ]
  for (const { what, before = all, count, ordered: inOrder, reply, after } of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      const entries = await run(rig.sender, poll, queue.keys, {
        count,
        bytes: 1_000_000,
        ordered: inOrder,
        budgetUs: 1_000_000,
      })
      expect(entries.map(readable)).to.deep.equal(reply.map(readable))
      expect(await queue.read()).to.deep.equal(expected(after))
      expect(await queue.published()).to.deep.equal([])
    })
  }

  it('changes nothing when the order list is not a list', async () => {
    const queue = await rig.queue({
      timeouts: [
        [a, 1],
        [b, 2],
      ],
    })
    await rig.redis.set(queue.keys.order, 'in the way')
    for (const inOrder of [true, false]) {
      const polled = run(rig.sender, poll, queue.keys, {
        count: 2,
        bytes: 1_000_000,
        ordered: inOrder,
        budgetUs: 1_000_000,
      })
      expect(await rejection(polled)).to.include({ code: 'ERR_WRONG_TYPE' })
    }
    await rig.redis.del(queue.keys.order)
    expect(await queue.read()).to.deep.equal(
      expected({
        timeouts: [
          [a, 1],
          [b, 2],
        ],
      }),
    )
  })

  it('changes nothing when the schedule is not a sorted set', async () => {
    const queue = await rig.queue({ order: [a] })
    await rig.redis.set(queue.keys.timeouts, 'in the way')
    for (const inOrder of [true, false]) {
      const polled = run(rig.sender, poll, queue.keys, {
        count: 1,
        bytes: 1_000_000,
        ordered: inOrder,
        budgetUs: 1_000_000,
      })
      expect(await rejection(polled)).to.include({ code: 'ERR_WRONG_TYPE' })
    }
    await rig.redis.del(queue.keys.timeouts)
    expect(await queue.read()).to.deep.equal(expected({ order: [a] }))
  })

  const strangers = Array.from({ length: 1_001 }, (_, n) => `stranger ${n}`)
  const args = { count: 100, bytes: 1_000_000, ordered: false, budgetUs: 1_000_000 }

  it('does not search a long order list for an unreadable entry, or for one that is in no list', async () => {
    const timeouts = [
      ...Array.from({ length: 40 }, (_, n) => [unordered(`u${n}`, 'U'), n] as const),
      ...Array.from({ length: 40 }, (_, n) => [`unreadable ${n}`, 50 + n] as const),
    ]
    const queue = await rig.queue({ timeouts, order: strangers })
    const calls = await commandCalls(rig.redis, async () => {
      expect(await run(rig.sender, poll, queue.keys, args)).to.have.lengthOf(80)
    })
    expect(calls.lrem ?? 0).to.equal(0)
    expect((await queue.read()).order).to.have.lengthOf(strangers.length)
  })

  it('takes no more after its time when each has to be searched for', async () => {
    const entries = Array.from({ length: 40 }, (_, n) => ordered(`o${n}`, 'O'))
    const timeouts = entries.map((entry, n) => [entry, n] as const)
    const queue = await rig.queue({ timeouts, order: [...strangers, ...entries] })
    expect(await run(rig.sender, poll, queue.keys, { ...args, budgetUs: 1 })).to.have.lengthOf(1)
    expect(await run(rig.sender, poll, queue.keys, args)).to.have.lengthOf(39)
    expect((await queue.read()).order).to.have.lengthOf(strangers.length)
  })
})
