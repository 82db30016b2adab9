import { expect } from 'chai'
import { configure, remove, reschedule, update } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import { expected, having, MAX, NOW, record, useReliable, type State } from './reliable-support.js'
import { ALL_BYTES, raw, readable, rejection, type Bytes } from './support.js'

const other = { id: 'v', at: NOW + 3, attempts: 2, failures: 'v\n', payload: 'V', priority: 9 }

describe('reliable-remove.lua', () => {
  const rig = useReliable()
  const waits = { id: 'x', at: NOW + 9, priority: 4, attempts: 2, failures: 'x\n' }
  const held = { id: 'x', until: NOW + 1, priority: 4, attempts: 2, failures: 'x\n' }
  const ended = { ...held, until: NOW }

  const cases: {
    what: string
    before: State
    alsoHeld?: boolean
    ids: readonly Bytes[]
    reply: boolean[]
    after: State
  }[] = [
    {
      what: 'removes nothing when nothing is given',
      before: having([waits]),
      ids: [],
      reply: [],
      after: having([waits]),
    },
    {
      what: 'removes nothing unknown',
      before: having([other]),
      ids: ['x', ''],
      reply: [false, false],
      after: having([other]),
    },
    ...[false, true].flatMap((alsoHeld) => [
      {
        what: `removes what waits, with all that is known of it, alsoHeld ${alsoHeld}`,
        before: having([waits, other]),
        alsoHeld,
        ids: ['x', 'x'],
        reply: [true, false],
        after: having([other]),
      },
      {
        what: `removes a message whose visibility has ended, alsoHeld ${alsoHeld}`,
        before: having([ended, other]),
        alsoHeld,
        ids: ['x'],
        reply: [true],
        after: having([other]),
      },
      {
        what: `removes a record that is in no schedule and not in flight, alsoHeld ${alsoHeld}`,
        before: having([other], {
          messages: [['x', record('X')]],
          deliveries: [['x', '2 t']],
          failures: [['x', 'x\n']],
        }),
        alsoHeld,
        ids: ['x', 'x'],
        reply: [true, false],
        after: having([other]),
      },
    ]),
    {
      what: 'leaves a message that a consumer has',
      before: having([held, other]),
      ids: ['x'],
      reply: [false],
      after: having([held, other]),
    },
    {
      what: 'removes a message in flight with `alsoHeld`',
      before: having([held, other]),
      alsoHeld: true,
      ids: ['x'],
      reply: [true],
      after: having([other]),
    },
    {
      what: 'judges each for itself, with ids of any bytes',
      before: having([held, { id: ALL_BYTES }, { id: '', priority: 9 }, { id: '4x' }, other]),
      ids: [ALL_BYTES, 'x', '', '4x', 'none'],
      reply: [true, false, true, true, false],
      after: having([held, other]),
    },
    {
      what: 'removes what is in a schedule without a record',
      before: having([other], { due: { 2: [['x', 1]] }, inFlight: [['3y', 1]] }),
      ids: ['x', 'y'],
      reply: [true, true],
      after: having([other]),
    },
  ]
  for (const { what, before: state, alsoHeld = false, ids, reply, after: then } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      expect(
        await run(rig.sender, remove, queue.keys, { client: 'me', nowMs: NOW, alsoHeld, ids: ids.map(raw) }),
      ).to.deep.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal([])
    })
  }

  it('removes a thousand at once', async () => {
    const all = Array.from({ length: 1000 }, (_, n) => ({
      id: `id ${n}`,
      priority: n % 10,
      ...(n % 3 === 0 ? { until: 5 } : { at: 5 }),
    }))
    const queue = await rig.queue(having([...all, other]))
    const ids = all.map(({ id }) => raw(id))
    const reply = await run(rig.sender, remove, queue.keys, { client: 'me', nowMs: -1, alsoHeld: false, ids })
    expect(reply).to.deep.equal(all.map(() => true))
    expect(await queue.read()).to.deep.equal(expected(having([other])))
  })

  for (const wrong of ['messages', 'deliveries', 'failures', 'inFlight', 'due0', 'due4', 'due9'] as const) {
    it(`leaves the others when ${wrong} has the wrong type`, async () => {
      const queue = await rig.queue(having([waits, { id: 'w' }]))
      await queue.block(wrong)
      const done = run(rig.sender, remove, queue.keys, { client: 'me', nowMs: NOW, alsoHeld: true, ids: [raw('x')] })
      // the script does not read the schedules behind the one where it is; without the history the rest goes on
      if (['due9', 'inFlight', 'failures'].includes(wrong)) expect(await done).to.deep.equal([true])
      else expect(await rejection(done)).to.include({ code: 'ERR_WRONG_TYPE' })
      await queue.unblock(wrong)
      const { queue: now } = await queue.read()
      if (wrong !== 'messages') expect(now.messages).to.include.keys('w')
      if (wrong !== 'due0') expect(now.due?.['0']).to.deep.equal([['w', String(NOW)]])
    })
  }
})

