/** Which dead letters go by count and by age, by the scripts that make dead letters of messages. */
import { expect } from 'chai'
import { negativeAcknowledge, poll } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  asDead,
  expected,
  handled,
  having,
  NOW,
  useReliable,
  type Message,
  type QueueState,
  type ReliableFixture,
  type State,
} from './reliable-support.js'

const ENDED = '"why"'
/** Clocks differ by less. */
const LATER = NOW + 60_000

describe('drop-dead.lua', () => {
  const rig = useReliable()

  function reject(queue: ReliableFixture, ...ids: string[]): Promise<number[]> {
    const { channel, deadChannel } = queue
    const pairs = handled(...ids.map((id) => [id, '1 t'] as const))
    const how = { how: 'rejected', delayMs: 0, reason: ENDED }
    return run(rig.sender, negativeAcknowledge, queue.keys, {
      ...{ channel, deadChannel, client: 'me', nowMs: NOW, handled: pairs },
      ...how,
    })
  }

  function pollOf(queue: ReliableFixture, count = 10) {
    const { channel, deadChannel } = queue
    return run(rig.sender, poll, queue.keys, {
      ...{ channel, deadChannel, client: 'me', nowMs: NOW, budgetUs: 10_000_000, count, visibilityMs: 50, token: 't' },
      ...{ idleMs: 1, announce: false, beforehand: false, repeatBytes: 1_000 },
    })
  }

  const held = (id: string): Message => ({ id, until: NOW + 1 })
  const dead = (id: string, at: number = NOW): Message => ({ id, at, failures: `1 ${NOW} ${ENDED}\n` })
  const old = (id: string, at: number): Message => ({ id, at, attempts: 2, failures: 'f\n', payload: id })

  const cases: {
    what: string
    config: QueueState['config']
    messages?: Message[]
    dead?: readonly Message[]
    /** Rejected; without any, polled. */
    ids: string[]
    left: readonly Message[]
    after?: State
  }[] = [
    {
      what: 'all stay without a setting',
      config: [],
      dead: [old('a', 1)],
      ids: ['x'],
      left: [old('a', 1), dead('x')],
    },
    {
      what: 'the oldest go where there are too many, with all that is known of them',
      config: [['keepDeadLetters', '2']],
      dead: [old('a', 1), old('b', 2), old('c', 3)],
      ids: ['x'],
      left: [old('c', 3), dead('x')],
    },
    {
      what: 'none goes where there are as many as are kept',
      config: [['keepDeadLetters', '2']],
      dead: [old('a', 1)],
      ids: ['x'],
      left: [old('a', 1), dead('x')],
    },
    {
      what: 'of more than are kept that come together some go at once',
      config: [['keepDeadLetters', '1']],
      dead: [old('a', 1)],
      ids: ['x', 'y', 'z'],
      left: [dead('z')],
    },
    {
      what: 'those that a consumer has do not count, and stay',
      config: [['keepDeadLetters', '1']],
      dead: [{ ...old('a', 1), until: NOW + 9 }, old('b', 2)],
      ids: ['x'],
      left: [{ ...old('a', 1), until: NOW + 9 }, dead('x')],
    },
    {
      what: 'those of another priority do not count, and stay',
      config: [['keepDeadLetters', '1']],
      dead: [{ ...old('a', 1), priority: 3 }, old('b', 2)],
      ids: ['x'],
      left: [{ ...old('a', 1), priority: 3 }, dead('x')],
    },
    {
      what: 'of those with later times the latest go first, until they are half of what is kept',
      config: [['keepDeadLetters', '4']],
      dead: [old('a', 1), old('b', LATER + 1), old('c', LATER + 2), old('d', LATER + 3)],
      ids: ['x', 'y'],
      left: [old('b', LATER + 1), old('c', LATER + 2), dead('x'), dead('y')],
    },
    {
      what: 'what came stays, though as many as are kept have times that are less than a minute later',
      config: [['keepDeadLetters', '3']],
      dead: [old('a', NOW + 1), old('b', NOW + 2), old('c', NOW + 59_000)],
      ids: ['x', 'y'],
      left: [old('c', NOW + 59_000), dead('x'), dead('y')],
    },
    {
      what: 'those with times that are less than a minute later leave an eighth to others',
      config: [['keepDeadLetters', '16']],
      dead: [old('o', 1), ...Array.from({ length: 16 }, (_, n) => old(`a${n}`, NOW + 1 + n))],
      ids: ['x'],
      left: [old('o', 1), ...Array.from({ length: 14 }, (_, n) => old(`a${n + 2}`, NOW + 3 + n)), dead('x')],
    },
    {
      what: 'those with later times stay where they are less than half, such as one that was given back with a delay',
      config: [['keepDeadLetters', '2']],
      dead: [old('a', 1), old('b', LATER + 1)],
      ids: ['x'],
      left: [old('b', LATER + 1), dead('x')],
    },
    {
      what: 'those that are too old go',
      config: [['keepDeadLettersFor', '10']],
      dead: [old('a', NOW - 11), old('b', NOW - 10)],
      ids: ['x'],
      left: [old('b', NOW - 10), dead('x')],
    },
    {
      what: 'those that are too old go by a poll that finds nothing',
      config: [['keepDeadLettersFor', '10']],
      dead: [old('a', NOW - 11), old('b', NOW - 10)],
      ids: [],
      left: [old('b', NOW - 10)],
    },
    {
      what: 'the oldest go by a poll that makes a dead letter',
      config: [
        ['keepDeadLetters', '1'],
        ['deliveryLimit', '1'],
      ],
      messages: [
        { id: 'x', attempts: 1 },
        { id: 'y', at: NOW + 5 },
      ],
      dead: [old('a', 1)],
      ids: [],
      left: [{ id: 'x', at: NOW }],
      after: having([{ id: 'y', at: NOW + 5 }]),
    },
    {
      what: 'none goes where the queue keeps no dead letters any more',
      config: [
        ['keepDeadLetters', '1'],
        ['deadLetters', '0'],
      ],
      dead: [old('a', 1), old('b', 2)],
      ids: ['x'],
      left: [old('a', 1), old('b', 2)],
    },
    ...['0', '-1', '1.5', 'x', '1000001', '9'.repeat(20)].map((value) => ({
      what: `all stay where the setting is ${value}`,
      config: [['keepDeadLetters', value]] as const,
      dead: [old('a', 1)],
      ids: ['x'],
      left: [old('a', 1), dead('x')],
    })),
  ]
  for (const { what, config, messages, dead: before = [], ids, left, after = {} } of cases) {
    it(what, async () => {
      const state = having(messages ?? ids.map(held), { config: config ?? [], dead: asDead(before) })
      const queue = await rig.queue(state)
      if (ids.length > 0) expect(await reject(queue, ...ids)).to.deep.equal(ids.map(() => 2))
      else expect((await pollOf(queue)).messages).to.deep.equal([])
      expect(await queue.read()).to.deep.equal(expected({ ...after, config: config ?? [], dead: asDead(left) }))
    })
  }

  const most = 20
  const full = Array.from({ length: most }, (_, n) => old(`old ${n}`, n + 1))
  const forgeries: [what: string, forge: (queue: ReliableFixture) => Promise<unknown>, keeps: number][] = [
    ['whose schedule another program has deleted', ({ dead: { due0 } }) => rig.redis.del(due0), most],
    ...(
      [
        ['inf', most],
        [2 ** 54, most],
        [LATER + 1, most / 2],
        [2 ** 53, most / 2],
      ] as const
    ).map(([time, keeps]): (typeof forgeries)[number] => [
      `whose times another program has set to ${time}`,
      ({ dead: { due0 } }) => rig.redis.zadd(due0, ...full.flatMap(({ id }) => [time, String(id)])),
      keeps,
    ]),
    [
      'whose schedule has many more names of another program with later times',
      ({ dead: { due0 } }) =>
        rig.redis.zadd(due0, ...Array.from({ length: 1_000 }, (_, n) => [LATER + n + 1, `strange ${n}`]).flat()),
      most / 2,
    ],
  ]
  for (const [what, forge, keeps] of forgeries) {
    it(`a full queue ${what} keeps the newest dead letters`, async () => {
      const news = Array.from({ length: 30 }, (_, n) => `new ${n}`)
      const config = [['keepDeadLetters', String(most)]] as const
      const queue = await rig.queue(having(news.map(held), { config, dead: asDead(full) }))
      await forge(queue)
      for (const [n, id] of news.entries()) {
        await run(rig.sender, negativeAcknowledge, queue.keys, {
          ...{ channel: queue.channel, deadChannel: queue.deadChannel, client: 'me', nowMs: NOW - 100 + n },
          ...{ handled: handled([id, '1 t']), how: 'rejected', delayMs: 0, reason: ENDED },
        })
        await pollOf(queue, 0)
        const there = await rig.redis.hmget(queue.dead.messages, ...news.slice(Math.max(0, n + 1 - keeps), n + 1))
        expect(there).to.not.include(null)
      }
      const waiting = await rig.redis.zrange(queue.dead.due0, '0', '-1')
      expect(waiting).to.have.length(most)
      expect(waiting.filter((id) => news.includes(id))).to.have.length(keeps)
    })
  }

  it('a dead letter begins with no attempts that another program has written for its id', async () => {
    const ends: [until: number, end: (queue: ReliableFixture) => Promise<unknown>][] = [
      [NOW + 1, (queue) => reject(queue, 'x')],
      [NOW, (queue) => pollOf(queue)],
    ]
    for (const [until, end] of ends) {
      const config = [['deliveryLimit', '1']] as const
      const queue = await rig.queue(having([{ id: 'x', until }], { config, dead: { deliveries: [['x', '9 t']] } }))
      await end(queue)
      expect(await rig.redis.hkeys(queue.dead.messages)).to.deep.equal(['x'])
      expect(await rig.redis.exists(queue.dead.deliveries)).to.equal(0)
    }
  })

  it('a poll that hands out a message reads no dead letter', async () => {
    const config = [['keepDeadLettersFor', '10']] as const
    const queue = await rig.queue(having([{ id: 'x' }], { config, dead: asDead([old('a', 1)]) }))
    expect((await pollOf(queue, 1)).messages).to.have.length(1)
    expect((await queue.read()).dead).to.deep.equal(expected({ dead: asDead([old('a', 1)]) }).dead)
  })

  it('one script drops 100 more than it adds, and the next ones the others', async () => {
    const many = Array.from({ length: 250 }, (_, n) => old(`old ${n}`, n))
    const queue = await rig.queue(
      having([held('x'), held('y')], { config: [['keepDeadLetters', '1']], dead: asDead(many) }),
    )
    await reject(queue, 'x')
    expect(Object.keys((await queue.read()).dead.messages ?? {})).to.have.length(150)
    await reject(queue, 'y')
    expect(Object.keys((await queue.read()).dead.messages ?? {})).to.have.length(50)
    await pollOf(queue)
    expect(await queue.read()).to.deep.equal(
      expected({ config: [['keepDeadLetters', '1']], dead: asDead([dead('y')]) }),
    )
  })

  it('the change stream of the dead letters says which', async () => {
    const ON = [['changes', 'r,1000,,0,epoch']] as const
    const config = [['keepDeadLetters', '1']] as const
    const before = { ...asDead([old('a', 1), old('bb', 2)]), config: ON }
    const queue = await rig.queue(having([held('x')], { config, dead: before }))
    await reject(queue, 'x')
    expect(await queue.changes(queue.dead)).to.deep.equal([`epoch me\na,,${NOW},0,1,1,0\nxx,,,,1,1,0\nax,,,,2,1,0\nbb`])
  })

  for (const wrong of ['deadDeliveries', 'deadFailures', 'deadMessages', 'deadDue'] as const) {
    it(`messages are given back as before where ${wrong} is of another type`, async () => {
      const config = [
        ['keepDeadLetters', '1'],
        ['keepDeadLettersFor', '5'],
      ] as const
      const queue = await rig.queue(having([held('x')], { config, dead: asDead([old('a', 1)]) }))
      await queue.block(wrong)
      const isCore = wrong === 'deadMessages' || wrong === 'deadDue'
      expect(await reject(queue, 'x')).to.deep.equal([isCore ? 3 : 2])
      expect((await pollOf(queue)).messages).to.deep.equal([])
    })
  }
})
