import { expect } from 'chai'
import { move } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  asDead,
  expected,
  having,
  NOW,
  useReliable,
  type DueName,
  type ReliableFixture,
  type State,
  groupKeysOf,
  record,
} from './reliable-support.js'
import { ALL_BYTES, raw, rejection, type Bytes } from './support.js'

const moving = { client: 'me', targetName: '"q"', priority: 0, isRedriven: true }

/** From the dead letters to the queue. */
function keysOf({ keys, dead }: ReliableFixture, from: DueName = 'due0', to: DueName = 'due0') {
  const { messages, deliveries, failures, config, changes, completed, completedAt } = dead
  const { config: targetConfig, changes: targetChanges } = keys
  const targets = { targetMessages: keys.messages, targetDue: keys[to], targetConfig, targetChanges }
  return {
    messages,
    deliveries,
    failures,
    config,
    changes,
    completed,
    completedAt,
    due: dead[from],
    ...groupKeysOf(dead, keys),
    ...targets,
  }
}

describe('reliable-move.lua', () => {
  const rig = useReliable()
  const [a, b, c] = [
    { id: 'a', at: 3, payload: 'A', failures: '1 5 "x"\n' },
    { id: 'b', at: 2, payload: 'B', attempts: 4 },
    { id: 'c', at: 3, payload: 'C', headers: 'h', limit: 4 },
  ]
  const moved = { a: { id: 'a', payload: 'A' }, b: { id: 'b', payload: 'B' }, c: { ...c, at: NOW } }
  const there = { id: 'there', at: 1, priority: 3, payload: 'T' }

  const cases: {
    what: string
    before: State
    from?: DueName
    to?: DueName
    count?: number
    ids?: readonly Bytes[]
    reply: { moved: number; passedOver: number; gone: number; rest: number }
    after: State
    isAnnounced?: boolean
  }[] = [
    {
      what: 'moves nothing from an empty queue',
      before: having([there]),
      count: 5,
      reply: { moved: 0, passedOver: 0, gone: 0, rest: 0 },
      after: having([there]),
    },
    {
      what: 'moves the first: those that became visible first, then by id',
      before: having([there], { dead: asDead([a, b, c]) }),
      count: 2,
      reply: { moved: 2, passedOver: 0, gone: 0, rest: 0 },
      after: having([there, moved.b, moved.a], { dead: asDead([c]) }),
    },
    {
      what: 'moves all when asked for more, and forgets attempts and failures, but no limits and headers',
      before: having([], { dead: asDead([a, b, c]) }),
      count: 100,
      reply: { moved: 3, passedOver: 0, gone: 0, rest: 0 },
      after: having([moved.a, moved.b, moved.c]),
    },
    {
      what: 'begins a message with nothing that another program has written there for its id',
      before: {
        deliveries: [
          ['a', '9'],
          ['b', '9 t'],
          ['there', '2'],
        ],
        failures: [['a', 'forged\n']],
        inFlight: [['3b', NOW + 100]],
        dead: asDead([a, b]),
      },
      count: 2,
      reply: { moved: 2, passedOver: 0, gone: 0, rest: 0 },
      after: having([moved.a, moved.b], { deliveries: [['there', '2']] }),
    },
    {
      what: 'moves none when none are asked for',
      before: having([], { dead: asDead([a, b]) }),
      count: 0,
      reply: { moved: 0, passedOver: 0, gone: 0, rest: 0 },
      after: having([], { dead: asDead([a, b]) }),
    },
    {
      what: 'moves what is named, whatever the count, once',
      before: having([], { dead: asDead([a, b, c]) }),
      count: 1,
      ids: ['c', 'none', 'a', 'c'],
      reply: { moved: 2, passedOver: 0, gone: 0, rest: 0 },
      after: having([moved.a, moved.c], { dead: asDead([b]) }),
    },
    {
      what: 'moves what is not visible yet; it is there',
      before: having([], { dead: asDead([{ id: 'x', at: NOW + 9, expires: NOW + 10 }]) }),
      count: 1,
      reply: { moved: 1, passedOver: 0, gone: 0, rest: 0 },
      after: having([{ id: 'x', at: NOW, expires: NOW + 10 }]),
    },
    {
      what: 'moves from the given priority only, to the given one, with any bytes',
      before: having([], {
        dead: asDead([
          { id: ALL_BYTES, priority: 3, record: ALL_BYTES },
          { id: '', priority: 3 },
          { id: 'y', priority: 4 },
        ]),
      }),
      from: 'due3',
      to: 'due7',
      ids: [ALL_BYTES, '', 'y'],
      reply: { moved: 2, passedOver: 0, gone: 0, rest: 0 },
      after: having(
        [
          { id: ALL_BYTES, priority: 7, record: ALL_BYTES },
          { id: '', priority: 7 },
        ],
        {
          dead: asDead([{ id: 'y', priority: 4 }]),
        },
      ),
    },
    ...[
      ...Array.from({ length: 10 }, (_, priority) => ({ id: 'a', at: 1, payload: 'other', priority })),
      { id: 'a', until: NOW + 5, payload: 'other', priority: 8 },
    ].map((same) => ({
      what: `leaves what has the id of one that ${'until' in same ? 'is in flight' : `waits with priority ${same.priority}`} there`,
      before: having([same], { dead: asDead([a, b]) }),
      count: 5,
      reply: { moved: 1, passedOver: 1, gone: 0, rest: 0 },
      after: having([same, moved.b], { dead: asDead([a]) }),
    })),
    {
      what: 'moves a message whose id has only a record there, in no schedule and not in flight',
      before: having([], { messages: [['a', record('lost')]], dead: asDead([a, b]) }),
      count: 5,
      reply: { moved: 2, passedOver: 0, gone: 0, rest: 0 },
      after: having([moved.b, moved.a]),
    },
    {
      what: 'moves as many as asked for past those that it passes over',
      before: having([{ id: 'b' }], { dead: asDead([a, b, c]) }),
      count: 1,
      reply: { moved: 1, passedOver: 1, gone: 0, rest: 0 },
      after: having([{ id: 'b' }, moved.a], { dead: asDead([b, c]) }),
    },
    {
      what: 'says nothing when all are passed over',
      before: having([{ id: 'a' }], { dead: asDead([a]) }),
      count: 5,
      reply: { moved: 0, passedOver: 1, gone: 0, rest: 0 },
      after: having([{ id: 'a' }], { dead: asDead([a]) }),
    },
    {
      what: 'leaves a message that a consumer has',
      before: having([], {
        dead: asDead([
          { id: 'x', until: NOW + 5 },
          { id: 'y', until: 5 },
        ]),
      }),
      ids: ['x', 'y'],
      reply: { moved: 0, passedOver: 0, gone: 0, rest: 0 },
      after: having([], {
        dead: asDead([
          { id: 'x', until: NOW + 5 },
          { id: 'y', until: 5 },
        ]),
      }),
    },
    {
      what: 'removes what has no record from the schedule, so that it keeps nothing behind it',
      before: { dead: { due: { 0: [['x', 1]] } } },
      count: 1,
      reply: { moved: 0, passedOver: 0, gone: 1, rest: 0 },
      after: {},
    },
  ]
  for (const { what, before: state, from, to, count = 0, ids = [], reply, after: then } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      const args = { ...moving, targetChannel: queue.channel, nowMs: NOW, count, ids: ids.map(raw) }
      expect(await run(rig.sender, move, keysOf(queue, from, to), args)).to.deep.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(then))
      expect(await queue.published()).to.deep.equal(reply.moved > 0 ? [String(NOW)] : [])
    })
  }

  it('changes nothing from a queue to itself', async () => {
    const queue = await rig.queue(having([a, b]))
    const { messages, deliveries, failures, due0, due1, config, changes, completed, completedAt } = queue.keys
    for (const targetDue of [due0, due1]) {
      const targets = { targetMessages: messages, targetDue, targetConfig: config, targetChanges: changes }
      const own = { messages, deliveries, failures, config, changes, completed, completedAt, due: due0 }
      const keys = { ...own, ...groupKeysOf(queue.keys, queue.keys), ...targets }
      const args = { ...moving, targetChannel: queue.channel, nowMs: NOW, count: 5, ids: [] }
      expect(await run(rig.sender, move, keys, args)).to.deep.equal({ moved: 0, passedOver: 2, gone: 0, rest: 0 })
      expect(await queue.read()).to.deep.equal(expected(having([a, b])))
    }
  })

  it('moves a thousand at once, by count and by their ids', async () => {
    const all = Array.from({ length: 1000 }, (_, n) => ({ id: String(n).padStart(4, '0'), payload: `${n}` }))
    for (const ids of [[], all.map(({ id }) => raw(id))]) {
      const queue = await rig.queue({ dead: asDead([...all, { id: 'z' }]) })
      const args = { ...moving, targetChannel: queue.channel, nowMs: NOW, count: 1000, ids }
      expect(await run(rig.sender, move, keysOf(queue), args)).to.deep.equal({
        moved: 1000,
        passedOver: 0,
        gone: 0,
        rest: 0,
      })
      expect(await queue.read()).to.deep.equal(expected(having(all, { dead: asDead([{ id: 'z' }]) })))
    }
  })

  it('examines no more than a thousand', async () => {
    const same = Array.from({ length: 1000 }, (_, n) => ({ id: String(n), at: 1 }))
    const queue = await rig.queue(having(same, { dead: asDead([...same, a]) }))
    const args = { ...moving, targetChannel: queue.channel, nowMs: NOW, count: 1, ids: [] }
    expect(await run(rig.sender, move, keysOf(queue), args)).to.deep.equal({
      moved: 0,
      passedOver: 1000,
      gone: 0,
      rest: 0,
    })
  })

  it('uses the clock of the server without a given time', async () => {
    const seconds = Number((await rig.redis.time())[0])
    const queue = await rig.queue({ dead: asDead([a]) })
    const args = { ...moving, targetChannel: queue.channel, nowMs: -1, count: 1, ids: [] }
    await run(rig.sender, move, keysOf(queue), args)
    expect(Number(await rig.redis.zscore(queue.keys.due0, 'a'))).to.be.within(seconds * 1000, (seconds + 600) * 1000)
  })

  it('changes nothing when the announcement is refused', async () => {
    const state = { dead: asDead([a, b]) }
    const queue = await rig.queue(state)
    const args = { ...moving, targetChannel: queue.channel, nowMs: NOW, count: 5, ids: [] }
    const thrown = await rig.muted([queue.deadChannel], (sender) => rejection(run(sender, move, keysOf(queue), args)))
    expect(thrown.message).to.match(/perm|can't/i)
    expect(await queue.read()).to.deep.equal(expected(state))
  })

  for (const wrong of ['messages', 'due0'] as const) {
    it(`changes nothing when ${wrong} of the target has the wrong type, and moves when the type is right again`, async () => {
      const state = { dead: asDead([a, b]) }
      const queue = await rig.queue(state)
      const args = { ...moving, targetChannel: queue.channel, nowMs: NOW, count: 5, ids: [] }
      await queue.block(wrong)
      expect(await rejection(run(rig.sender, move, keysOf(queue), args))).to.include({ code: 'ERR_WRONG_TYPE' })
      await queue.unblock(wrong)
      expect(await queue.read()).to.deep.equal(expected(state))
      expect(await run(rig.sender, move, keysOf(queue), args)).to.deep.equal({
        moved: 2,
        passedOver: 0,
        gone: 0,
        rest: 0,
      })
    })
  }

  for (const wrong of ['messages', 'deliveries', 'failures', 'due0'] as const) {
    it(`loses nothing when ${wrong} has the wrong type`, async () => {
      const queue = await rig.queue({ dead: asDead([a, b]) })
      await rig.redis.set(queue.dead[wrong], 'in the way')
      const args = { ...moving, targetChannel: queue.channel, nowMs: NOW, count: 5, ids: [] }
      for (let n = 0; n < 3; n++) {
        const done = run(rig.sender, move, keysOf(queue), args)
        if (n === 0 && wrong !== 'failures') expect(await rejection(done)).to.include({ code: 'ERR_WRONG_TYPE' })
        else await done.catch(() => undefined)
      }
      await rig.redis.unlink(queue.dead[wrong])
      if (wrong === 'messages' || wrong === 'due0') return // where they were is gone
      const { queue: now, dead } = await queue.read()
      for (const id of ['a', 'b']) {
        const isIn = [now, dead].filter(({ messages = {}, due = {} }) => {
          const scheduled = Object.values(due).flat() as [string, string][]
          return Object.keys(messages).includes(id) && scheduled.some(([member]) => member === id)
        })
        expect(isIn, id).to.have.lengthOf(1)
      }
    })
  }
})