describe('reliable-reschedule.lua', () => {
  const rig = useReliable()
  const fresh = { id: 'x', at: NOW + 9, priority: 4, payload: 'X' }
  const x = { ...fresh, attempts: 2, failures: 'x\n' }
  const held = { ...x, until: NOW + 1 }

  interface Case {
    what: string
    before: State
    delayMs?: number
    /** In the place of a delay. */
    at?: number
    priority?: number
    id?: Bytes
    reply: number | null
    after: State
    published: number[]
  }
  const cases: Case[] = [
    {
      what: 'does nothing of an unknown id',
      before: having([other]),
      reply: null,
      after: having([other]),
      published: [],
    },
    {
      what: 'gives a later time, without a word',
      before: having([x, other]),
      delayMs: 500,
      reply: NOW + 500,
      after: having([{ ...x, at: NOW + 500 }, other]),
      published: [],
    },
    {
      what: 'gives the time of a moment',
      before: having([x, other]),
      at: NOW + 500,
      reply: NOW + 500,
      after: having([{ ...x, at: NOW + 500 }, other]),
      published: [],
    },
    {
      what: 'gives the time of now for a moment that has passed',
      before: having([x, other]),
      at: NOW - 500,
      reply: NOW,
      after: having([{ ...x, at: NOW }, other]),
      published: [NOW],
    },
    {
      what: 'gives an earlier time and announces it',
      before: having([x, other]),
      delayMs: 2,
      reply: NOW + 2,
      after: having([{ ...x, at: NOW + 2 }, other]),
      published: [NOW + 2],
    },
    {
      what: 'says nothing of an earlier time that is not the first',
      before: having([x, other]),
      delayMs: 3,
      reply: NOW + 3,
      after: having([{ ...x, at: NOW + 3 }, other]),
      published: [],
    },
    {
      what: 'says nothing of an earlier time before which a tick of a repeat comes',
      before: having([x], { ticks: [['r', NOW + 2]] }),
      delayMs: 3,
      reply: NOW + 3,
      after: having([{ ...x, at: NOW + 3 }], { ticks: [['r', NOW + 2]] }),
      published: [],
    },
    {
      what: 'announces an earlier time before the first tick',
      before: having([x], { ticks: [['r', NOW + 3]] }),
      delayMs: 2,
      reply: NOW + 2,
      after: having([{ ...x, at: NOW + 2 }], { ticks: [['r', NOW + 3]] }),
      published: [NOW + 2],
    },
    ...[0, 4, 9].map((priority) => ({
      what: `moves it to priority ${priority} and leaves its time`,
      before: having([x]),
      priority,
      reply: NOW + 9,
      after: having([{ ...x, priority }]),
      published: [],
    })),
    {
      what: 'changes both at once',
      before: having([x]),
      delayMs: 0,
      priority: 9,
      reply: NOW,
      after: having([{ ...x, priority: 9, at: NOW }]),
      published: [NOW],
    },
    {
      what: 'changes nothing without a new delay or priority',
      before: having([x]),
      reply: NOW + 9,
      after: having([x]),
      published: [],
    },
    {
      what: 'leaves a message that a consumer has',
      before: having([held]),
      delayMs: 0,
      reply: null,
      after: having([held]),
      published: [],
    },
    ...[4, 6].map((priority) => ({
      what: `takes a message whose visibility has ended, to priority ${priority}`,
      before: having([{ ...x, until: NOW, attempts: 2 }]),
      delayMs: 500,
      priority,
      reply: NOW + 500,
      // its delivery is counted; who had it has it no more, as it is not in flight
      after: having([{ ...x, priority, at: NOW + 500 }], { deliveries: [['x', '2 t']] }),
      published: [],
    })),
    {
      what: 'leaves the time at which it came back',
      before: having([{ ...x, until: NOW - 3, attempts: 2 }]),
      reply: NOW - 3,
      after: having([{ ...x, at: NOW - 3 }], { deliveries: [['x', '2 t']] }),
      published: [],
    },
    ...[
      { delayMs: 500, expires: NOW + 20 + 491 },
      { delayMs: 0, expires: NOW + 11 },
      { delayMs: -1, expires: NOW + 20 },
      { delayMs: MAX - NOW, expires: MAX },
    ].map(({ delayMs, expires }): Case => {
      const at = delayMs < 0 ? NOW + 9 : NOW + delayMs
      return {
        what: `lives as long after it is visible, with delay ${delayMs}`,
        before: having([
          { id: 'first', at: 1 },
          { ...fresh, expires: NOW + 20, limit: 2, headers: 'h' },
        ]),
        delayMs,
        reply: at,
        after: having([
          { id: 'first', at: 1 },
          { ...fresh, at, expires, limit: 2, headers: 'h' },
        ]),
        published: [],
      }
    }),
    ...[
      { delayMs: 500, expires: NOW + 20 + 491 },
      { delayMs: 0, expires: NOW + 20 },
    ].map(({ delayMs, expires }): Case => ({
      what: `loses no time to live between two attempts, with delay ${delayMs}`,
      before: having([
        { id: 'first', at: 1 },
        { ...x, expires: NOW + 20 },
      ]),
      delayMs,
      reply: NOW + delayMs,
      after: having([
        { id: 'first', at: 1 },
        { ...x, at: NOW + delayMs, expires },
      ]),
      published: [],
    })),
    ...[
      { at: MAX, delayMs: 0 },
      { at: NOW + 20, delayMs: 5 },
      { at: NOW + 3_600_000, delayMs: 10 },
      { at: NOW + 3_600_000, delayMs: 5_000_000 },
    ].map(({ at, delayMs }) => ({
      what: `keeps the expiry of a message that would be visible at ${at}, after it, with delay ${delayMs}`,
      before: having([
        { id: 'first', at: 1 },
        { ...x, at, expires: NOW + 20, headers: 'h' },
      ]),
      delayMs,
      reply: NOW + delayMs,
      after: having([
        { id: 'first', at: 1 },
        { ...x, at: NOW + delayMs, expires: NOW + 20, headers: 'h' },
      ]),
      published: [],
    })),
    ...[ALL_BYTES, ''].map((id) => ({
      what: `finds the id ${readable(id).slice(0, 12)}`,
      before: having([{ id, at: NOW }, x]),
      id,
      delayMs: 5,
      reply: NOW + 5,
      after: having([{ id, at: NOW + 5 }, x]),
      published: [],
    })),
    {
      what: 'gives the last time there is',
      before: having([x]),
      delayMs: MAX - NOW,
      reply: MAX,
      after: having([{ ...x, at: MAX }]),
      published: [],
    },
    {
      what: 'gives none beyond it',
      before: having([x]),
      delayMs: MAX - NOW + 1,
      priority: 9,
      reply: -3,
      after: having([x]),
      published: [],
    },
  ]
  for (const {
    what,
    before: state,
    delayMs = -1,
    at,
    priority = -1,
    id = 'x',
    reply,
    after: then,
    published,
  } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      const when = at !== undefined ? `@${at}` : delayMs < 0 ? '' : String(delayMs)
      const args = { channel: queue.channel, client: 'me', nowMs: NOW, id: raw(id), when, priority }
      expect(await run(rig.sender, reschedule, queue.keys, args)).to.equal(reply)
      const read = await queue.read()
      expect(read).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal(published.map(String))
    })
  }

  it('uses the clock of the server without a given time', async () => {
    const seconds = Number((await rig.redis.time())[0])
    const queue = await rig.queue(having([x]))
    const args = { channel: queue.channel, client: 'me', nowMs: -1, id: raw('x'), when: '7', priority: -1 }
    expect(await run(rig.sender, reschedule, queue.keys, args)).to.be.within(seconds * 1000 + 7, (seconds + 600) * 1000)
  })

  it('does not let a message expire earlier when its new schedule is refused', async () => {
    const queue = await rig.queue(having([{ ...fresh, at: NOW + 3_600_000, expires: NOW + 3_600_600 }]))
    await rig.redis.set(queue.keys.due7, 'of another type')
    const before = await rig.redis.hgetall(queue.keys.messages)
    const args = { channel: queue.channel, client: 'me', nowMs: NOW, id: raw('x'), when: '0', priority: 7 }
    const thrown = await run(rig.sender, reschedule, queue.keys, args).catch((error: unknown) => error)
    expect(thrown).to.have.property('code', 'ERR_WRONG_TYPE')
    expect(await rig.redis.hgetall(queue.keys.messages)).to.deep.equal(before)
  })

  it('changes nothing while the deliveries are of another type', async () => {
    const queue = await rig.queue(having([{ ...fresh, expires: NOW + 600 }]))
    await rig.redis.set(queue.keys.deliveries, 'of another type')
    const args = { channel: queue.channel, client: 'me', nowMs: NOW, id: raw('x'), when: '0', priority: -1 }
    const thrown = await run(rig.sender, reschedule, queue.keys, args).catch((error: unknown) => error)
    expect(thrown).to.have.property('code', 'ERR_WRONG_TYPE')
    expect(await rig.redis.zscore(queue.keys.due4, 'x')).to.equal(String(fresh.at))
    expect(await queue.published()).to.deep.equal([])
  })

  it('changes nothing when the announcement is refused', async () => {
    const queue = await rig.queue(having([x]))
    const args = { channel: queue.channel, client: 'me', nowMs: NOW, id: raw('x'), when: '0', priority: 2 }
    const thrown = await rig.muted([queue.deadChannel], (sender) =>
      rejection(run(sender, reschedule, queue.keys, args)),
    )
    expect(thrown.message).to.match(/perm|can't/i)
    expect(await queue.read()).to.deep.equal(expected(having([x])))
  })

  for (const wrong of ['messages', 'inFlight', 'ticks', 'due0', 'due6', 'due9'] as const) {
    for (const where of ['waits', 'came back'] as const) {
      it(`a message that ${where} is in a schedule still when ${wrong} has the wrong type`, async () => {
        const queue = await rig.queue(having([where === 'waits' ? { ...x, at: 1 } : { ...x, until: 1 }]))
        await queue.block(wrong)
        for (const priority of [6, 9, 0]) {
          const args = { channel: queue.channel, client: 'me', nowMs: NOW, id: raw('x'), when: '5', priority }
          const thrown = await run(rig.sender, reschedule, queue.keys, args).then(
            () => null,
            (error: unknown) => String(error),
          )
          if (thrown !== null) expect(thrown).to.match(/wrong/i)
        }
        await queue.unblock(wrong)
        if (wrong === 'inFlight' && where === 'came back') return // the place where it was is gone
        const { queue: now } = await queue.read()
        const places = [...Object.values(now.due ?? {}), now.inFlight ?? []].flat().map(([member]) => member)
        expect(places).to.have.lengthOf(1)
        expect(places).to.include.oneOf(['x', '4x'])
      })
    }
  }
})

