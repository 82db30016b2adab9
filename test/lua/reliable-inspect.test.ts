import { expect } from 'chai'
import { nextMessages } from '../../src/doctor/next-messages.js'
import { deadLettersOf, reliableKeys } from '../../src/keys.js'
import { count, get, type CountReply } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  asDead,
  channelByHand,
  expected,
  having,
  keysByHand,
  MAX,
  NOW,
  record,
  useReliable,
  type State,
} from './reliable-support.js'
import { ALL_BYTES, raw, readable, rejection, type Bytes } from './support.js'

describe('the keys of a reliable queue', () => {
  for (const name of ['orders', '{a}:b', 'a{b', '', 'ä ö']) {
    it(`of ${JSON.stringify(name)} are as written by hand`, () => {
      const { due, channel, ends, batchEnds, ...rest } = reliableKeys(name)
      const byHand = keysByHand(name)
      expect({ ...rest, ...Object.fromEntries(due.map((key, n) => [`due${n}`, key])) }).to.deep.equal(byHand)
      expect(channel).to.equal(channelByHand(name))
      expect(ends).to.equal(byHand.messages.replace('messages', 'ends'))
      expect(batchEnds).to.equal(byHand.messages.replace('messages', 'batch-ends'))
    })
  }

  it('of the dead letters are in the same slot', () => {
    expect(deadLettersOf('orders')).to.equal('{orders}:dead')
    expect(deadLettersOf('{a}:b')).to.equal('{a}:b:dead')
    expect(deadLettersOf(deadLettersOf('orders'))).to.equal('{orders}:dead:dead')
    expect(reliableKeys(deadLettersOf('orders')).messages).to.equal('redelayed:reliable:messages:{orders}:dead')
    expect(reliableKeys('orders').messages).to.equal('redelayed:reliable:messages:{orders}')
  })
})

describe('the next messages', () => {
  const rig = useReliable()

  it('are in the order of their times, also where another writer gave infinite ones', async () => {
    const late = ['a', 'b', 'c', 'd'].map((id, n) => ({ id, at: MAX - n, priority: n }))
    const queue = await rig.queue(having([...late, { id: 'e', at: MAX - 4, priority: 4 }]))
    for (const [n, id] of ['a', 'c'].entries()) await rig.redis.zadd(queue.keys[`due${(2 * n) as 0 | 2}`], '+inf', id)
    const found = await nextMessages(rig.sender, queue.name, 3)
    expect(found.map(({ id }) => id)).to.deep.equal(['e', 'd', 'b'])
    const all = await nextMessages(rig.sender, queue.name, 5)
    expect(all.slice(3).map(({ visibleAt }) => visibleAt)).to.deep.equal([Infinity, Infinity])
  })
})

