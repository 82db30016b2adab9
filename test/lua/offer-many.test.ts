import { expect } from 'chai'
import { run } from '../../src/store/run.js'
import { offerMany } from '../../src/store/scripts.js'
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

const NOW = 1_000_000
const MAX = Number.MAX_SAFE_INTEGER

type Items = readonly (readonly [delayMs: number, entry: Buffer])[]

async function offerTo(
  rig: Rig,
  queue: Fixture,
  items: Items,
  { nowMs = NOW, inOrder = true, resent = false } = {},
): Promise<{ now: number; others: [number, number][] }> {
  const args = {
    channel: queue.keys.channel,
    nowMs,
    ordered: inOrder,
    resent,
    delays: items.map(([delay]) => delay).join(),
    entries: items.map(([, entry]) => entry),
  }
  const { now, others } = await run(rig.sender, offerMany, queue.keys, args)
  return { now, others: [...others] }
}

describe('offer-many.lua', () => {
  const rig = useRedis()
  const [a, b, c, d, e] = [ordered('a', 'A'), ordered('b', 'B'), unordered('c', 'C'), ordered('d', 'D'), old('e', 'E')]
  const full = ordered('\x00\xff\r\n', ALL_BYTES)

  const cases: {
    what: string
    before: State
    items: Items
    options?: { inOrder?: boolean; resent?: boolean }
    others?: [number, number][]
    after: State
    published: number[]
  }[] = [
    {
      what: 'adds entries in the order given, and announces the earliest alone',
      before: {},
      items: [
        [500, a],
        [300, b],
        [400, d],
      ],
      after: {
        timeouts: [
          [b, NOW + 300],
          [d, NOW + 400],
          [a, NOW + 500],
        ],
        order: [a, b, d],
      },
      published: [NOW + 300],
    },
    {
      what: 'announces the first one behind entries with a negative due time, which are never delivered',
      before: { timeouts: [[c, -1]] },
      items: [[500, a]],
      after: {
        timeouts: [
          [c, -1],
          [a, NOW + 500],
        ],
        order: [a],
      },
      published: [NOW + 500],
    },
    {
      what: 'leaves the order list out when `inOrder` is false',
      before: {},
      items: [[500, c]],
      options: { inOrder: false },
      after: { timeouts: [[c, NOW + 500]] },
      published: [NOW + 500],
    },
    {
      what: 'adds behind the head without a word',
      before: { timeouts: [[a, NOW]], order: [a] },
      items: [
        [500, b],
        [1, d],
      ],
      after: {
        timeouts: [
          [a, NOW],
          [d, NOW + 1],
          [b, NOW + 500],
        ],
        order: [a, b, d],
      },
      published: [],
    },
    {
      what: 'adds any bytes, also in the old format',
      before: {},
      items: [
        [0, full],
        [1, e],
      ],
      after: {
        timeouts: [
          [full, NOW],
          [e, NOW + 1],
        ],
        order: [full, e],
      },
      published: [NOW],
    },
    {
      what: 'says which are there already as messages of other clients, and adds the rest',
      before: { timeouts: [[b, NOW + 9]], order: [b] },
      items: [
        [500, a],
        [1, b],
        [600, d],
      ],
      others: [[1, -1]],
      after: {
        timeouts: [
          [b, NOW + 9],
          [a, NOW + 500],
          [d, NOW + 600],
        ],
        order: [b, a, d],
      },
      published: [],
    },
    {
      what: 'gives the due time of those that are there when it may have been sent before',
      before: {
        timeouts: [
          [a, NOW - 3],
          [b, NOW + 9],
        ],
        order: [a, b],
      },
      items: [
        [500, a],
        [1, b],
      ],
      options: { resent: true },
      others: [
        [0, NOW - 3],
        [1, NOW + 9],
      ],
      after: {
        timeouts: [
          [a, NOW - 3],
          [b, NOW + 9],
        ],
        order: [a, b],
      },
      published: [],
    },
    {
      what: 'takes an entry that is given twice for a message of its own once',
      before: {},
      items: [
        [5, a],
        [6, a],
      ],
      others: [[1, -1]],
      after: { timeouts: [[a, NOW + 5]], order: [a] },
      published: [NOW + 5],
    },
    {
      what: 'refuses alone what is due too far ahead',
      before: {},
      items: [
        [MAX, a],
        [MAX - NOW, b],
      ],
      others: [[0, -2]],
      after: { timeouts: [[b, MAX]], order: [b] },
      published: [MAX],
    },
    { what: 'does nothing without entries', before: {}, items: [], after: {}, published: [] },
  ]
  for (const { what, before, items, options, others = [], after, published } of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      expect(await offerTo(rig, queue, items, options)).to.deep.equal({ now: NOW, others })
      expect(await queue.read()).to.deep.equal(expected(after))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }

  it('uses the clock of the server without a given time, one time for all', async () => {
    const queue = await rig.queue()
    const { now } = await offerTo(
      rig,
      queue,
      [
        [1, a],
        [2, b],
      ],
      { nowMs: -1 },
    )
    const [seconds] = (await rig.redis.time()) as unknown as [string]
    expect(now).to.be.within(Number(seconds) * 1000 - 5_000, Number(seconds) * 1000 + 1_000)
    expect(await queue.read()).to.deep.equal(
      expected({
        timeouts: [
          [a, now + 1],
          [b, now + 2],
        ],
        order: [a, b],
      }),
    )
  })

  it('adds as many as a command holds', async () => {
    const queue = await rig.queue()
    const entries = Array.from({ length: 250 }, (_, n) => ordered(String(n).padStart(4, '0'), 'p'))
    expect(
      (
        await offerTo(
          rig,
          queue,
          entries.map((entry, n) => [n, entry] as const),
        )
      ).others,
    ).to.deep.equal([])
    expect((await queue.read()).order).to.have.lengthOf(250)
  })

  it('adds no message when the order list is not a list', async () => {
    const queue = await rig.queue({ timeouts: [[b, NOW + 1]] })
    await rig.redis.set(queue.keys.order, 'in the way')
    expect(
      await rejection(
        offerTo(rig, queue, [
          [0, a],
          [9, d],
        ]),
      ),
    ).to.include({ code: 'ERR_WRONG_TYPE' })
    await rig.redis.del(queue.keys.order)
    expect(await queue.read()).to.deep.equal(expected({ timeouts: [[b, NOW + 1]] }))
    expect(await queue.published()).to.deep.equal([])
  })

  it('adds no message when the schedule is not a sorted set', async () => {
    const queue = await rig.queue({ order: [b] })
    await rig.redis.set(queue.keys.timeouts, 'in the way')
    expect(await rejection(offerTo(rig, queue, [[0, a]]))).to.include({ code: 'ERR_WRONG_TYPE' })
    await rig.redis.del(queue.keys.timeouts)
    expect(await queue.read()).to.deep.equal(expected({ order: [b] }))
  })

  it('announces the first one behind an entry of another program that is overdue by more than 365 days', async () => {
    const now = 4_000_000_000_000
    for (const [nowMs, delays] of [
      [now, '700,500'],
      [0, `${now + 700},${now + 500}`],
    ] as const) {
      const queue = await rig.queue({ timeouts: [[b, 0.5]] })
      const args = { channel: queue.keys.channel, nowMs, ordered: false, resent: false, delays, entries: [a, d] }
      await run(rig.sender, offerMany, queue.keys, args)
      expect(await queue.published()).to.deep.equal([String(now + 500)])
    }
  })

  it('adds no message when the announcement is refused', async () => {
    const queue = await rig.queue({ timeouts: [[b, NOW + 1]], order: [b] })
    const user = `offers-${process.pid}-${Date.now()}`
    await rig.redis.call('ACL', 'SETUSER', user, 'on', 'nopass', '~*', '&*', '+@all', '-publish')
    const own = rig.redis.duplicate({ username: user, password: 'any' })
    try {
      const args = {
        channel: queue.keys.channel,
        nowMs: NOW,
        ordered: true,
        resent: false,
        delays: '0,9',
        entries: [a, d],
      }
      const sender = {
        ...rig.sender,
        call: (command: string, list: readonly (string | Buffer)[]) => own.callBuffer(command, ...list),
      }
      const thrown = await run(sender, offerMany, queue.keys, args).then(
        () => expect.fail('it was accepted'),
        (error: unknown) => error,
      )
      expect(String(thrown)).to.match(/NOPERM|permission|can't run/i)
      expect(await queue.read()).to.deep.equal(expected({ timeouts: [[b, NOW + 1]], order: [b] }))
    } finally {
      own.disconnect()
      await rig.redis.call('ACL', 'DELUSER', user)
    }
  })
})