describe('reliable-update.lua', () => {
  const rig = useReliable()

  const cases: { what: string; before: State; id?: Bytes; payload?: Bytes; reply: number; after: State }[] = [
    { what: 'does nothing of an unknown id', before: having([other]), reply: 0, after: having([other]) },
    {
      what: 'gives another payload; all else stays',
      before: having([{ id: 'x', payload: 'old', attempts: 2, failures: 'f\n', at: NOW + 9, priority: 3 }, other]),
      reply: 1,
      after: having([{ id: 'x', payload: 'new', attempts: 2, failures: 'f\n', at: NOW + 9, priority: 3 }, other]),
    },
    {
      what: 'leaves headers, expiry and delivery limit as they are',
      before: having([{ id: 'x', payload: 'old and long', headers: '{"h":"1"}', expires: MAX, limit: 7 }]),
      reply: 1,
      after: having([{ id: 'x', payload: 'new', headers: '{"h":"1"}', expires: MAX, limit: 7 }]),
    },
    ...[{ expires: 5 }, { limit: 5 }, { headers: 'h' }].map((meta) => ({
      what: `leaves ${Object.keys(meta).join()} alone`,
      before: having([{ id: 'x', payload: '', ...meta }]),
      reply: 1,
      after: having([{ id: 'x', payload: 'new', ...meta }]),
    })),
    {
      what: 'takes any bytes, and none',
      before: having([{ id: ALL_BYTES, payload: 'old', headers: ALL_BYTES }]),
      id: ALL_BYTES,
      payload: ALL_BYTES,
      reply: 1,
      after: having([{ id: ALL_BYTES, payload: ALL_BYTES, headers: ALL_BYTES }]),
    },
    {
      what: 'takes an empty payload',
      before: having([{ id: '', payload: 'old' }]),
      id: '',
      payload: '',
      reply: 1,
      after: having([{ id: '' }]),
    },
    {
      what: 'leaves a message that a consumer has',
      before: having([{ id: 'x', payload: 'old', until: NOW + 1, priority: 7, headers: 'h' }, other]),
      reply: 0,
      after: having([{ id: 'x', payload: 'old', until: NOW + 1, priority: 7, headers: 'h' }, other]),
    },
    {
      what: 'says that a consumer has this payload, as after a first attempt',
      before: having([{ id: 'x', payload: 'new', until: NOW + 1, headers: 'h' }]),
      reply: 1,
      after: having([{ id: 'x', payload: 'new', until: NOW + 1, headers: 'h' }]),
    },
    {
      what: 'changes a message whose visibility has ended, and leaves what is known of its delivery',
      before: having([{ id: 'x', payload: 'old', until: NOW, priority: 7 }]),
      reply: 1,
      after: having([{ id: 'x', payload: 'new', until: NOW, priority: 7 }]),
    },
    {
      what: 'leaves a record that is in no schedule',
      before: { messages: [['x', record('old')]] },
      reply: 0,
      after: { messages: [['x', record('old')]] },
    },
    {
      what: 'leaves what is in a schedule without a record',
      before: { due: { 3: [['x', NOW]] } },
      reply: 0,
      after: { due: { 3: [['x', NOW]] } },
    },
    {
      what: 'refuses a payload that is too large',
      before: having([{ id: 'x', payload: 'old and long' }], { config: [['maxMessageBytes', '2']] }),
      reply: -5,
      after: having([{ id: 'x', payload: 'old and long' }], { config: [['maxMessageBytes', '2']] }),
    },
    {
      what: 'takes one that is as large as it may be',
      before: having([{ id: 'x', headers: 'long ones' }], { config: [['maxMessageBytes', '3']] }),
      reply: 1,
      after: having([{ id: 'x', headers: 'long ones', payload: 'new' }], { config: [['maxMessageBytes', '3']] }),
    },
  ]
  for (const { what, before: state, id = 'x', payload = 'new', reply, after: then } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      const args = { client: 'me', nowMs: NOW, id: raw(id), payload: raw(payload) }
      expect(await run(rig.sender, update, queue.keys, args)).to.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal([])
    })
  }

  it('takes a payload of 5 MB', async () => {
    const queue = await rig.queue(having([{ id: 'x', headers: 'h' }]))
    const payload = Buffer.alloc(5_000_000, ALL_BYTES)
    expect(await run(rig.sender, update, queue.keys, { client: 'me', nowMs: NOW, id: raw('x'), payload })).to.equal(1)
    const stored = await rig.redis.hgetBuffer(queue.keys.messages, 'x')
    expect(stored?.equals(record(payload, { headers: 'h' }))).to.equal(true)
  })

  it('uses the clock of the server without a given time', async () => {
    const seconds = Number((await rig.redis.time())[0])
    const queue = await rig.queue(
      having([
        { id: 'x', until: NOW + 1 },
        { id: 'y', until: (seconds + 1000) * 1000 },
      ]),
    )
    const of = (id: string) =>
      run(rig.sender, update, queue.keys, { client: 'me', nowMs: -1, id: raw(id), payload: raw('new') })
    expect([await of('x'), await of('y')]).to.deep.equal([1, 0])
  })

  for (const wrong of ['messages', 'inFlight', 'due0', 'due9'] as const) {
    it(`changes nothing when ${wrong} has the wrong type`, async () => {
      const queue = await rig.queue(having([{ id: 'x', payload: 'old', until: NOW + 1 }]))
      await queue.block(wrong)
      const then = await queue.read()
      const done = run(rig.sender, update, queue.keys, { client: 'me', nowMs: NOW, id: raw('x'), payload: raw('new') })
      expect(await rejection(done)).to.include({ code: 'ERR_WRONG_TYPE' })
      expect(await queue.read()).to.deep.equal(then)
    })
  }
})