describe('reliable-get.lua', () => {
  const rig = useReliable()

  const found = {
    priority: 0,
    visibleAt: NOW,
    inFlight: false,
    attempts: 0,
    failures: '',
    progress: null,
    record: readable(record()),
  }
  const cases: { what: string; before: State; ids: readonly Bytes[]; reply: unknown[] }[] = [
    { what: 'finds nothing when nothing is asked for', before: having([{ id: 'a' }]), ids: [], reply: [] },
    { what: 'finds nothing in an empty queue', before: {}, ids: ['a', ''], reply: [null, null] },
    {
      what: 'returns when a message is visible, in the order asked for, also twice',
      before: having([
        { id: 'a', at: NOW + 7, priority: 9, payload: 'A' },
        { id: 'b', at: 3, attempts: 2, failures: '1 5 "x"\n2 6 "ü"\n', expires: 8 },
      ]),
      ids: ['b', 'none', 'a', 'b'],
      reply: [
        {
          ...found,
          visibleAt: 3,
          attempts: 2,
          failures: '1 5 "x"\n2 6 "\xfc"\n',
          progress: null,
          record: readable(record('', { expires: 8 })),
        },
        null,
        { ...found, visibleAt: NOW + 7, priority: 9, record: readable(record('A')) },
        {
          ...found,
          visibleAt: 3,
          attempts: 2,
          failures: '1 5 "x"\n2 6 "\xfc"\n',
          progress: null,
          record: readable(record('', { expires: 8 })),
        },
      ],
    },
    {
      what: 'returns which messages are in flight, and until when, also after that',
      before: having([
        { id: 'a', until: NOW + 7, priority: 9, attempts: 3 },
        { id: 'b', until: NOW - 7, priority: 1 },
      ]),
      ids: ['a', 'b'],
      reply: [
        { ...found, visibleAt: NOW + 7, priority: 9, inFlight: true, attempts: 3 },
        { ...found, visibleAt: NOW - 7, priority: 1, inFlight: true, attempts: 1 },
      ],
    },
    {
      what: 'finds ids of any bytes, and records of any bytes',
      before: having([{ id: ALL_BYTES, record: ALL_BYTES }, { id: '' }, { id: '0a', until: NOW }, { id: 'a' }]),
      ids: [ALL_BYTES, '', '0a', 'a'],
      reply: [{ ...found, record: readable(ALL_BYTES) }, found, { ...found, inFlight: true, attempts: 1 }, found],
    },
    {
      what: 'does not take the priority in front for a part of the id',
      before: having([{ id: 'a', until: NOW + 1 }]),
      ids: ['0a'],
      reply: [null],
    },
    {
      what: 'finds neither what has no record nor what is in no schedule',
      before: { messages: [['a', '\0']], due: { 3: [['b', 1]] }, inFlight: [['0c', 1]] },
      ids: ['a', 'b', 'c'],
      reply: [null, null, null],
    },
    {
      what: 'knows no attempts where they cannot be read',
      before: having([{ id: 'a' }, { id: 'b' }, { id: 'c' }], {
        deliveries: [
          ['a', ''],
          ['b', 'x'],
          ['c', '-1 t'],
        ],
      }),
      ids: ['a', 'b', 'c'],
      reply: [found, found, found],
    },
    {
      what: 'returns the last time there is',
      before: having([{ id: 'a', at: MAX }]),
      ids: ['a'],
      reply: [{ ...found, visibleAt: MAX }],
    },
  ]
  for (const { what, before: state, ids, reply } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      const { now, messages } = await run(rig.sender, get, queue.keys, { nowMs: NOW, ids: ids.map(raw) })
      expect(now).to.equal(NOW)
      const shown = messages.map((each) => each && { ...each, record: readable(each.record) })
      // failures are text: what was written as bytes is no UTF-8
      const texts = (reply as (typeof found | null)[]).map(
        (each) => each && { ...each, failures: raw(each.failures).toString() },
      )
      expect(shown).to.deep.equal(texts)
      expect(await queue.read()).to.deep.equal(expected(state))
      expect(await queue.published()).to.deep.equal([])
    })
  }

  it('answers for the first ones only where they are large, and for one at least', async () => {
    const sizes = [1_100_000, 1_100_000, 400_000, 400_000, 400_000, 1]
    const all = sizes.map((size, n) => ({ id: `${n}`, payload: Buffer.alloc(size, 'x') }))
    const queue = await rig.queue(having(all))
    const ids = all.map(({ id }) => raw(id))
    const counts: number[] = []
    while (ids.length > 0) {
      const { messages } = await run(rig.sender, get, queue.keys, { nowMs: NOW, ids })
      const found = messages.map((each) => each?.record.length)
      const done = all.length - ids.length
      expect(found).to.deep.equal(sizes.slice(done, done + found.length).map((size) => size + 1))
      counts.push(ids.splice(0, found.length).length)
    }
    expect(counts).to.deep.equal([1, 1, 2, 2])
  })

  it('finds a thousand at once', async () => {
    const all = Array.from({ length: 1000 }, (_, n) => ({ id: `id ${n}`, priority: n % 10, at: n }))
    const queue = await rig.queue(having(all))
    const { messages } = await run(rig.sender, get, queue.keys, { nowMs: -1, ids: all.map(({ id }) => raw(id)) })
    expect(messages.map((each) => each?.visibleAt)).to.deep.equal(all.map(({ at }) => at))
    expect(messages.map((each) => each?.priority)).to.deep.equal(all.map(({ priority }) => priority))
  })

  for (const wrong of ['messages', 'deliveries', 'inFlight', 'due0'] as const) {
    it(`reports it when ${wrong} has the wrong type`, async () => {
      const queue = await rig.queue(
        having([{ id: 'a', ...(wrong === 'due0' || wrong === 'inFlight' ? { until: NOW } : {}) }]),
      )
      await queue.block(wrong)
      expect(await rejection(run(rig.sender, get, queue.keys, { nowMs: NOW, ids: [raw('a')] }))).to.include({
        code: 'ERR_WRONG_TYPE',
      })
    })
  }
})

/** As `shared/aside.lua` has it. */
function asideOf(task: number, at: number): number {
  return 2 ** 53 + 2 * (task * 2 ** 43 + at)
}

