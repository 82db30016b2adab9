import { expect } from 'chai'
import { acknowledge, extend } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  expected,
  handled,
  having,
  MAX,
  NOW,
  useReliable,
  type ReliableFixture,
  type State,
  LONGEST,
} from './reliable-support.js'
import { ALL_BYTES, rejection } from './support.js'

/** Messages that are no longer the caller's, for each call. */
const NOT_HELD: { what: string; before: State; pair: readonly [id: string, claim: string, priority?: number] }[] = [
  { what: 'an id that is unknown', before: {}, pair: ['x', '1 t'] },
  { what: 'the empty id where there is none', before: {}, pair: ['', '1 t'] },
  { what: 'another token', before: having([{ id: 'x', until: NOW + 9, token: 'u' }]), pair: ['x', '1 t'] },
  {
    what: 'a token that only begins so',
    before: having([{ id: 'x', until: NOW + 9, token: 'tt' }]),
    pair: ['x', '1 t'],
  },
  { what: 'a later attempt', before: having([{ id: 'x', until: NOW + 9, attempts: 2 }]), pair: ['x', '1 t'] },
  { what: 'an earlier attempt', before: having([{ id: 'x', until: NOW + 9, attempts: 1 }]), pair: ['x', '2 t'] },
  { what: 'another priority', before: having([{ id: 'x', until: NOW + 9, priority: 1 }]), pair: ['x', '1 t', 2] },
  { what: 'a visibility that ends right now', before: having([{ id: 'x', until: NOW }]), pair: ['x', '1 t'] },
  { what: 'a visibility that ended', before: having([{ id: 'x', until: 1 }]), pair: ['x', '1 t'] },
  { what: 'one that came back', before: having([{ id: 'x', at: NOW + 9, attempts: 1 }]), pair: ['x', '1 t'] },
  {
    what: 'one that came back, by its attempts',
    before: having([{ id: 'x', at: NOW + 9, attempts: 1 }]),
    pair: ['x', '1'],
  },
  { what: 'one that was added anew', before: having([{ id: 'x', at: NOW - 9 }]), pair: ['x', '1 t'] },
  {
    what: 'one that was added anew and delivered to another consumer',
    before: having([{ id: 'x', until: NOW + 9, token: 'other' }]),
    pair: ['x', '1 t'],
  },
  {
    what: 'one whose delivery is gone',
    before: having([], { messages: [['x', '\0']], inFlight: [['0x', NOW + 9]] }),
    pair: ['x', '1 t'],
  },
  {
    what: 'one whose delivery is empty',
    before: having([], { messages: [['x', '\0']], inFlight: [['0x', NOW + 9]], deliveries: [['x', '']] }),
    pair: ['x', '1 t'],
  },
]

const others = [
  { id: 'w', at: NOW - 3, attempts: 2, failures: 'w\n', payload: 'W' },
  { id: 'v', until: NOW + 3, attempts: 2, failures: 'v\n', payload: 'V', priority: 9 },
]