describe('reliable-configure.lua', () => {
  const rig = useReliable()

  const some = {
    config: [
      ['visibilityTimeout', '5'],
      ['delay', '6'],
      ['pollPaused', '1'],
    ],
  } as const
  const cases: { what: string; before: State; ifAbsent?: boolean; settings: string[]; reply: boolean; after: State }[] =
    [
      {
        what: 'sets several',
        before: {},
        settings: ['visibilityTimeout', '7', 'deadLetters', '0'],
        reply: true,
        after: {
          config: [
            ['visibilityTimeout', '7'],
            ['deadLetters', '0'],
          ],
        },
      },
      {
        what: 'changes, removes and adds, and leaves the rest',
        before: some,
        settings: ['visibilityTimeout', '7', 'delay', '', 'maxSize', '1', 'timeToLive', ''],
        reply: true,
        after: {
          config: [
            ['visibilityTimeout', '7'],
            ['pollPaused', '1'],
            ['maxSize', '1'],
          ],
        },
      },
      {
        what: 'takes the last of one name',
        before: {},
        settings: ['a', '1', 'a', '2'],
        reply: true,
        after: { config: [['a', '2']] },
      },
      { what: 'leaves all as it is when nothing is given', before: some, settings: [], reply: true, after: some },
      {
        what: 'sets nothing when something is set already',
        before: some,
        ifAbsent: true,
        settings: ['maxSize', '1'],
        reply: false,
        after: some,
      },
      {
        what: 'sets where only pausing is set',
        before: {
          config: [
            ['addPaused', '1'],
            ['pollPaused', '1'],
          ],
        },
        ifAbsent: true,
        settings: ['maxSize', '1'],
        reply: true,
        after: {
          config: [
            ['addPaused', '1'],
            ['pollPaused', '1'],
            ['maxSize', '1'],
          ],
        },
      },
      {
        what: 'sets where nothing is',
        before: {},
        ifAbsent: true,
        settings: ['maxSize', '1'],
        reply: true,
        after: { config: [['maxSize', '1']] },
      },
    ]
  for (const { what, before: state, ifAbsent = false, settings, reply, after: then } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      const args = { channel: queue.channel, epoch: 'e', ifAbsent, settings }
      expect(await run(rig.sender, configure, queue.keys, args)).to.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal(reply ? ['0'] : [])
    })
  }

  it('sets nothing when it may not publish', async () => {
    const queue = await rig.queue(some)
    const args = {
      channel: queue.channel,
      epoch: 'e',
      ifAbsent: false,
      settings: ['visibilityTimeout', '1', 'delay', ''],
    }
    const thrown = await rig.muted([queue.deadChannel], (sender) => rejection(run(sender, configure, queue.keys, args)))
    expect(thrown.message).to.match(/perm|can't/i)
    expect(await queue.read()).to.deep.equal(expected(some))
  })

  for (const ifAbsent of [false, true]) {
    it(`changes nothing when the configuration has the wrong type, ifAbsent ${ifAbsent}`, async () => {
      const queue = await rig.queue()
      await queue.block('config')
      const then = await queue.read()
      const done = run(rig.sender, configure, queue.keys, {
        channel: queue.channel,
        epoch: 'e',
        ifAbsent,
        settings: ['a', '1'],
      })
      expect(await rejection(done)).to.include({ code: 'ERR_WRONG_TYPE' })
      expect(await queue.read()).to.deep.equal(then)
    })
  }
})