describe('reliable-count.lua', () => {
  const rig = useReliable()

  const nothing = {
    now: NOW,
    total: 0,
    visible: 0,
    delayed: 0,
    inFlight: 0,
    dead: 0,
    firstVisibleAt: null,
    addPaused: false,
    pollPaused: false,
    asides: [],
  }
  const cases: { what: string; before: State; reply: Partial<CountReply> }[] = [
    { what: 'counts nothing in an empty queue', before: {}, reply: {} },
    {
      what: 'distinguishes visible, delayed and in flight, to the millisecond, in all priorities',
      before: having([
        { id: 'a', at: NOW - 5, priority: 9 },
        { id: 'b', at: NOW },
        { id: 'c', at: NOW + 1 },
        { id: 'd', at: NOW + 2, priority: 5 },
        { id: 'e', at: NOW + 3, priority: 9 },
        { id: 'f', until: NOW },
        { id: 'g', until: NOW + 1 },
        { id: 'h', until: NOW + 2, priority: 9 },
      ]),
      reply: { total: 8, visible: 3, delayed: 3, inFlight: 2, firstVisibleAt: NOW - 5 },
    },
    {
      what: 'knows the first of those that are delayed',
      before: having([
        { id: 'c', at: NOW + 3, priority: 9 },
        { id: 'd', at: NOW + 2 },
      ]),
      reply: { total: 2, delayed: 2, firstVisibleAt: NOW + 2 },
    },
    {
      what: 'takes what a consumer had too long for visible since then',
      before: having([
        { id: 'a', at: NOW - 1 },
        { id: 'b', until: NOW - 7, priority: 4 },
      ]),
      reply: { total: 2, visible: 2, firstVisibleAt: NOW - 7 },
    },
    {
      what: 'knows the last time there is',
      before: having([{ id: 'c', at: MAX }]),
      reply: { total: 1, delayed: 1, firstVisibleAt: MAX },
    },
    {
      what: 'counts all dead letters, wherever they are',
      before: { dead: asDead([{ id: 'a' }, { id: 'b', until: NOW + 1 }, { id: 'c', at: NOW + 1, priority: 4 }]) },
      reply: { dead: 3 },
    },
    {
      what: 'knows that adding is paused',
      before: {
        config: [
          ['addPaused', '1'],
          ['pollPaused', '0'],
        ],
      },
      reply: { addPaused: true },
    },
    {
      what: 'knows the tasks whose messages are set aside, also where they are in no list',
      before: {
        config: [['tasks', '1']],
        ...having([
          { id: 'a', at: asideOf(3, NOW - 9), priority: 2 },
          { id: 'b', at: asideOf(3, NOW - 2), priority: 2 },
          { id: 'c', at: asideOf(511, NOW - 4), priority: 2 },
          { id: 'd', at: asideOf(3, NOW - 3) },
        ]),
      },
      reply: { total: 4, visible: 4, firstVisibleAt: NOW - 9, asides: [3, 511] },
    },
    { what: 'knows that polling is paused', before: { config: [['pollPaused', '1']] }, reply: { pollPaused: true } },
  ]
  for (const { what, before: state, reply } of cases) {
    it(what, async () => {
      const queue = await rig.queue(state)
      expect(await run(rig.sender, count, queue.keys, { nowMs: NOW })).to.deep.equal({ ...nothing, ...reply })
      expect(await queue.read()).to.deep.equal(expected(state))
      expect(await queue.published()).to.deep.equal([])
    })
  }

  it('uses the clock of the server without a given time', async () => {
    const seconds = Number((await rig.redis.time())[0])
    const queue = await rig.queue(
      having([
        { id: 'a', at: seconds * 1000 },
        { id: 'b', at: (seconds + 1000) * 1000 },
      ]),
    )
    const reply = await run(rig.sender, count, queue.keys, { nowMs: -1 })
    expect(reply).to.include({ visible: 1, delayed: 1 })
    expect(reply.now).to.be.within(seconds * 1000, (seconds + 600) * 1000)
  })

  for (const wrong of ['messages', 'deadMessages', 'inFlight', 'due0', 'due9'] as const) {
    it(`reports it when ${wrong} has the wrong type`, async () => {
      const queue = await rig.queue()
      await queue.block(wrong)
      expect(await rejection(run(rig.sender, count, queue.keys, { nowMs: NOW }))).to.include({ code: 'ERR_WRONG_TYPE' })
    })
  }
})
