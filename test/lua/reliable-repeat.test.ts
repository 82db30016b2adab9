import { expect } from 'chai'
import { repeat } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import type { ArgsOf } from '../../src/store/script.js'
import {
  expected,
  having,
  MAX,
  NOW,
  record,
  useReliable,
  type ReliableFixture,
  type State,
} from './reliable-support.js'
import { ALL_BYTES, raw, rejection, type Bytes } from './support.js'

interface Change {
  readonly name?: string
  readonly expected?: Bytes
  readonly value?: Bytes
  /** None: never again. */
  readonly at?: number
  readonly priority?: number
  readonly withdrawn?: Bytes
  readonly computedAt?: number
  readonly items?: readonly (readonly [id: Bytes, visible: number, record?: Bytes])[]
}

function argsOf(queue: ReliableFixture, change: Change): ArgsOf<(typeof repeat)['source']> {
  const { name = 'r', at, priority = 0, items = [] } = change
  return {
    channel: queue.channel,
    client: 'me',
    nowMs: NOW,
    computedAt: change.computedAt ?? NOW,
    name: raw(name),
    expected: raw(change.expected ?? ''),
    value: raw(change.value ?? ''),
    at: at === undefined ? '' : String(at),
    priority,
    withdrawn: raw(change.withdrawn ?? ''),
    items: items.flatMap(([id, visible, bytes = record()]) => [raw(id), Buffer.from(String(visible)), raw(bytes)]),
  }
}