describe('reliable-acknowledge.lua', () => {
  const rig = useReliable()

  const cases: { what: string; before: State; handled: Buffer[]; reply: boolean[]; after: State }[] = [
    {
      what: 'removes nothing when nothing is given',
      before: having(others),
      handled: [],
      reply: [],
      after: having(others),
    },
    {
      what: 'removes what is held, with all that is known of it',
      before: having([...others, { id: 'x', until: NOW + 1, attempts: 3, failures: '1 5 "x"\n', payload: 'X' }]),
      handled: handled(['x', '3 t']),
      reply: [true],
      after: having(others),
    },
    {
      what: 'judges each for itself, also one that is given twice',
      before: having([
        ...others,
        { id: 'x', until: NOW + 1 },
        { id: 'y', until: NOW, token: 'u' },
        { id: ALL_BYTES, until: NOW + 2, priority: 9 },
        { id: '', until: NOW + 2, priority: 3 },
      ]),
      handled: handled(
        ['x', '1 t'],
        ['y', '1 u'],
        [ALL_BYTES, '1 t', 9],
        ['x', '1 t'],
        ['', '1 t', 3],
        ['none', '1 t'],
      ),
      reply: [true, false, true, false, true, false],
      after: having([...others, { id: 'y', until: NOW, token: 'u' }]),
    },
    {
      what: 'removes one whose record is gone',
      before: having(others, { inFlight: [['0x', NOW + 1]], deliveries: [['x', '1 t']] }),
      handled: handled(['x', '1 t']),
      reply: [true],
      after: having(others),
    },
    {
      what: 'knows tokens of any text',
      before: having([
        { id: 'x', until: NOW + 1, token: 'a b \n' },
        { id: 'y', until: NOW + 1, token: '' },
      ]),
      handled: handled(['x', '1 a b \n'], ['y', '1 ']),
      reply: [true, true],
      after: {},
    },
    ...NOT_HELD.map(({ what, before: state, pair }) => ({
      what: `leaves ${what}`,
      before: state,
      handled: handled(pair),
      reply: [false],
      after: state,
    })),
  ]
  for (const { what, before: state, handled: pairs, reply, after: then } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      expect(
        await run(rig.sender, acknowledge, queue.keys, {
          client: 'me',
          nowMs: NOW,
          withResults: false,
          handled: pairs,
        }),
      ).to.deep.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal([])
    })
  }

  it('removes a thousand at once', async () => {
    const all = Array.from({ length: 1000 }, (_, n) => ({ id: `id ${n}`, until: NOW + 1 + n, priority: n % 10 }))
    const queue = await rig.queue(having([...others, ...all]))
    const pairs = handled(...all.map(({ id, priority }) => [id, '1 t', priority] as const))
    const reply = await run(rig.sender, acknowledge, queue.keys, {
      client: 'me',
      nowMs: NOW,
      withResults: false,
      handled: pairs,
    })
    expect(reply).to.deep.equal(all.map(() => true))
    expect(await queue.read()).to.deep.equal(expected(having(others)))
  })

  it('uses the clock of the server without a given time', async () => {
    const seconds = Number((await rig.redis.time())[0])
    const queue = await rig.queue(
      having([
        { id: 'x', until: NOW + 1 },
        { id: 'y', until: (seconds + 1000) * 1000 },
      ]),
    )
    const pairs = handled(['x', '1 t'], ['y', '1 t'])
    expect(
      await run(rig.sender, acknowledge, queue.keys, { client: 'me', nowMs: -1, withResults: false, handled: pairs }),
    ).to.deep.equal([false, true])
  })

  for (const wrong of ['messages', 'deliveries', 'failures', 'inFlight'] as const) {
    it(`loses only handled messages when ${wrong} has the wrong type`, async () => {
      const state = having([...others, { id: 'x', until: NOW + 1 }])
      const queue = await rig.queue(state)
      await queue.block(wrong)
      const done = run(rig.sender, acknowledge, queue.keys, {
        client: 'me',
        nowMs: NOW,
        withResults: false,
        handled: handled(['x', '1 t']),
      })
      if (wrong === 'failures') expect(await done).to.deep.equal([true])
      else expect(await rejection(done)).to.include({ code: 'ERR_WRONG_TYPE' })
      await queue.unblock(wrong)
      const [now, kept] = [(await queue.read()).queue, expected(having(others)).queue]
      for (const part of ['messages', 'deliveries', 'failures', 'due'] as const) {
        if (part !== wrong) expect(now[part]).to.deep.include(kept[part])
      }
      if (wrong !== 'inFlight') expect(now.inFlight).to.deep.include(['9v', String(NOW + 3)])
    })
  }
})