describe('reliable-repeat.lua', () => {
  const rig = useReliable()
  const other = { id: 'v', at: NOW + 900, payload: 'V', priority: 9 }
  const known: State = { repeats: [['r', '1 old']], ticks: [['r', NOW]] }
  const untouched: State = {
    ...having([other]),
    repeats: [
      ['r', '1 old'],
      ['s', 'S'],
    ],
    ticks: [
      ['r', NOW + 3],
      ['s', NOW + 4],
    ],
  }
  /** An earlier message, so that nothing is announced. */
  const early = { id: 'early', at: 1 }
  const pending = { id: 'r@7', at: NOW + 7, payload: 'P' }

  const cases: {
    what: string
    before?: State
    change: Change
    reply?: number
    after: State
    published?: number[]
  }[] = [
    {
      what: 'begins a repeat where there is none, with its first message, and announces it',
      change: { value: '2 new', at: NOW + 5, items: [['r@5', NOW + 5, record('P', { limit: 3 })]] },
      after: having([{ id: 'r@5', at: NOW + 5, payload: 'P', limit: 3 }], {
        repeats: [['r', '2 new']],
        ticks: [['r', NOW + 5]],
      }),
      published: [NOW + 5],
    },
    {
      what: 'begins with no attempts that another program has written for the tick',
      before: { deliveries: [['r@5', '10']] },
      change: { value: '2 new', at: NOW + 5, items: [['r@5', NOW + 5, record('P', { limit: 3 })]] },
      after: having([{ id: 'r@5', at: NOW + 5, payload: 'P', limit: 3 }], {
        repeats: [['r', '2 new']],
        ticks: [['r', NOW + 5]],
      }),
      published: [NOW + 5],
    },
    {
      what: 'goes on from what the caller knows; the message of the tick before stays',
      before: having([{ id: 'r@0', at: NOW, payload: 'P', priority: 4 }], known),
      change: { expected: '1 old', value: '2 new', at: NOW + 5, priority: 4, items: [['r@5', NOW + 5]] },
      after: having(
        [
          { id: 'r@0', at: NOW, payload: 'P', priority: 4 },
          { id: 'r@5', at: NOW + 5, priority: 4 },
        ],
        { repeats: [['r', '2 new']], ticks: [['r', NOW + 5]] },
      ),
    },
    ...[
      { what: 'another value', expected: '1 ol' },
      { what: 'a longer value', expected: '1 old ' },
      { what: 'none', expected: '' },
    ].map(({ what, expected }) => ({
      what: `changes nothing when the caller knows ${what}, without a word`,
      before: untouched,
      change: { expected, value: '2 new', at: NOW, withdrawn: 'v', items: [['r@5', NOW + 5]] as const },
      reply: 0,
      after: untouched,
    })),
    ...[60_001, -60_001, 8e12, -NOW].map((off) => ({
      what: `changes nothing when the caller computed with a time that is ${off} ms from the script's`,
      before: untouched,
      change: {
        computedAt: NOW + off,
        expected: '1 old',
        value: '2 new',
        withdrawn: 'v',
        items: [['r@5', NOW + 5]] as const,
      },
      reply: 0,
      after: untouched,
    })),
    ...[60_000, -60_000, 0.5].map((off) => ({
      what: `changes the repeat when the caller's time is ${off} ms from the script's`,
      before: known,
      change: { computedAt: NOW + off, expected: '1 old', value: '2 new', at: NOW + 5 },
      after: { repeats: [['r', '2 new']], ticks: [['r', NOW + 5]] } satisfies State,
    })),
    {
      what: 'changes nothing when there is none any more',
      before: having([other]),
      change: { expected: '1 old', value: '2 new', at: NOW, withdrawn: 'v', items: [['r@5', NOW + 5]] },
      reply: 0,
      after: having([other]),
    },
    {
      what: 'is not done a second time: of many that prepare the same tick one does',
      before: { repeats: [['r', '2 new']], ticks: [['r', NOW + 5]] },
      change: { expected: '1 old', value: '2 new', at: NOW + 5, items: [['r@5', NOW + 5]] },
      reply: 0,
      after: { repeats: [['r', '2 new']], ticks: [['r', NOW + 5]] },
    },
    {
      what: 'leaves the others',
      before: untouched,
      change: { expected: '1 old', value: '2', at: NOW + 8 },
      after: {
        ...untouched,
        repeats: [
          ['s', 'S'],
          ['r', '2'],
        ],
        ticks: [
          ['s', NOW + 4],
          ['r', NOW + 8],
        ],
      },
    },
    {
      what: 'ends a repeat, also its tick',
      before: untouched,
      change: { expected: '1 old' },
      after: { ...untouched, repeats: [['s', 'S']], ticks: [['s', NOW + 4]] },
    },
    {
      what: 'ends what is not there, which is no change',
      before: having([other]),
      change: {},
      after: having([other]),
    },
    {
      what: 'keeps the value of one that has no tick any more',
      before: known,
      change: { expected: '1 old', value: '1 old' },
      after: { repeats: [['r', '1 old']] },
    },
    {
      what: 'adds several messages, all in the priority that is given, and announces the first of all times',
      change: {
        value: 'new',
        at: NOW + 9,
        priority: 9,
        items: [
          ['b', NOW + 7, record('B')],
          ['a', NOW - 7, record('A', { expires: NOW, headers: 'h' })],
          ['c', MAX],
        ],
      },
      after: having(
        [
          { id: 'b', at: NOW + 7, payload: 'B', priority: 9 },
          { id: 'a', at: NOW - 7, payload: 'A', expires: NOW, headers: 'h', priority: 9 },
          { id: 'c', at: MAX, priority: 9 },
        ],
        { repeats: [['r', 'new']], ticks: [['r', NOW + 9]] },
      ),
      published: [NOW - 7],
    },
    {
      what: 'announces a tick that comes before the messages',
      change: { value: 'new', at: NOW + 3, items: [['a', NOW + 4]] },
      after: having([{ id: 'a', at: NOW + 4 }], { repeats: [['r', 'new']], ticks: [['r', NOW + 3]] }),
      published: [NOW + 3],
    },
    {
      what: 'announces messages also when no tick follows',
      change: { value: 'new', items: [['a', NOW + 4]] },
      after: having([{ id: 'a', at: NOW + 4 }], { repeats: [['r', 'new']] }),
      published: [NOW + 4],
    },
    ...[
      { what: 'something is visible', state: having([{ id: 'w', at: NOW + 3, priority: 9 }]) },
      { what: 'a visibility ends', state: having([{ id: 'w', until: NOW + 3 }]) },
      { what: 'a tick comes', state: { repeats: [['s', 'S']], ticks: [['s', NOW + 3]] } satisfies State },
    ].map(({ what, state }) => ({
      what: `says nothing when ${what} as early`,
      before: state,
      change: { value: 'new', at: NOW + 3, items: [['a', NOW + 4]] as const },
      after: {
        ...having([{ id: 'a', at: NOW + 4 }], state),
        repeats: [...(state.repeats ?? []), ['r', 'new']] as const,
        ticks: [...(state.ticks ?? []), ['r', NOW + 3]] as const,
      },
    })),
    {
      what: 'adds no message whose id is there, wherever it is',
      before: having([early, { id: 'a', at: NOW + 1, payload: 'A', priority: 3 }, { id: 'b', until: NOW + 1 }]),
      change: {
        value: 'new',
        priority: 1,
        items: [
          ['a', NOW + 5, record('new')],
          ['b', NOW + 5, record('new')],
          ['c', NOW + 5, record('C')],
          ['c', NOW + 6, record('again')],
        ],
      },
      after: having(
        [
          early,
          { id: 'a', at: NOW + 1, payload: 'A', priority: 3 },
          { id: 'b', until: NOW + 1 },
          { id: 'c', at: NOW + 5, payload: 'C', priority: 1 },
        ],
        { repeats: [['r', 'new']] },
      ),
    },
    {
      what: 'adds a message whose id has a record in no schedule, with nothing of what is left of it',
      before: having([early], {
        messages: [['r@5', record('of another program', { expires: 7 })]],
        deliveries: [['r@5', '3 t']],
        failures: [['r@5', 'f\n']],
        config: [['batched', '1']],
        batches: [
          ['mr@5', 'b'],
          ['bb', 'o,2,0,0,0,0,1,,'],
        ],
      }),
      change: { value: '2 new', at: NOW + 9, priority: 4, items: [['r@5', NOW + 5, record('P')]] },
      after: having([early, { id: 'r@5', at: NOW + 5, payload: 'P', priority: 4 }], {
        repeats: [['r', '2 new']],
        ticks: [['r', NOW + 9]],
        config: [['batched', '1']],
        batches: [['bb', 'o,1,0,0,0,1,1,,']],
      }),
    },
    ...[0, 6, 9].map((priority) => ({
      what: `withdraws a message that is to come, with all that is known of it, from priority ${priority}`,
      before: having([early, { ...pending, priority, attempts: 2, failures: 'f\n' }, other], known),
      change: { expected: '1 old', withdrawn: 'r@7' },
      after: having([early, other]),
    })),
    {
      what: 'puts another one in its place, also under the same id',
      before: having([early, { ...pending, priority: 6, attempts: 2, failures: 'f\n' }], known),
      change: {
        expected: '1 old',
        value: 'new',
        withdrawn: 'r@7',
        priority: 2,
        items: [['r@7', NOW + 7, record('N')]],
      },
      after: having([early, { ...pending, payload: 'N', priority: 2 }], { repeats: [['r', 'new']] }),
    },
    ...[
      { what: 'is visible right now', at: { at: NOW } },
      { what: 'was visible', at: { at: 1 } },
      { what: 'a consumer has', at: { at: NOW + 7, until: NOW + 7 } },
      { what: 'a consumer had too long', at: { at: NOW + 7, until: NOW - 7 } },
    ].map(({ what, at }) => ({
      what: `does not withdraw what ${what}`,
      before: having([{ ...pending, ...at, attempts: 1 }], known),
      change: { expected: '1 old', withdrawn: 'r@7' },
      after: having([{ ...pending, ...at, attempts: 1 }]),
    })),
    {
      what: 'withdraws nothing that is not there, and what has no record from the schedule',
      before: { due: { 2: [['r@7', NOW + 7]] }, ...known },
      change: { expected: '1 old', withdrawn: 'r@7' },
      after: {},
    },
    ...[
      { withdrawn: 'r@7', room: 1, what: 'and the withdrawn message makes room' },
      { withdrawn: '~1', room: 0, what: 'and one that is withdrawn makes no room' },
    ].flatMap(({ withdrawn, room, what }) =>
      [1, 2].map((wanted) => {
        const more: State = {
          messages: Array.from({ length: 5 }, (_, n) => [`~${n}`, record()] as const),
          config: [['maxSize', '2']],
        }
        const state = having([early, { ...pending, priority: 3 }], { ...more, repeats: [['r', 'old']] })
        const items = Array.from({ length: wanted }, (_, n) => [`n${n}`, NOW + 5] as const)
        const isDone = wanted <= room
        return {
          what: `does not count records without a place for ${wanted} messages, ${what}`,
          before: state,
          change: { expected: 'old', value: 'new', withdrawn, items },
          reply: isDone ? 1 : -1 - room,
          after: isDone ? having([early, { id: 'n0', at: NOW + 5 }], { ...more, repeats: [['r', 'new']] }) : state,
        }
      }),
    ),
    {
      what: 'knows values, ids and records of any bytes',
      before: having([early], { repeats: [['r', ALL_BYTES]] }),
      change: { expected: ALL_BYTES, value: Buffer.from(ALL_BYTES).reverse(), items: [[ALL_BYTES, NOW, ALL_BYTES]] },
      after: having([early, { id: ALL_BYTES, record: ALL_BYTES }], {
        repeats: [['r', Buffer.from(ALL_BYTES).reverse()]],
      }),
    },
  ]
  for (const { what, before: state = {}, change, reply = 1, after: then, published = [] } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      expect(await run(rig.sender, repeat, queue.keys, argsOf(queue, change))).to.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }

  it('adds two hundred messages at once', async () => {
    const all = Array.from({ length: 200 }, (_, n) => ({ id: `r@${n}`, at: NOW - n, payload: `${n}` }))
    const queue = await rig.queue()
    const items = all.map(({ id, at, payload }) => [id, at, record(payload)] as const)
    expect(await run(rig.sender, repeat, queue.keys, argsOf(queue, { value: 'new', items }))).to.equal(1)
    expect(await queue.read()).to.deep.equal(expected(having(all, { repeats: [['r', 'new']] })))
  })

  it('uses the clock of the server without a given time', async () => {
    const seconds = Number((await rig.redis.time())[0])
    const [soon, late] = [
      { id: 'soon', at: seconds * 1000 },
      { id: 'late', at: (seconds + 1000) * 1000 },
    ]
    const queue = await rig.queue(having([soon, late]))
    for (const withdrawn of ['soon', 'late']) {
      const args = { ...argsOf(queue, { withdrawn, computedAt: seconds * 1000 }), nowMs: -1 }
      expect(await run(rig.sender, repeat, queue.keys, args)).to.equal(1)
    }
    expect(await queue.read()).to.deep.equal(expected(having([soon])))
  })

  const start = having([{ ...pending, priority: 5, attempts: 2, failures: 'f\n' }], known)
  const next: Change = {
    expected: '1 old',
    value: '2 new',
    at: NOW + 5,
    priority: 2,
    withdrawn: 'r@7',
    items: [
      ['r@5', NOW + 5, record('A')],
      ['r@6', NOW + 6, record('B')],
    ],
  }

  it('changes nothing when the announcement is refused', async () => {
    const state = having([pending], { repeats: [['r', '1 old']], ticks: [['r', NOW + 9]] })
    const queue = await rig.queue(state)
    const thrown = await rig.muted([queue.deadChannel], (sender) =>
      rejection(run(sender, repeat, queue.keys, argsOf(queue, next))),
    )
    expect(thrown.message).to.match(/perm|can't/i)
    expect(await queue.read()).to.deep.equal(expected(state))
  })

  const done = [
    { id: 'r@5', at: NOW + 5, payload: 'A', priority: 2 },
    { id: 'r@6', at: NOW + 6, payload: 'B', priority: 2 },
  ]
  const after: State = { repeats: [['r', '2 new']], ticks: [['r', NOW + 5]] }
  const fails = async (queue: ReliableFixture, change: Change): Promise<void> => {
    const thrown = await rejection(run(rig.sender, repeat, queue.keys, argsOf(queue, change)))
    expect(thrown).to.include({ code: 'ERR_WRONG_TYPE' })
  }

  const goesOn = async (queue: ReliableFixture, wrong: 'failures' | 'inFlight'): Promise<void> => {
    expect(await run(rig.sender, repeat, queue.keys, argsOf(queue, next))).to.equal(1)
    await queue.unblock(wrong)
    expect(await queue.read()).to.deep.equal(expected(having(done, after)))
  }

  const wrongs = ['messages', 'deliveries', 'failures', 'repeats', 'ticks', 'inFlight', 'due0', 'due2', 'due9'] as const
  for (const wrong of wrongs) {
    it(`can be done in full after ${wrong} had the wrong type`, async () => {
      const queue = await rig.queue(start)
      await queue.block(wrong)
      if (wrong === 'failures' || wrong === 'inFlight') return void (await goesOn(queue, wrong))
      await fails(queue, next)
      await queue.unblock(wrong)
      const { repeats } = (await queue.read()).queue
      if (wrong !== 'repeats') expect(repeats).to.deep.equal({ r: '1 old' })
      const again = wrong === 'repeats' ? { ...next, expected: '' } : next
      expect(await run(rig.sender, repeat, queue.keys, argsOf(queue, again))).to.equal(1)
      expect(await queue.read()).to.deep.equal(expected(having(done, after)))
    })
  }

  // what is earlier ends the look at the schedules
  for (const wrong of ['ticks', 'due2'] as const) {
    it(`can be done in full after ${wrong} had the wrong type behind a claim, and has changed nothing`, async () => {
      const held = { id: 'h', until: 1 }
      const queue = await rig.queue(having([held], known))
      await queue.block(wrong)
      await fails(queue, { ...next, withdrawn: '' })
      await queue.unblock(wrong)
      const { messages, repeats } = (await queue.read()).queue
      expect(messages).to.have.all.keys(['h'])
      expect(repeats).to.deep.equal({ r: '1 old' })
      expect(await run(rig.sender, repeat, queue.keys, argsOf(queue, next))).to.equal(1)
      expect(await queue.read()).to.deep.equal(expected(having([held, ...done], after)))
    })
  }
})