describe('reliable-extend.lua', () => {
  const rig = useReliable()
  const x = { id: 'x', until: NOW + 1, attempts: 3, failures: '1 5 "x"\n', payload: 'X' }
  const argsOf = ({ channel }: ReliableFixture, handled: Buffer[], visibilityMs: number, nowMs = NOW, unbegun = 0) => ({
    channel,
    nowMs,
    visibilityMs,
    unbegun,
    handled,
  })

  const cases: {
    what: string
    before: State
    visibilityMs?: number
    unbegun?: number
    handled: Buffer[]
    reply: (number | null)[]
    after: State
    published?: number[]
  }[] = [
    { what: 'does nothing when nothing is given', before: having([x]), handled: [], reply: [], after: having([x]) },
    {
      what: 'gives more time, counted from now, and leaves the claim as it is',
      before: having([...others, x]),
      handled: handled(['x', '3 t']),
      reply: [NOW + 500],
      after: having([...others, { ...x, until: NOW + 500 }]),
    },
    {
      what: 'gives less time too, and announces it',
      before: having([{ ...x, until: NOW + 900 }]),
      visibilityMs: 10,
      handled: handled(['x', '3 t']),
      reply: [NOW + 10],
      after: having([{ ...x, until: NOW + 10 }]),
      published: [NOW + 10],
    },
    {
      what: 'announces once that several end earlier, also when others end later',
      before: having([
        { id: 'w', until: NOW + 100 },
        { id: 'v', until: NOW + 600 },
        { ...x, until: NOW + 900 },
      ]),
      handled: handled(['w', '1 t'], ['v', '1 t'], ['x', '3 t']),
      visibilityMs: 50,
      reply: [NOW + 50, NOW + 50, NOW + 50],
      after: having([
        { id: 'w', until: NOW + 50 },
        { id: 'v', until: NOW + 50 },
        { ...x, until: NOW + 50 },
      ]),
      published: [NOW + 50],
    },
    {
      what: 'says nothing when it ends as before, or later',
      before: having([
        { ...x, until: NOW + 500 },
        { id: 'w', until: NOW + 499 },
      ]),
      handled: handled(['x', '3 t'], ['w', '1 t']),
      reply: [NOW + 500, NOW + 500],
      after: having([
        { ...x, until: NOW + 500 },
        { id: 'w', until: NOW + 500 },
      ]),
    },
    ...(
      [
        ['something is visible', having([{ id: 'w', at: NOW + 10, priority: 9 }])],
        ['another visibility ends', having([{ id: 'w', until: NOW + 10 }])],
        ['a tick comes', { ticks: [['r', NOW + 10]] }],
      ] as const
    ).map(([what, state]) => ({
      what: `says nothing of less time when ${what} as early`,
      before: having([{ ...x, until: NOW + 900 }], state),
      visibilityMs: 10,
      handled: handled(['x', '3 t']),
      reply: [NOW + 10],
      after: having([{ ...x, until: NOW + 10 }], state),
    })),
    {
      what: 'says nothing of less time for what is not held',
      before: having([{ ...x, until: NOW + 900 }]),
      visibilityMs: 10,
      handled: handled(['x', '2 t']),
      reply: [null],
      after: having([{ ...x, until: NOW + 900 }]),
    },
    {
      what: 'ends it when no time is given; one that is given twice is the same one',
      before: having([x]),
      visibilityMs: 0,
      handled: handled(['x', '3 t'], ['x', '3 t']),
      reply: [NOW, NOW],
      after: having([{ ...x, until: NOW }]),
      published: [NOW],
    },
    {
      what: 'judges each for itself',
      before: having([x, { id: ALL_BYTES, until: NOW + 1, priority: 9 }, { id: 'y', until: NOW }]),
      handled: handled(['y', '1 t'], ['x', '3 t'], ['x', '3 t'], [ALL_BYTES, '1 t', 9]),
      reply: [null, NOW + 500, NOW + 500, NOW + 500],
      after: having([
        { ...x, until: NOW + 500 },
        { id: ALL_BYTES, until: NOW + 500, priority: 9 },
        { id: 'y', until: NOW },
      ]),
    },
    {
      what: 'leaves the first `unbegun` prefetched messages unbegun, and begins the rest; what has begun stays so',
      before: having([
        { ...x, until: NOW + 0.75 },
        { id: 'y', until: NOW + 1 },
        { id: 'z', until: NOW + 0.75 },
      ]),
      unbegun: 2,
      handled: handled(['x', '3 t'], ['y', '1 t'], ['z', '1 t']),
      reply: [NOW + 500, NOW + 500, NOW + 500],
      after: having([
        { ...x, until: NOW + 499.75 },
        { id: 'y', until: NOW + 500 },
        { id: 'z', until: NOW + 500 },
      ]),
    },
    {
      what: 'knows when what was taken beforehand is not held any more',
      before: having([{ ...x, until: NOW - 0.25 }]),
      unbegun: 1,
      handled: handled(['x', '3 t']),
      reply: [null],
      after: having([{ ...x, until: NOW - 0.25 }]),
    },
    {
      what: 'uses the visibility timeout of the queue for -1',
      before: having([x], { config: [['visibilityTimeout', '77']] }),
      visibilityMs: -1,
      handled: handled(['x', '3 t']),
      reply: [NOW + 77],
      after: having([{ ...x, until: NOW + 77 }], { config: [['visibilityTimeout', '77']] }),
    },
    ...[undefined, '', 'soon'].map((visibility): (typeof cases)[number] => {
      const config = visibility === undefined ? [] : [['visibilityTimeout', visibility] as const]
      return {
        what: `has 30 s when the queue says ${String(visibility)}`,
        before: having([x], { config }),
        visibilityMs: -1,
        handled: handled(['x', '3 t']),
        reply: [NOW + 30_000],
        after: having([{ ...x, until: NOW + 30_000 }], { config }),
      }
    }),
    ...[MAX, MAX - NOW].map((visibilityMs) => ({
      what: `ends ${visibilityMs} ms after the longest visibility`,
      before: having([x]),
      visibilityMs,
      handled: handled(['x', '3 t']),
      reply: [NOW + LONGEST],
      after: having([{ ...x, until: NOW + LONGEST }]),
    })),
    ...NOT_HELD.map(({ what, before: state, pair }) => ({
      what: `leaves ${what}`,
      before: state,
      handled: handled(pair),
      reply: [null],
      after: state,
    })),
  ]
  for (const each of cases) {
    const {
      what,
      before: state,
      visibilityMs = 500,
      unbegun,
      handled: pairs,
      reply,
      after: then,
      published = [],
    } = each
    it(what, async () => {
      const queue = await rig.queue(state)
      const args = argsOf(queue, pairs, visibilityMs, NOW, unbegun)
      expect(await run(rig.sender, extend, queue.keys, args)).to.deep.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }

  it('changes nothing when the announcement is refused', async () => {
    const state = having([
      { id: 'w', until: NOW + 20 },
      { ...x, until: NOW + 900 },
    ])
    const queue = await rig.queue(state)
    const args = argsOf(queue, handled(['w', '1 t'], ['x', '3 t']), 10)
    const thrown = await rig.muted([queue.deadChannel], (sender) => rejection(run(sender, extend, queue.keys, args)))
    expect(thrown.message).to.match(/perm|can't/i)
    expect(await queue.read()).to.deep.equal(expected(state))
  })

  it('extends a thousand at once', async () => {
    const all = Array.from({ length: 1000 }, (_, n) => ({ id: `id ${n}`, until: NOW + 1 + n, priority: n % 10 }))
    const queue = await rig.queue(having(all))
    const pairs = handled(...all.map(({ id, priority }) => [id, '1 t', priority] as const))
    const reply = await run(rig.sender, extend, queue.keys, argsOf(queue, pairs, 5000))
    expect(reply).to.deep.equal(all.map(() => NOW + 5000))
    expect(await queue.read()).to.deep.equal(expected(having(all.map((each) => ({ ...each, until: NOW + 5000 })))))
  })

  it('uses the clock of the server without a given time', async () => {
    const seconds = Number((await rig.redis.time())[0])
    const queue = await rig.queue(
      having([
        { id: 'x', until: NOW + 1 },
        { id: 'y', until: (seconds + 1000) * 1000 },
      ]),
    )
    const args = argsOf(queue, handled(['x', '1 t'], ['y', '1 t']), 7, -1)
    const [x, y] = await run(rig.sender, extend, queue.keys, args)
    expect(x).to.equal(null)
    expect(y).to.be.within(seconds * 1000 + 7, Date.now() + 60_000)
  })

  for (const wrong of ['ticks', 'due0', 'due9'] as const) {
    it(`continues when ${wrong} has the wrong type`, async () => {
      const queue = await rig.queue(having([{ ...x, until: NOW + 40_000 }]))
      await queue.block(wrong)
      const args = argsOf(queue, handled(['x', '3 t']), -1)
      expect(await run(rig.sender, extend, queue.keys, args)).to.deep.equal([NOW + 30_000])
    })
  }

  for (const wrong of ['deliveries', 'inFlight', 'config'] as const) {
    it(`changes nothing when ${wrong} has the wrong type`, async () => {
      const queue = await rig.queue(having([{ ...x, until: NOW + 40_000 }]))
      await queue.block(wrong)
      const then = await queue.read()
      const args = argsOf(queue, handled(['x', '3 t']), -1)
      expect(await rejection(run(rig.sender, extend, queue.keys, args))).to.include({ code: 'ERR_WRONG_TYPE' })
      expect(await queue.read()).to.deep.equal(then)
    })
  }
})
