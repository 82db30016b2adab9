/** Messages with groups: their turns, their limits, and where they are after each script. */
import { expect } from 'chai'
import fc from 'fast-check'
import {
  countGroups,
  listGroups,
  lostClaims,
  pauseGroup,
  refreshGroups,
  totals,
} from '../../src/store/reliable-group-scripts.js'
import * as scripts from '../../src/store/reliable-scripts.js'
import type { PollReply } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import { rounds } from '../support/long-form.js'
import {
  groupKeysOf,
  NOW,
  pollArgs,
  useReliable,
  type PollArgs,
  type ReliableFixture,
  type ScriptKeys,
} from './reliable-support.js'
import { rejection } from './support.js'

interface Item {
  readonly id: string
  readonly group?: string
  readonly at?: number
  readonly priority?: number
  readonly ttl?: number
  readonly limit?: number
  /** How large it is, besides its name. */
  readonly kib?: number
}

interface Change {
  readonly known?: string
  readonly value?: string
  readonly at?: number
  readonly withdrawn?: string
  readonly items?: readonly Item[]
}

describe('messages with groups', () => {
  const rig = useReliable()

  const add = (
    queue: ReliableFixture,
    items: readonly Item[],
    nowMs = NOW,
    existing: 'keep' | 'replace' | 'postpone' = 'keep',
  ) =>
    run(rig.sender, scripts.add, queue.keys, {
      channel: queue.channel,
      nowMs,
      existing,
      sentAgoMs: -1,
      durable: false,
      batch: '',
      client: 'me',
      items: items.flatMap(({ id, group = '', at = nowMs, priority = 0, ttl = '', limit = '', kib = 0 }) => [
        id,
        `${group === '' ? priority : `g${group.length}`},@${at},${ttl},${limit},0,,`,
        `${group}payload of ${id}${'x'.repeat(1024 * kib)}`,
      ]),
    })

  const poll = (queue: ReliableFixture, args: Partial<PollArgs> = {}): Promise<PollReply> =>
    run(rig.sender, scripts.poll, queue.keys, pollArgs(queue, args))

  const ids = ({ messages }: PollReply): string[] => messages.map(({ id }) => id)
  const handled = ({ messages }: Pick<PollReply, 'messages'>) =>
    messages.flatMap(({ member, delivery }) => [member, delivery])
  const acknowledge = (queue: ReliableFixture, reply: Pick<PollReply, 'messages'>, nowMs = NOW) =>
    run(rig.sender, scripts.acknowledge, queue.keys, {
      nowMs,
      client: 'me',
      withResults: false,
      handled: handled(reply),
    })
  const giveBack = (
    queue: ReliableFixture,
    reply: Pick<PollReply, 'messages'>,
    how: 'failed' | 'rejected' | 'released' = 'failed',
    delayMs = 0,
  ) =>
    run(rig.sender, scripts.negativeAcknowledge, queue.keys, {
      channel: queue.channel,
      deadChannel: queue.deadChannel,
      nowMs: NOW,
      how,
      delayMs,
      reason: '""',
      client: 'me',
      handled: handled(reply),
    })

  const recordOf = ({ id, group = '' }: Item): string =>
    group === '' ? `\0payload of ${id}` : `\x05,,0,${group.length}${group}payload of ${id}`

  const repeat = (queue: ReliableFixture, { known = '', value = '', at, withdrawn = '', items = [] }: Change) =>
    run(rig.sender, scripts.repeat, queue.keys, {
      ...{
        channel: queue.channel,
        nowMs: NOW,
        computedAt: NOW,
        client: 'me',
        name: Buffer.from('r'),
        expected: Buffer.from(known),
      },
      ...{ value: Buffer.from(value), at: at === undefined ? '' : String(at), withdrawn: Buffer.from(withdrawn) },
      priority: items.some(({ group }) => group !== undefined) ? 10 : 0,
      items: items.flatMap((item) =>
        [item.id, String(item.at ?? NOW), recordOf(item)].map((text) => Buffer.from(text)),
      ),
    })

  const move = (from: ScriptKeys, to: ScriptKeys, channel: string) =>
    run(
      rig.sender,
      scripts.move,
      {
        ...{ messages: from.messages, deliveries: from.deliveries, failures: from.failures, due: from.due0 },
        ...{ config: from.config, changes: from.changes, completed: from.completed, completedAt: from.completedAt },
        ...groupKeysOf(from, to),
        ...{ targetMessages: to.messages, targetDue: to.due0, targetConfig: to.config, targetChanges: to.changes },
      },
      {
        ...{ targetChannel: channel, nowMs: NOW, count: 10, client: 'me', targetName: '"x"', priority: 0 },
        ...{ isRedriven: true, ids: [] },
      },
    )
  const redrive = ({ keys, dead, channel }: ReliableFixture) => move(dead, keys, channel)

  async function made(config: Record<string, string> = {}): Promise<ReliableFixture> {
    return rig.queue({ config: Object.entries(config) })
  }

  /** All that there is of groups and of messages. */
  async function left(queue: ReliableFixture) {
    const { queue: now } = await queue.read()
    const {
      groupOrder = [],
      groupTurns = [],
      groupWakes = [],
      groups = {},
      due = {},
      inFlight = [],
      messages = {},
    } = now
    return {
      order: (groupOrder as string[][]).map(([member]) => member!.slice(member!.indexOf('1000') + 0)),
      turns: (groupTurns as string[][]).map(([group]) => group),
      wakes: groupWakes,
      groups,
      waiting: due['10'] ?? [],
      inFlight,
      messages: Object.keys(messages as object),
    }
  }
  const NOTHING = { order: [], turns: [], wakes: [], groups: {}, waiting: [], inFlight: [], messages: [] }

  it('have turns one after the other, whatever the order in which they were added', async () => {
    const queue = await made()
    await add(queue, [
      ...['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })),
      ...['b1', 'b2'].map((id) => ({ id, group: 'b' })),
      { id: 'c1', group: 'c' },
    ])
    expect(ids(await poll(queue))).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
  })

  it('keep their turns from poll to poll', async () => {
    const queue = await made()
    await add(queue, [
      ...['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })),
      ...['b1', 'b2'].map((id) => ({ id, group: 'b' })),
    ])
    const claimed: string[] = []
    for (let n = 0; n < 6; n++) claimed.push(...ids(await poll(queue, { count: 1 })))
    expect(claimed).to.deep.equal(['a1', 'b1', 'a2', 'b2', 'a3', 'a4'])
  })

  it('have the turn of those without a group where none of these was visible in it', async () => {
    const queue = await made()
    await add(queue, [
      { id: 'plain1' },
      ...['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })),
      { id: 'later', at: NOW + 5 },
    ])
    expect(ids(await poll(queue, { count: 1 }))).to.deep.equal(['a1'])
    // the second turn of those without a group comes before a3
    expect(ids(await poll(queue, { count: 3 }))).to.deep.equal(['plain1', 'a2', 'a3'])
    expect((await left(queue)).turns).to.deep.equal(['a'])
    expect(ids(await poll(queue, { nowMs: NOW + 5, count: 1 }))).to.deep.equal(['a4'])
    expect(ids(await poll(queue, { nowMs: NOW + 5, count: 1 }))).to.deep.equal(['later'])
  })

  for (const turn of ['9007199254740992', '1e308', 'inf', '-inf', '-1e308']) {
    it(`have turns one after the other, though another program gave out the turn ${turn}`, async () => {
      const queue = await made()
      await rig.redis.zadd(queue.keys.groupTurns, turn, 'z')
      await add(queue, [...['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })), { id: 'b1', group: 'b' }])
      const claimed: string[] = []
      for (let n = 0; n < 6; n++) claimed.push(...ids(await poll(queue, { count: 1 })))
      expect(claimed).to.deep.equal(['a1', 'b1', 'a2', 'a3'])
    })
  }

  it('have the next turn where another program gave them the last one of all', async () => {
    const queue = await made()
    await add(queue, [...['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })), { id: 'b1', group: 'b' }])
    await rig.redis.zadd(queue.keys.groupTurns, 'inf', 'b')
    const claimed: string[] = []
    for (let n = 0; n < 4; n++) claimed.push(...ids(await poll(queue, { count: 1 })))
    expect(claimed).to.deep.equal(['a1', 'b1', 'a2', 'a3'])
  })

  for (const ends of ['-inf', '-1e300', '-5', '0.5']) {
    it(`come back where another program made their visibility end at ${ends}`, async () => {
      const queue = await made()
      await add(queue, [{ id: 'x', group: 'a' }])
      expect(ids(await poll(queue))).to.deep.equal(['x'])
      await rig.redis.zadd(queue.keys.inFlight, ends, 'gx')
      expect(ids(await poll(queue))).to.deep.equal(['x'])
    })
  }

  for (const [score, member] of [
    [-1, '\xff\xff'],
    ['-inf', 'a stranger'],
    [5, ''],
    ['inf', '\x01'],
  ] as const) {
    it(`have their turns, though another program put something before or behind all of them: ${score}`, async () => {
      const queue = await made()
      const items = [...['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })), { id: 'b1', group: 'b' }]
      const stranger = () => rig.redis.zadd(queue.keys.groupOrder, score, Buffer.from(member, 'latin1'))
      await stranger()
      await add(queue, items)
      await stranger()
      const first = await poll(queue, { count: 1 })
      await stranger()
      await acknowledge(queue, first)
      await stranger()
      const second = await poll(queue, { count: 1 })
      await stranger()
      await giveBack(queue, second)
      expect([...ids(first), ...ids(second), ...ids(await poll(queue))]).to.deep.equal(['a1', 'b1', 'a2', 'b1', 'a3'])
    })
  }

  for (const many of [99, 100, 450]) {
    it(`have their turns behind ${many} places of another program, whatever was done with the group last`, async () => {
      const queue = await made()
      const strangers = async () => {
        const places = Array.from({ length: many }, (_, n) => `\x01a${String(n).padStart(16, '0')}none`)
        await rig.redis.zadd(queue.keys.groupOrder, ...places.flatMap((place) => [0, place]))
      }
      await strangers()
      await add(
        queue,
        ['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })),
      )
      const polled = async (): Promise<PollReply> => {
        for (let n = 0; n < 9; n++) {
          const reply = await poll(queue, { count: 1 })
          if (reply.messages.length > 0) return reply
          expect(reply.next).to.be.at.most(NOW)
        }
        throw new Error('none came')
      }
      const first = await polled()
      await rig.redis.del(queue.keys.groupTurns)
      await strangers()
      await acknowledge(queue, first)
      const second = await polled()
      await rig.redis.del(queue.keys.groupTurns)
      await strangers()
      await giveBack(queue, second)
      expect([first, second, await polled()].flatMap(ids)).to.deep.equal(['a1', 'a2', 'a2'])
    })
  }

  for (const [what, take] of [
    ['turns and times', ({ keys }: ReliableFixture) => rig.redis.del(keys.groupTurns, keys.groupWakes)],
    ['places', ({ keys }: ReliableFixture) => rig.redis.del(keys.groupOrder, keys.groupTurns, keys.groupWakes)],
  ] as const) {
    it(`come where another program took all their ${what}, also those that were delayed`, async () => {
      const queue = await rig.queue()
      const items = Array.from({ length: 60 }, (_, n) => ({ id: `${n}`, group: `g${n % 20}`, at: NOW + 10 * (n % 3) }))
      await add(queue, items)
      await take(queue)
      const got: string[] = []
      for (let nowMs = NOW + 10; got.length < 60 && nowMs < NOW + 500; nowMs++) {
        const reply = await poll(queue, { nowMs, count: 100 })
        got.push(...ids(reply))
        await acknowledge(queue, reply, nowMs)
      }
      expect(got.sort()).to.deep.equal(items.map(({ id }) => id).sort())
      expect(await rig.redis.exists(queue.keys.groupOrder, queue.keys.groupTurns, queue.keys.groupWakes)).to.equal(0)
    })
  }

  it('come where another program took the turn of their group, also while polls always find others', async () => {
    const queue = await rig.queue()
    const crowd = Array.from({ length: 200 }, (_, n) => ({ id: `${n}`, group: 'crowd', at: NOW + 1 }))
    await add(queue, [{ id: 'lost', group: 'a' }, ...crowd])
    await rig.redis.zrem(queue.keys.groupTurns, 'a')
    const got: string[] = []
    for (let nowMs = NOW + 1; !got.includes('lost'); nowMs++) {
      expect(nowMs, 'the time of the poll').to.be.below(NOW + 150)
      got.push(...ids(await poll(queue, { nowMs, count: 1 })))
    }
    expect(got.length).to.be.below(crowd.length)
  })

  it('come if the setting that there are any was lost, even if no more are added', async () => {
    const queue = await rig.queue()
    await add(queue, [{ id: 'x', group: 'a' }])
    await rig.redis.hdel(queue.keys.config, 'grouped')
    expect(await poll(queue)).to.deep.include({ messages: [], next: NOW })
    expect(ids(await poll(queue))).to.deep.equal(['x'])
  })

  it('come once where another program gave them another time', async () => {
    const queue = await rig.queue()
    const { channel, keys } = queue
    const pause = (isOn: boolean) =>
      run(rig.sender, pauseGroup, keys, { channel, nowMs: NOW, pause: isOn, group: Buffer.from('a') })
    await add(queue, [{ id: 'x', group: 'a', at: NOW + 100 }])
    await pause(true)
    await rig.redis.zadd(keys.due10, -1, 'x')
    expect(ids(await poll(queue))).to.deep.equal([])
    await pause(false)
    const got: string[] = []
    for (let nowMs = NOW + 150; nowMs < NOW + 160; nowMs++) got.push(...ids(await poll(queue, { nowMs })))
    expect(got).to.deep.equal(['x'])
  })

  for (const [place, actual] of [
    ['of a group', undefined],
    ['of a group', 'b'],
    ['of a group that is theirs too', 'b'],
    ['of no group', undefined],
    ['of no group', 'b'],
  ] as const) {
    it(`come where their records say when another program gave them a place ${place}: ${actual ?? 'without a group'}`, async () => {
      const queue = await made({ groupConcurrency: '3' })
      const { keys } = queue
      await add(queue, [{ id: 'c1', group: 'c' }])
      const other = await poll(queue, { visibilityMs: 60_000 }) // without any claim, counts are forgotten
      await add(queue, [...['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })), { id: 'b1', group: 'b' }])
      for (const id of ['x1', 'x2', 'x3']) {
        await rig.redis.hset(keys.messages, id, recordOf({ id, ...(actual && { group: actual }) }))
        await rig.redis.zadd(keys.due10, NOW - 10, id)
        const at = String(NOW - 10).padStart(16, '0')
        if (place !== 'of no group') await rig.redis.zadd(keys.groupOrder, 0, `\x01a${at}${id}`)
        if (place.endsWith('too')) await rig.redis.zadd(keys.groupOrder, 0, `\x01b${at}${id}`)
      }
      const got: string[] = []
      for (let nowMs = NOW; nowMs < NOW + 20; nowMs++) {
        const reply = await poll(queue, { nowMs, count: 2 })
        got.push(...ids(reply))
        await acknowledge(queue, reply, nowMs)
      }
      expect(got.sort()).to.deep.equal(['a1', 'a2', 'a3', 'a4', 'b1', 'x1', 'x2', 'x3'])
      await acknowledge(queue, other)
      expect(await left(queue)).to.deep.equal(NOTHING)
    })
  }

  /** Puts a message where another program could, in the order of a group if one is given. */
  const forge = async ({ keys }: ReliableFixture, id: string, record: string, group?: string) => {
    await rig.redis.hset(keys.messages, id, record)
    await rig.redis.zadd(keys.due10, NOW - 10, id)
    if (group !== undefined)
      await rig.redis.zadd(keys.groupOrder, 0, `\x01${group}${String(NOW - 10).padStart(16, '0')}${id}`)
  }
  /** The messages that some polls hand out, one poll in each millisecond. */
  const pollAll = async (queue: ReliableFixture, from = NOW, polls = 20): Promise<string[]> => {
    const got: string[] = []
    for (let nowMs = from; nowMs < from + polls; nowMs++)
      got.push(...ids(await poll(queue, { nowMs, visibilityMs: 9_000_000 })))
    return got
  }

  for (const other of ['a', 'c']) {
    it(`come once where another program gave them a place of group ${other} besides their own`, async () => {
      const queue = await made({ groupConcurrency: '3' })
      await add(
        queue,
        ['a', 'b', 'c'].map((group) => ({ id: `${group}1`, group })),
      )
      const x = recordOf({ id: 'x', group: 'b' })
      await forge(queue, 'x', x, 'b')
      await forge(queue, 'x', x, other)
      expect((await pollAll(queue)).sort()).to.deep.equal(['a1', 'b1', 'c1', 'x'])
    })
  }

  for (const where of ['in a group', 'in no group', 'in flight']) {
    it(`come without a group where their record, ${where}, ends before its group`, async () => {
      const queue = await made({ groupConcurrency: '3' })
      await add(queue, [{ id: 'a1', group: 'a' }])
      await forge(queue, 'x', '\x05,,0,5', where === 'in a group' ? 'a' : undefined)
      if (where === 'in flight') {
        await rig.redis.zrem(queue.keys.due10, 'x')
        await rig.redis.hset(queue.keys.deliveries, 'x', '1 t')
        await rig.redis.zadd(queue.keys.inFlight, NOW - 5, 'gx')
      }
      expect((await pollAll(queue)).sort()).to.deep.equal(['a1', 'x'])
      expect((await poll(queue, { nowMs: NOW + 20 })).next).to.be.greaterThan(NOW + 20)
    })
  }

  for (const where of ['in a group', 'in no group', 'in flight']) {
    it(`without a group, placed ${where} by another program, wait while the schedule of their priority is of another type`, async () => {
      const queue = await made({ groupConcurrency: '3' })
      await add(
        queue,
        ['a', 'b'].map((group) => ({ id: `${group}1`, group })),
      )
      await forge(queue, 'x', recordOf({ id: 'x' }), where === 'in a group' ? 'a' : undefined)
      if (where === 'in flight') {
        await rig.redis.zrem(queue.keys.due10, 'x')
        await rig.redis.hset(queue.keys.deliveries, 'x', '1 t')
        await rig.redis.zadd(queue.keys.inFlight, NOW - 5, 'gx')
      }
      await queue.block('due0')
      expect((await pollAll(queue)).sort()).to.deep.equal(['a1', 'b1'])
      await queue.unblock('due0')
      expect(await pollAll(queue, NOW + 70_000)).to.deep.equal(['x'])
      expect(await rig.redis.hget(queue.keys.deliveries, 'x')).to.equal(where === 'in flight' ? '2 t' : '1 t')
    })
  }

  it('that are set aside, or delayed, stay where they are when polls bring back lost ones', async () => {
    const queue = await made({ tasks: '1' })
    await add(queue, [
      { id: 'a1', group: 'a' },
      { id: 'b1', group: 'b' },
    ])
    const headers = '{"task":"report"}'
    const score = String(2 ** 53 + 2 * (2 ** 43 + NOW))
    await rig.redis.zadd(queue.keys.taskPauses, 1, 'report')
    await rig.redis.hset(queue.keys.messages, 'x', `\x06,,${headers.length},1c${headers}payload`)
    await rig.redis.unlink(queue.keys.groupTurns, queue.keys.groupOrder)
    await rig.redis.zadd(queue.keys.due10, score, 'x')
    await rig.redis.zadd(queue.keys.groupOrder, 0, `\x01c${2 ** 53}x`)
    await poll(queue, { nowMs: NOW + 1 }) // examines the last one of those that are visible, and goes on
    expect(await rig.redis.zscore(queue.keys.due10, 'x')).to.equal(score)
    expect((await pollAll(queue, NOW + 2)).sort()).to.deep.equal(['a1', 'b1'])
    await rig.redis.zadd(queue.keys.taskPauses, 1001, 'report')
    expect(await pollAll(queue, NOW + 30)).to.deep.equal(['x'])
  })

  it('expire once where another program gave them a place of another group, too', async () => {
    const queue = await made()
    await add(queue, [
      { id: 'a1', group: 'a' },
      { id: '0', group: 'b', ttl: 5 },
      { id: 'b1', group: 'b' },
    ])
    await rig.redis.zadd(queue.keys.groupOrder, 0, `\x01a${String(NOW).padStart(16, '0')}0`)
    const reply = await poll(queue, { nowMs: NOW + 6, count: 4, budgetUs: 1 })
    expect(ids(reply)).to.have.members(['a1', 'b1'])
    expect(reply.expired).to.equal(1)
    expect(await left(queue)).to.deep.include({ order: [], waiting: [] })
  })

  for (const others of [1, 40, 900]) {
    it(`lose the claims that another program wrote, while consumers have ${others} messages of others`, async () => {
      const queue = await made({ groupConcurrency: '3', groupRateLimit: '1000,1000' })
      const items = Array.from({ length: others }, (_, n) => ({ id: `b${n}`, group: `b${n}` }))
      await add(queue, items)
      const first: string[] = []
      while (first.length < others) first.push(...ids(await poll(queue, { count: 500, visibilityMs: 100_000 })))
      const groups = await rig.redis.hgetall(queue.keys.groups)
      await rig.redis.hset(queue.keys.groups, 'a', '5 ')
      await add(
        queue,
        ['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })),
      )
      const got: string[] = []
      for (let nowMs = NOW; got.length < 3 && nowMs < NOW + 10; nowMs++) got.push(...ids(await poll(queue, { nowMs })))
      expect(got).to.deep.equal(['a1', 'a2', 'a3'])
      for (let nowMs = NOW; nowMs < NOW + 10; nowMs++) got.push(...ids(await poll(queue, { nowMs })))
      expect(got).to.have.length(3) // its limit holds
      const { a, ...rest } = await rig.redis.hgetall(queue.keys.groups)
      expect(a).to.match(/^3 /u)
      expect(rest).to.deep.equal(groups)
    })
  }

  describe('behind a thousand messages of a paused group', () => {
    const behind = async (group = 'w'): Promise<ReliableFixture> => {
      const queue = await made({ groupConcurrency: '2' })
      const { channel, keys } = queue
      await add(
        queue,
        Array.from({ length: 1000 }, (_, n) => ({ id: `p${n}`, group: 'paused' })),
      )
      await run(rig.sender, pauseGroup, keys, { channel, nowMs: NOW, pause: true, group: Buffer.from('paused') })
      await add(queue, [{ id: 'w1', group }])
      return queue
    }
    /** The polls until one finds a message. */
    const pollsUntilFound = async (queue: ReliableFixture): Promise<number> => {
      for (let polls = 1; polls <= 200; polls++) {
        if (ids(await poll(queue, { nowMs: NOW + polls })).includes('w1')) return polls
      }
      return Infinity
    }

    it('come where another program took the turn of their group', async () => {
      const queue = await behind()
      await rig.redis.zrem(queue.keys.groupTurns, 'w')
      await rig.redis.zadd(queue.keys.groupWakes, NOW + 1e9, 'w')
      expect(await pollsUntilFound(queue)).to.be.at.most(3)
    })

    for (const foreign of ['\xffabc', '\x06paus', '\0', '']) {
      it(`come where another program took the turn of their group, and wrote a place that is none: ${JSON.stringify(foreign)}`, async () => {
        const queue = await behind()
        await rig.redis.zrem(queue.keys.groupTurns, 'w')
        await rig.redis.zadd(queue.keys.groupOrder, 0, Buffer.from(foreign, 'latin1'))
        expect(await pollsUntilFound(queue)).to.be.at.most(10)
        for (let nowMs = NOW + 20; nowMs < NOW + 40; nowMs++) await poll(queue, { nowMs })
        expect(await rig.redis.zcard(queue.keys.groupOrder)).to.equal(1000)
      })
    }

    for (const [prefix, group] of [
      ['\0', 'w'],
      ['\xff', 'w'],
      ['\x05', 'w'],
      ['\x05', 'worker'],
    ] as const)
      it(`come where another program took the turn of group ${group}, and wrote 10,000 places that are none: ${JSON.stringify(prefix)}`, async () => {
        const queue = await behind(group)
        await rig.redis.zrem(queue.keys.groupTurns, group)
        const places = Array.from({ length: 10_000 }, (_, n) => [
          0,
          Buffer.from(`${prefix}${n.toString(36)}`, 'latin1'),
        ])
        await rig.redis.zadd(queue.keys.groupOrder, ...places.flat())
        expect(await pollsUntilFound(queue)).to.be.at.most(20)
      })

    it('come where another program wrote claims that no consumer has', async () => {
      const queue = await behind()
      await add(queue, [{ id: 'x1', group: 'x' }])
      await rig.redis.hset(queue.keys.groups, 'w', '2 ')
      await rig.redis.zrem(queue.keys.groupTurns, 'w')
      expect(ids(await poll(queue, { visibilityMs: 60_000 }))).to.deep.equal(['x1']) // while the queue has claims, counts are not 0
      expect(await pollsUntilFound(queue)).to.be.at.most(3)
    })

    it('come where another program took their place', async () => {
      const queue = await behind()
      await rig.redis.zadd(queue.keys.due10, NOW - 3, 'w1')
      expect(await pollsUntilFound(queue)).to.be.at.most(5)
    })
  })

  it('whose places another program removed come beside an id of four MiB, which a poll removes', async () => {
    const queue = await made({ groupConcurrency: '2' })
    await add(queue, [{ id: 'a1', group: 'a' }])
    await rig.redis.del(queue.keys.groupOrder, queue.keys.groupTurns)
    await rig.redis.zadd(queue.keys.due10, -0.5, 'x'.repeat(4 * 1024 * 1024))
    const got: string[] = []
    for (let nowMs = NOW; nowMs < NOW + 20; nowMs++) got.push(...ids(await poll(queue, { nowMs, budgetUs: 1 })))
    expect(got).to.deep.equal(['a1'])
    expect(await rig.redis.zcard(queue.keys.due10)).to.equal(0)
  })

  it('come beside ids of other programs that are too long, which polls remove', async () => {
    const queue = await made()
    const long = ['x', 'y', 'z'].map((name) => name.repeat(70_000))
    for (const id of long) await rig.redis.zadd(queue.keys.due10, 1, id)
    await rig.redis.hset(queue.keys.messages, long[0]!, recordOf({ id: '', group: 'a' }))
    await add(queue, [{ id: 'a1', group: 'a' }])
    await acknowledge(queue, await poll(queue))
    for (let nowMs = NOW; nowMs < NOW + 5; nowMs++) await poll(queue, { nowMs })
    expect(await rig.redis.exists(queue.keys.due10, queue.keys.groupOrder)).to.equal(0)
  })

  for (const [what, names] of [
    ['one long name', ['x'.repeat(70_000)]],
    ['200 names of two kilobytes', Array.from({ length: 200 }, (_, n) => String(n).padStart(2_000, 'x'))],
    ['1,100 short names', Array.from({ length: 1_100 }, (_, n) => `x${n}`)],
  ] as const)
    it(`lose the claims that another program wrote beside foreign claims: ${what}`, async () => {
      const queue = await made({ groupConcurrency: '2' })
      for (const name of names) await rig.redis.zadd(queue.keys.inFlight, NOW + 1e6, `g${name}`)
      await rig.redis.hset(queue.keys.groups, 'a', '2 ')
      await add(queue, [{ id: 'a1', group: 'a' }])
      const got: string[] = []
      for (let nowMs = NOW; nowMs < NOW + 60; nowMs++) got.push(...ids(await poll(queue, { nowMs })))
      expect(got).to.deep.equal(['a1'])
      const claims = await rig.redis.zrange(queue.keys.inFlight, '0', '-1')
      expect(claims).to.include('ga1')
      expect(claims).to.have.length.of.at.most(names.length > 1_000 ? 1_001 : 1)
    })

  for (const [what, config, others] of [
    ['a full group', { groupConcurrency: '1' }, 0],
    ['a full group and more claims than a poll counts', { groupConcurrency: '1' }, 1_100],
    ['a full queue', { concurrency: '1' }, 0],
  ] as const)
    it(`whose records another program deleted leave their attempts and their batch in ${what}`, async () => {
      const queue = await made({ ...config, batched: '1' })
      const { keys } = queue
      await add(queue, [{ id: 'a1', group: 'a' }])
      await rig.redis.hset(keys.batches, { ma1: 'b', bb: `o,1,0,0,0,0,${NOW},,` })
      expect(ids(await poll(queue, { visibilityMs: 60_000 }))).to.deep.equal(['a1'])
      for (let n = 0; n < others; n++) await rig.redis.zadd(keys.inFlight, NOW + 1e6, `gx${n}`)
      await rig.redis.hdel(keys.messages, 'a1')
      await add(queue, [{ id: 'a2', group: 'a' }])
      const got: string[] = []
      for (let nowMs = NOW; nowMs < NOW + 400 && got.length === 0; nowMs++)
        got.push(...ids(await poll(queue, { nowMs, visibilityMs: 60_000 })))
      for (let nowMs = NOW + 400; nowMs < NOW + 800 && (await rig.redis.zscore(keys.inFlight, 'ga1')) !== null; nowMs++)
        await poll(queue, { nowMs })
      expect(got).to.deep.equal(['a2'])
      expect(await rig.redis.hkeys(keys.deliveries)).to.deep.equal(['a2'])
      expect(await rig.redis.hgetall(keys.batches)).to.deep.equal({ bb: `o,0,0,0,0,1,${NOW},,` })
    })

  for (const [limit, milliseconds] of [
    [2, 1],
    [20, 49],
  ] as const)
    it(`of which another program wrote fewer claims than ${limit} are handed out again when fewer are in flight`, async () => {
      const queue = await made({ groupConcurrency: String(limit) })
      const all = Array.from({ length: 2 * limit }, (_, n) => `a${String(n).padStart(2, '0')}`)
      await add(
        queue,
        all.map((id) => ({ id, group: 'a' })),
      )
      let nowMs = NOW
      const taken = async (reply: Pick<PollReply, 'messages'>): Promise<PollReply> => {
        await acknowledge(queue, reply, nowMs)
        return poll(queue, { nowMs, count: limit, visibilityMs: 60_000 })
      }
      const none = { messages: [] }
      const first = await taken(none)
      await rig.redis.hset(queue.keys.groups, 'a', '0 ')
      const second = await taken({ messages: first.messages.slice(0, 1) })
      expect([...ids(first), ...ids(second)], 'all but one').to.deep.equal(all)
      await add(queue, [{ id: 'b', group: 'a' }])
      const until = nowMs + milliseconds
      while (nowMs++ < until) expect(ids(await taken(none))).to.deep.equal([])
      expect(ids(await taken({ messages: first.messages.slice(1) })), 'as many as the limit are left').to.deep.equal([])
      expect(ids(await taken({ messages: second.messages.slice(0, 1) }))).to.deep.equal(['b'])
    })

  it('whose records another program emptied keep their claims in a full group, and come back', async () => {
    const queue = await made({ groupConcurrency: '1' })
    await add(
      queue,
      ['a1', 'a2'].map((id) => ({ id, group: 'a' })),
    )
    expect(ids(await poll(queue))).to.deep.equal(['a1'])
    await rig.redis.hset(queue.keys.messages, 'a1', '')
    for (let nowMs = NOW + 1; nowMs < NOW + 20; nowMs++) await poll(queue, { nowMs, visibilityMs: 60_000 })
    expect(await rig.redis.zscore(queue.keys.inFlight, 'ga1')).to.not.equal(null)
    const got: string[] = []
    for (let nowMs = NOW + 60_000; nowMs < NOW + 60_010; nowMs++)
      got.push(...ids(await poll(queue, { nowMs, visibilityMs: 90_000 })))
    expect(got).to.include('a1')
  })

  it('keep their claims and their times when another program claims messages that wait for a retry', async () => {
    const queue = await made({ groupConcurrency: '2' })
    await add(
      queue,
      ['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })),
    )
    const first = await poll(queue, { visibilityMs: 60_000 })
    expect(ids(first)).to.deep.equal(['a1', 'a2'])
    await giveBack(queue, { messages: first.messages.slice(0, 1) }, 'failed', 5_000)
    expect(ids(await poll(queue, { visibilityMs: 60_000 }))).to.deep.equal(['a3'])
    await rig.redis.zadd(queue.keys.inFlight, NOW - 1, 'ga1')
    expect(ids(await poll(queue, { nowMs: NOW + 1 }))).to.deep.equal([])
    const { groups, inFlight, waiting } = await left(queue)
    expect(groups).to.deep.equal({ a: '2 ' })
    expect((inFlight as string[][]).map(([member]) => member).sort()).to.deep.equal(['ga2', 'ga3'])
    expect(waiting).to.deep.include(['a1', String(NOW + 5_000)])
  })

  it('have no turn before their time beside an id of another program that is not removed before its own', async () => {
    const queue = await made()
    await rig.redis.zadd(queue.keys.due10, NOW + 9_000, 'x'.repeat(300_000))
    await add(queue, [{ id: 'a1', group: 'a', at: NOW + 5_000 }])
    for (let nowMs = NOW; nowMs < NOW + 5; nowMs++) expect((await poll(queue, { nowMs })).changed).to.equal(0)
  })

  it('have no turn before their time beside large ids of paused groups, which stay', async () => {
    const queue = await made()
    const { channel, keys } = queue
    const paused = ['p', 'q', 'r', 's', 't', 'u']
    for (const group of paused) {
      await add(queue, [{ id: group.repeat(60_000), group }])
      await run(rig.sender, pauseGroup, keys, { channel, nowMs: NOW, pause: true, group: Buffer.from(group) })
    }
    await add(queue, [{ id: 'a1', group: 'a', at: NOW + 5_000 }])
    await poll(queue)
    for (let nowMs = NOW + 1; nowMs < NOW + 20; nowMs++) expect((await poll(queue, { nowMs })).changed).to.equal(0)
    // their turn is found nevertheless
    await rig.redis.zrem(keys.groupWakes, 'a')
    const got: string[] = []
    for (let nowMs = NOW + 5_000; nowMs < NOW + 5_010; nowMs++) got.push(...ids(await poll(queue, { nowMs })))
    expect(got).to.deep.equal(['a1'])
  })

  for (const paused of ['a', 'longer'])
    it(`come where another program took the turn of their group, behind a thousand messages of ${paused} and twenty full groups`, async () => {
      const queue = await made({ groupConcurrency: '1' })
      const { channel, keys } = queue
      const full = Array.from({ length: 20 }, (_, n) => `f${n + 10}`)
      await add(
        queue,
        full.flatMap((group) => [1, 2].map((n) => ({ id: `${group}-${n}`, group }))),
      )
      while ((await poll(queue, { visibilityMs: 60_000, count: 100 })).messages.length > 0);
      await add(
        queue,
        Array.from({ length: 1000 }, (_, n) => ({ id: `p${n}`, group: paused })),
      )
      await run(rig.sender, pauseGroup, keys, { channel, nowMs: NOW, pause: true, group: Buffer.from(paused) })
      await add(queue, [{ id: 'w1', group: 'f99' }])
      await rig.redis.zrem(keys.groupTurns, 'f99')
      const got: string[] = []
      for (let nowMs = NOW + 1; nowMs <= NOW + 12; nowMs++) got.push(...ids(await poll(queue, { nowMs })))
      expect(got).to.deep.equal(['w1'])
    })

  it('come where another program took their place among many bytes of others', async () => {
    const queue = await made()
    const { channel, keys } = queue
    const paused = Array.from({ length: 200 }, (_, n) => ({
      id: `p${n + 100}`,
      group: 'p',
      at: NOW - 1000 + n,
      kib: 40,
    }))
    await add(queue, paused)
    await run(rig.sender, pauseGroup, keys, { channel, nowMs: NOW, pause: true, group: Buffer.from('p') })
    await add(queue, [{ id: 'p200a', group: 'a' }])
    await rig.redis.del(keys.groupTurns)
    const place = (await rig.redis.zrange(keys.groupOrder, '0', '-1')).find((member) => member.endsWith('p200a'))
    expect(await rig.redis.zrem(keys.groupOrder, place!)).to.equal(1)
    const got: string[] = []
    for (let nowMs = NOW; nowMs < NOW + 100; nowMs++) got.push(...ids(await poll(queue, { nowMs })))
    expect(got).to.deep.equal(['p200a'])
  })

  it('that wait for a limit, or are paused, are left where they are by polls that find nothing', async () => {
    const queue = await rig.queue()
    await rig.redis.hset(queue.keys.config, 'groupConcurrency', 1)
    await add(
      queue,
      ['full', 'paused'].flatMap((group) => [1, 2].map((n) => ({ id: `${group} ${n}`, group }))),
    )
    const { channel, keys } = queue
    await run(rig.sender, pauseGroup, keys, { channel, nowMs: NOW, pause: true, group: Buffer.from('paused') })
    expect(ids(await poll(queue, { count: 10 }))).to.deep.equal(['full 1'])
    const before = await queue.read()
    for (let nowMs = NOW; nowMs < NOW + 8; nowMs++) {
      const reply = await poll(queue, { count: 10, nowMs })
      expect(reply).to.deep.include({ messages: [], next: NOW + 500, changed: 0 })
    }
    expect(await queue.read()).to.deep.equal(before)
  })

  it('come where another program gave their places other scores, as many as there are', async () => {
    const queue = await made()
    await add(
      queue,
      Array.from({ length: 30 }, (_, n) => ({ id: `${n}`, group: `g${n % 3}` })),
    )
    for (const place of await rig.redis.zrange(queue.keys.groupOrder, '0', '-1'))
      await rig.redis.zadd(queue.keys.groupOrder, Math.random() - 0.5, place)
    const many = Array.from({ length: 3_000 }, (_, n) => [n + 1, `stranger ${n}`]).flat()
    await rig.redis.zadd(queue.keys.groupOrder, ...many)
    const came: string[] = []
    let polls = 0
    for (let isMore = true; isMore && polls < 10; polls++) {
      const reply = await poll(queue, { count: 100 })
      came.push(...ids(reply))
      isMore = reply.next !== null && reply.next <= NOW
    }
    expect(came).to.have.length(30)
    expect(polls).to.be.within(4, 9)
  })

  it('have large names, which only other programs write, read a few at a time', async () => {
    const queue = await made({ groupRateLimit: '5/1000' })
    await add(queue, [{ id: 'x', group: 'a' }])
    const names = Array.from({ length: 40 }, (_, n) => `${n}${'x'.repeat(100_000)}`)
    await rig.redis.zadd(queue.keys.groupWakes, ...names.flatMap((name) => [1, name]))
    await rig.redis.zadd(queue.keys.groupTurns, ...names.flatMap((name) => [-1, name]))
    await poll(queue, { count: 100, budgetUs: 0 })
    const keys = [queue.keys.groupWakes, queue.keys.groupTurns]
    const sizes = () => Promise.all(keys.map((key) => rig.redis.zcard(key)))
    expect(await sizes(), 'four, and one where groups with a turn do not wait for all names').to.deep.equal([36, 40])
    const claimed: string[] = []
    let polls = 1
    for (; claimed.length === 0 && polls < 40; polls++)
      claimed.push(...ids(await poll(queue, { count: 100, budgetUs: 0 })))
    expect(polls).to.be.within(11, 22)
    expect(claimed).to.deep.equal(['x'])
  })

  it('keep the order of their turns behind a large name', async () => {
    const queue = await made()
    const groups = ['a', 'b', 'c', 'd']
    await add(
      queue,
      groups.flatMap((group) => [0, 1, 2].map((n) => ({ id: `${group}${n}`, group }))),
    )
    await rig.redis.zadd(queue.keys.groupTurns, 1, 'a', 2, 'x'.repeat(300_000), 3, 'b', 4, 'c', 5, 'd')
    expect(ids(await poll(queue, { count: 8 }))).to.deep.equal(['a0', 'b0', 'c0', 'd0', 'a1', 'b1', 'c1', 'd1'])
  })

  it('all get a turn before a message is handed out, also beside a name that is too long', async () => {
    const queue = await made()
    await add(queue, [{ id: 'x', group: 'a' }])
    const waiting = Array.from({ length: 1_500 }, (_, n) => [1_000 + n, `group ${n}`]).flat()
    await rig.redis.zadd(queue.keys.groupWakes, 500, 'x'.repeat(256), ...waiting)
    const polled: string[][] = []
    for (let n = 0; n < 2; n++) polled.push(ids(await poll(queue, { budgetUs: 10_000_000 })))
    expect(polled).to.deep.equal([[], ['x']])
  })

  for (const [what, lengths] of [
    ['a thousand names of 4 KB', Array<number>(1_000).fill(4_000)],
    ['long names behind short ones', [...Array<number>(87).fill(10), ...Array<number>(20).fill(100_000)]],
  ] as const) {
    it(`have their messages handed out before all names of other programs are removed: ${what}`, async () => {
      const queue = await made()
      await add(queue, [{ id: 'x', group: 'a' }])
      const names = lengths.map((length, n) => `${n} `.padEnd(length, 'x'))
      await rig.redis.zadd(queue.keys.groupWakes, ...names.flatMap((name, n) => [n + 1, name]))
      const polled = await poll(queue, { budgetUs: 10_000_000 })
      expect({ polled: ids(polled), hasMore: (await rig.redis.zcard(queue.keys.groupWakes)) > 0 }).to.deep.equal({
        polled: ['x'],
        hasMore: true,
      })
    })
  }

  it('do not hinder the removal of as many completed messages as are added, however long their ids are', async () => {
    const queue = await made({ keepCompleted: '100' })
    for (let round = 0; round < 3; round++) {
      await add(
        queue,
        Array.from({ length: 1_000 }, (_, n) => ({ id: `${round}-${n}`.padEnd(512, 'x') })),
      )
      for (let left = 1_000; left > 0;) {
        const reply = await poll(queue, { count: 1_000, budgetUs: 10_000_000 })
        expect(reply.messages.length).to.be.above(0)
        left -= reply.messages.length
        await acknowledge(queue, reply)
      }
    }
    expect(await rig.redis.zcard(queue.keys.completedAt)).to.equal(100)
  })

  it('have large names with a turn beyond all others removed, a few at a time', async () => {
    const queue = await made()
    await add(queue, [{ id: 'x', group: 'a' }])
    const names = Array.from({ length: 20 }, (_, n) => `${n}${'x'.repeat(100_000)}`)
    await rig.redis.zadd(queue.keys.groupTurns, ...names.flatMap((name) => [9e15, name]))
    const [left, claimed]: [number[], string[]] = [[], []]
    for (let n = 0; n < 4; n++) {
      claimed.push(...ids(await poll(queue, { budgetUs: 0 })))
      left.push(await rig.redis.zcount(queue.keys.groupTurns, 1e6, '+inf'))
    }
    expect(claimed).to.deep.equal(['x'])
    expect(left, 'four before the turns, and one as turn, the first time with x').to.deep.equal([15, 10, 5, 0])
  })

  it('have large names read once, also the names of future times', async () => {
    const queue = await made({ groupRateLimit: '5/1000' })
    const names = Array.from({ length: 10 }, (_, n) => `${n}${'x'.repeat(100_000)}`)
    await rig.redis.zadd(queue.keys.groupWakes, ...names.flatMap((name) => [9e15, name]))
    await add(queue, [{ id: 'x', group: 'a' }])
    const counts: number[] = []
    for (let n = 0; n < 4; n++) {
      await poll(queue)
      counts.push(await rig.redis.zcard(queue.keys.groupWakes))
    }
    expect(counts.at(-1)).to.be.at.most(1) // that of the rate of the group
    expect(counts[0]).to.be.at.least(6)
  })

  it('with one message waits for one of a group with many, however many', async () => {
    const queue = await made()
    for (let n = 0; n < 20; n++)
      await add(
        queue,
        Array.from({ length: 250 }, (_, m) => ({ id: `a${n}-${m}`, group: 'a' })),
      )
    await poll(queue, { count: 3 })
    await add(queue, [{ id: 'b', group: 'b' }])
    expect(ids(await poll(queue, { count: 2 }))).to.include('b')
  })

  describe('that become visible together', () => {
    const NAMES = (many: number) => Array.from({ length: many }, (_, n) => `g${n}`)

    /** A group with many visible messages, and groups with one that becomes visible at the next moment. */
    async function crowded(many: number, config: Record<string, string> = {}): Promise<ReliableFixture> {
      const queue = await made(config)
      const items = NAMES(many).map((group) => ({ id: group, group, at: NOW + 1 }))
      for (let from = 0; from < many; from += 1_000) await add(queue, items.slice(from, from + 1_000))
      for (let from = 0; from < 20; from += 10)
        await add(
          queue,
          Array.from({ length: 10 }, (_, n) => ({ id: `large-${from + n}`, group: 'large' })),
        )
      return queue
    }

    for (const many of [90, 150, 250, 5_000])
      for (const count of [1, 3, 100]) {
        for (const config of [{}, { groupConcurrency: '1' }] as Record<string, string>[])
          it(`wait for one turn of another group: ${many} of them, ${count} wanted, ${JSON.stringify(config)}`, async () => {
            const queue = await crowded(many, config)
            const waiting = new Set(NAMES(many))
            const args = { nowMs: NOW + 1, count, visibilityMs: 600_000 }
            let [larges, polls] = [0, 0]
            while (waiting.size > 0) {
              const reply = await poll(queue, args)
              for (const id of ids(reply)) if (!waiting.delete(id) && waiting.size > 0) larges++
              expect(larges, `messages of the large group while ${waiting.size} wait`).to.be.at.most(1)
              expect(reply.messages.length > 0 || (reply.next === NOW + 1 && reply.changed > 0), 'goes on').to.equal(
                true,
              )
              expect(++polls).to.be.at.most(many + 10)
              await acknowledge(queue, reply, NOW + 1)
            }
            expect(larges).to.equal(1)
          })
      }

    it('get their turns in the order of their times, 1,000 with one script, before a message is handed out', async () => {
      const queue = await crowded(2_300)
      const seen: unknown[] = []
      for (let n = 0; n < 3; n++) {
        const reply = await poll(queue, { nowMs: NOW + 1, count: 1 })
        const { groupTurns = [], groupWakes = [] } = (await queue.read()).queue
        seen.push([ids(reply), reply.next, groupTurns.length, groupWakes.length])
      }
      expect(seen).to.deep.equal([
        [[], NOW + 1, 1_001, 1_300],
        [[], NOW + 1, 2_001, 300],
        [['large-0'], NOW + 1, 2_301, 0],
      ])
      expect(await rig.redis.zrange(queue.keys.groupTurns, '0', '999')).to.deep.equal(
        NAMES(2_300).sort().slice(0, 1_000),
      )
      expect(await rig.redis.zrange(queue.keys.groupTurns, '-1', '-1', 'WITHSCORES')).to.deep.equal(['large', '2302'])
    })

    it('get their turns with the next scripts where there is no time, 100 with each', async () => {
      const queue = await crowded(250)
      const seen: unknown[] = []
      for (let n = 0; n < 3; n++) {
        const reply = await poll(queue, { nowMs: NOW + 1, count: 1, budgetUs: 0 })
        seen.push([ids(reply), reply.next, await rig.redis.zcard(queue.keys.groupWakes)])
      }
      expect(seen).to.deep.equal([
        [[], NOW + 1, 150],
        [[], NOW + 1, 50],
        [['large-0'], NOW + 1, 0],
      ])
    })

    it('get their turns while another program has large names among them, a few at a time', async () => {
      const queue = await crowded(150)
      const names = Array.from({ length: 10 }, (_, n) => `${n}${'x'.repeat(20_000)}`)
      await rig.redis.zadd(queue.keys.groupWakes, ...names.flatMap((name) => [1, name]))
      const claimed: string[] = []
      for (let n = 0; n < 5; n++) claimed.push(...ids(await poll(queue, { nowMs: NOW + 1, count: 100 })))
      expect(claimed.slice(0, 151)).to.have.members(['large-0', ...NAMES(150)])
      expect(await rig.redis.zcard(queue.keys.groupWakes)).to.equal(0)
    })
  })

  it('share the turns with the messages without a group, which have their priorities among themselves', async () => {
    const queue = await made()
    await add(queue, [
      ...['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })),
      { id: 'low', at: NOW - 5 },
      { id: 'high', priority: 9 },
    ])
    expect(ids(await poll(queue))).to.deep.equal(['a1', 'high', 'a2', 'low', 'a3'])
  })

  it('within a group are in the order of their times, and come when it is time', async () => {
    const queue = await made()
    await add(queue, [
      { id: 'later', group: 'a', at: NOW + 70 },
      { id: 'second', group: 'a', at: NOW + 9 },
      { id: 'first', group: 'a', at: NOW + 5 },
      { id: 'other', group: 'ab', at: NOW + 6 },
    ])
    expect(await poll(queue)).to.include({ next: NOW + 5 })
    const reply = await poll(queue, { nowMs: NOW + 10 })
    expect(ids(reply)).to.have.members(['first', 'other', 'second'])
    expect(reply.next).to.equal(NOW + 70)
    expect(ids(await poll(queue, { nowMs: NOW + 70 }))).to.deep.equal(['later'])
  })

  it('are claimed and end without a trace', async () => {
    const queue = await made({ groupConcurrency: '3' })
    await add(queue, [
      { id: 'a1', group: 'a' },
      { id: 'b1', group: 'b' },
    ])
    const reply = await poll(queue)
    expect(reply.messages.map(({ member, priority }) => [member, priority])).to.deep.equal([
      ['ga1', 0],
      ['gb1', 0],
    ])
    expect(await acknowledge(queue, reply)).to.deep.equal([true, true])
    expect(await left(queue)).to.deep.equal(NOTHING)
  })

  it('have at most as many claims at once as their limit, and the end of one notifies waiting consumers', async () => {
    const queue = await made({ groupConcurrency: '2' })
    await add(queue, [
      ...['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })),
      ...['b1', 'b2', 'b3'].map((id) => ({ id, group: 'b' })),
    ])
    const reply = await poll(queue)
    expect(ids(reply)).to.deep.equal(['a1', 'b1', 'a2', 'b2'])
    expect(reply.next).to.equal(NOW + 500)
    expect((await left(queue)).turns).to.deep.equal([])
    await queue.published()
    await acknowledge(queue, { messages: reply.messages.slice(0, 1) })
    expect(await queue.published()).to.deep.equal([String(NOW)])
    expect(ids(await poll(queue))).to.deep.equal(['a3'])
    expect(ids(await poll(queue))).to.deep.equal([])
  })

  it('have a claim again when the visibility of one that was killed ends, and no earlier', async () => {
    const queue = await made({ groupConcurrency: '1' })
    await add(queue, [
      { id: 'a1', group: 'a' },
      { id: 'a2', group: 'a' },
    ])
    expect(ids(await poll(queue))).to.deep.equal(['a1'])
    expect(ids(await poll(queue, { nowMs: NOW + 499 }))).to.deep.equal([])
    const reply = await poll(queue, { nowMs: NOW + 500, token: 'u' })
    expect(ids(reply)).to.deep.equal(['a2']) // it is in the queue since before the other one came back
    expect(ids(await poll(queue, { nowMs: NOW + 600 }))).to.deep.equal([])
    await acknowledge(queue, reply, NOW + 601)
    expect(ids(await poll(queue, { nowMs: NOW + 602 }))).to.deep.equal(['a1'])
  })

  it('have at most `max` claims in any interval of `perMs` in each group', async () => {
    const queue = await made({ groupRateLimit: '2/1000' })
    await add(queue, [...['a1', 'a2', 'a3', 'a4', 'a5'].map((id) => ({ id, group: 'a' })), { id: 'b1', group: 'b' }])
    const reply = await poll(queue)
    expect(ids(reply)).to.deep.equal(['a1', 'b1', 'a2'])
    expect(reply.next).to.equal(NOW + 500)
    await acknowledge(queue, reply)
    expect(ids(await poll(queue, { nowMs: NOW + 1_000 }))).to.deep.equal([])
    const next = await poll(queue, { nowMs: NOW + 1_001, visibilityMs: 9_000 })
    expect(ids(next)).to.deep.equal(['a3', 'a4'])
    expect(next.next).to.equal(NOW + 2_002)
  })

  it('wait only for their rate after the clock was set back, and for the time of delayed messages', async () => {
    const queue = await made({ groupRateLimit: '1/1000' })
    await add(queue, [
      ...Array.from({ length: 40 }, (_, n) => ({ id: `d${n}`, group: `d${n}`, at: NOW + 1_800_000 + n })),
      ...['a1', 'a2'].map((id) => ({ id, group: 'a' })),
    ])
    const ahead = await poll(queue, { nowMs: NOW + 1_700_000, count: 1 })
    expect(ids(ahead)).to.deep.equal(['a1'])
    await acknowledge(queue, ahead, NOW + 1_700_000)
    await add(queue, [{ id: 'e1', group: 'e', at: NOW + 1_600_000 }])
    const { wakes } = await left(queue)
    for (let n = 0; n < 30; n++) expect(ids(await poll(queue, { nowMs: NOW + n }))).to.deep.equal([])
    const after = (await left(queue)).wakes as string[][]
    expect(Number(after.find(([group]) => group === 'a')![1])).to.be.within(NOW + 1_001, NOW + 1_030)
    const others = (all: unknown) => (all as string[][]).filter(([group]) => group !== 'a')
    expect(others(after)).to.deep.equal(others(wakes))
    expect(ids(await poll(queue, { nowMs: NOW + 1_030 }))).to.deep.equal(['a2'])
  })

  it('leave nothing of their rate when the stretch is over', async () => {
    const queue = await made({ groupRateLimit: '2/1000' })
    await add(queue, [{ id: 'a1', group: 'a' }])
    await acknowledge(queue, await poll(queue))
    expect((await left(queue)).groups).to.deep.equal({ a: `0 1@${NOW + 1} ` })
    await poll(queue, { nowMs: NOW + 1_001 })
    expect(await left(queue)).to.deep.equal(NOTHING)
  })

  for (const how of ['failed', 'released'] as const) {
    it(`stay in their group when they are given back (${how})`, async () => {
      const queue = await made({ groupConcurrency: '1' })
      await add(queue, [
        { id: 'a1', group: 'a' },
        { id: 'a2', group: 'a' },
      ])
      expect(await giveBack(queue, await poll(queue), how, 5)).to.deep.equal([1])
      expect(ids(await poll(queue, { nowMs: NOW + 10 }))).to.deep.equal(['a2'])
      const { messages } = await poll(queue, { nowMs: NOW + 600 })
      expect(messages.map(({ member, delivery }) => [member, delivery])).to.deep.equal([
        ['ga1', how === 'failed' ? '2 t' : '1 t'],
      ])
    })
  }

  it('keep their group as dead letters, and have it again when they are redriven', async () => {
    const queue = await made({ groupConcurrency: '1' })
    await add(queue, [{ id: 'a1', group: 'a' }])
    expect(await giveBack(queue, await poll(queue), 'rejected')).to.deep.equal([2])
    expect(await left(queue)).to.deep.equal(NOTHING)
    await redrive(queue)
    const { messages } = await poll(queue)
    expect(messages.map(({ member }) => member)).to.deep.equal(['ga1'])
  })

  it('expire, and become dead letters after too many deliveries', async () => {
    const queue = await made()
    await add(queue, [
      { id: 'a1', group: 'a', ttl: 5 },
      { id: 'a2', group: 'a', limit: 1 },
      { id: 'a3', group: 'a' },
    ])
    expect(ids(await poll(queue, { nowMs: NOW + 6, count: 1 }))).to.deep.equal(['a2'])
    const reply = await poll(queue, { nowMs: NOW + 600 })
    expect(ids(reply)).to.deep.equal(['a3'])
    expect(reply.deadLettered).to.equal(1)
    expect(Object.keys((await queue.read()).dead.messages ?? {})).to.deep.equal(['a2'])
    await acknowledge(queue, reply, NOW + 601)
    expect(await left(queue)).to.deep.equal(NOTHING)
  })

  it('are removed, waiting or held, without a trace', async () => {
    const queue = await made({ groupConcurrency: '1' })
    await add(queue, [
      { id: 'a1', group: 'a' },
      { id: 'a2', group: 'a' },
      { id: 'b1', group: 'b', at: NOW + 50 },
    ])
    await poll(queue)
    await queue.published()
    const args = { nowMs: NOW, alsoHeld: true, client: 'me' }
    expect(await run(rig.sender, scripts.remove, queue.keys, { ...args, ids: ['a1'] })).to.deep.equal([true])
    expect(await queue.published()).to.deep.equal([String(NOW)])
    expect(await run(rig.sender, scripts.remove, queue.keys, { ...args, ids: ['a2', 'b1', 'x'] })).to.deep.equal([
      true,
      true,
      false,
    ])
    expect(await left(queue)).to.deep.equal(NOTHING)
  })

  describe('whose place in flight was deleted', () => {
    const lost = async (): Promise<ReliableFixture> => {
      const queue = await made({ groupConcurrency: '1' })
      await add(queue, [
        { id: 'a1', group: 'a' },
        { id: 'a2', group: 'a' },
        { id: 'b1', group: 'b' },
      ])
      expect(ids(await poll(queue, { visibilityMs: 60_000 }))).to.deep.equal(['a1', 'b1'])
      await rig.redis.zrem(queue.keys.inFlight, 'ga1')
      await queue.published()
      return queue
    }

    it('end their claim when a poll finds nothing', async () => {
      const queue = await lost()
      expect(await poll(queue, { nowMs: NOW + 1 })).to.deep.include({ messages: [], next: NOW + 1 })
      expect((await left(queue)).groups).to.deep.equal({ b: '1 ' })
      expect(ids(await poll(queue, { nowMs: NOW + 1 }))).to.deep.equal(['a2'])
    })

    for (const [what, item] of [
      ['removed', undefined],
      ['added again in their group', { id: 'a1', group: 'a' }],
      ['added again in another group', { id: 'a1', group: 'c', at: NOW + 9 }],
      ['added again without a group', { id: 'a1', at: NOW + 9 }],
    ] as const)
      for (const isFirst of [true, false])
        it(`end their claim once when they are ${what} ${isFirst ? 'before' : 'after'} a poll finds nothing`, async () => {
          const queue = await made({ groupConcurrency: '2' })
          await add(
            queue,
            ['a1', 'a2', 'a3', 'a4', 'a5'].map((id) => ({ id, group: 'a' })),
          )
          const held = { visibilityMs: 60_000 }
          expect(ids(await poll(queue, held))).to.deep.equal(['a1', 'a2'])
          await rig.redis.zrem(queue.keys.inFlight, 'ga1')
          const repair = async () => {
            if (item) await add(queue, [item], NOW + 2)
            else
              await run(rig.sender, scripts.remove, queue.keys, {
                nowMs: NOW + 2,
                alsoHeld: false,
                client: 'me',
                ids: ['a1'],
              })
            expect((await rig.redis.hgetall(queue.keys.deliveries))['a1']).to.equal(undefined)
          }
          if (isFirst) await repair()
          const got: string[] = []
          for (let nowMs = NOW + 3; nowMs < NOW + 6; nowMs++) got.push(...ids(await poll(queue, { ...held, nowMs })))
          if (!isFirst) await repair()
          for (let nowMs = NOW + 6; nowMs < NOW + 9; nowMs++) got.push(...ids(await poll(queue, { ...held, nowMs })))
          expect(got).to.deep.equal(['a3'])
          expect((await left(queue)).groups).to.deep.equal({ a: '2 ' })
        })
  })

  it('are looked for at their time while the rate of the queue is used up', async () => {
    const queue = await made({ rateLimit: '1/1000' })
    await add(queue, [
      { id: 'x', group: 'b' },
      { id: 'a1', group: 'a', at: NOW + 10_000 },
    ])
    const first = await poll(queue, { visibilityMs: 60_000 })
    expect(ids(first)).to.deep.equal(['x'])
    expect(first.next).to.equal(NOW + 10_000)
    await acknowledge(queue, first)
    expect((await poll(queue)).next).to.equal(NOW + 10_000)
    expect(ids(await poll(queue, { nowMs: NOW + 10_000 }))).to.deep.equal(['a1'])
  })

  for (const wrong of ['due10', 'groupOrder', 'groupTurns', 'groupWakes', 'groups'] as const) {
    it(`hold up no message without a group where ${wrong} is of another type, and lose no attempt`, async () => {
      const queue = await made({ groupConcurrency: '2' })
      await add(queue, [{ id: 'a1', group: 'a' }, { id: 'a2', group: 'a' }, { id: 'x' }])
      expect(ids(await poll(queue, { count: 1 }))).to.have.length(1)
      await rig.redis.set(queue.keys[wrong], 'text')
      const later = await poll(queue, { nowMs: NOW + 501 })
      expect(later.problem).to.include('the groups')
      const deliveries = await rig.redis.hgetall(queue.keys.deliveries)
      expect([...ids(later), ...Object.keys(deliveries)]).to.include('x')
      for (const id of ['a1', 'a2']) expect(deliveries[id]?.startsWith('2') ?? false, id).to.equal(false)
    })
  }

  it('count an ended claim once where the user may not write their turns', async () => {
    const queue = await made({ groupConcurrency: '3' })
    await add(
      queue,
      ['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })),
    )
    const [first, ...others] = (await poll(queue, { count: 3, visibilityMs: 60_000 })).messages
    expect(others).to.have.length(2)
    expect(await rig.redis.hget(queue.keys.groups, 'a')).to.equal('3 ')
    expect(await rig.redis.zscore(queue.keys.groupTurns, 'a'), 'the turn of a full group').to.equal(null)
    const answers = await rig.limited(['&*', '+@all', '-zadd'], (sender) =>
      run(sender, scripts.acknowledge, queue.keys, {
        nowMs: NOW,
        client: 'me',
        withResults: false,
        handled: handled({ messages: [first!] }),
      }),
    )
    expect(answers).to.deep.equal([true])
    expect(await rig.redis.hget(queue.keys.groups, 'a')).to.equal('2 ')
    const come: string[] = [] // polls that find none look for groups without a turn
    for (let nowMs = NOW + 1_000; nowMs < NOW + 1_020; nowMs++) come.push(...ids(await poll(queue, { nowMs })))
    expect(come).to.deep.equal(['a4'])
  })

  for (const wrong of ['groupTurns', 'groupWakes', 'groups'] as const) {
    describe(`while ${wrong} is of another type`, () => {
      /** Which messages come once the key is there no more: polls that find none look for them. */
      const comingAfter = async (queue: ReliableFixture, from = NOW + 1_000): Promise<string[]> => {
        await queue.unblock(wrong)
        const come: string[] = []
        for (let nowMs = from; nowMs < from + 20; nowMs++)
          come.push(...ids(await poll(queue, { nowMs, visibilityMs: 60_000 })))
        return come.sort()
      }

      it('are added whole, and come after it', async () => {
        const queue = await made({ changes: 'r,100,,0,first' })
        await queue.block(wrong)
        const items = [{ id: 'a1', group: 'a' }, { id: 'b1', group: 'b', at: NOW + 50 }, { id: 'x' }]
        expect((await add(queue, items)).outcomes).to.deep.equal([1, 1, 1])
        expect((await add(queue, items)).outcomes).to.deep.equal([0, 0, 0])
        const changes = (await queue.changes()).join('')
        for (const { id } of items) expect(changes.split(id), id).to.have.length(2)
        expect(ids(await poll(queue, { visibilityMs: 60_000 }))).to.deep.equal(['x'])
        expect(await comingAfter(queue)).to.deep.equal(['a1', 'b1'])
      })

      /** Of one message a claim has ended, the other one waits. */
      const blockedWithTwo = async () => {
        const queue = await made()
        await add(queue, [
          { id: 'a1', group: 'a' },
          { id: 'a2', group: 'a', at: NOW + 50 },
        ])
        await poll(queue, { count: 1, visibilityMs: 5 })
        await queue.block(wrong)
        return queue
      }

      for (const existing of ['replace', 'postpone'] as const) {
        it(`keep a place where another one takes theirs, waiting or not acknowledged in time: ${existing}`, async () => {
          const queue = await blockedWithTwo()
          const items = ['a1', 'a2'].map((id) => ({ id, group: 'a', at: NOW + 70 }))
          const { outcomes } = await add(queue, items, NOW + 6, existing)
          expect(outcomes).to.deep.equal(existing === 'replace' ? [2, 2] : [3, 3])
          const waiting = ['a1', 'a2'].map((id) => [id, String(NOW + 70)])
          expect((await queue.read()).queue).to.deep.include({ due: { 10: waiting } })
          expect(await comingAfter(queue)).to.deep.equal(['a1', 'a2'])
        })
      }

      it('are added anew without what is left of a lost one', async () => {
        const queue = await made({ groupConcurrency: '1' })
        await add(queue, [{ id: 'a1', group: 'a' }])
        await poll(queue)
        await rig.redis.zrem(queue.keys.inFlight, 'ga1')
        await queue.block(wrong)
        expect((await add(queue, [{ id: 'a1', group: 'b' }], NOW + 6)).outcomes).to.deep.equal([1])
        expect((await rig.redis.hgetall(queue.keys.deliveries))['a1']).to.equal(undefined)
        expect(await comingAfter(queue)).to.deep.equal(['a1'])
        expect((await left(queue)).groups).to.deep.include({ b: '1 ' })
      })

      it('get another time', async () => {
        const queue = await blockedWithTwo()
        for (const id of ['a1', 'a2'])
          expect(
            await run(rig.sender, scripts.reschedule, queue.keys, {
              ...{
                channel: queue.channel,
                nowMs: NOW + 6,
                id: Buffer.from(id),
                priority: -1,
                client: 'me',
                when: '20',
              },
            }),
          ).to.equal(NOW + 26)
        expect((await queue.read()).queue).to.deep.include({
          due: { 10: ['a1', 'a2'].map((id) => [id, `${NOW + 26}`]) },
        })
        expect(await comingAfter(queue)).to.deep.equal(['a1', 'a2'])
      })

      it('are redriven whole', async () => {
        const queue = await made()
        await add(queue, [{ id: 'a1', group: 'a' }])
        await giveBack(queue, await poll(queue), 'rejected')
        await queue.block(wrong)
        expect(await redrive(queue)).to.deep.include({ moved: 1 })
        const { dead, queue: own } = await queue.read()
        expect(dead).to.deep.equal({})
        expect(Object.keys(own.messages ?? {})).to.deep.equal(['a1'])
        expect(await comingAfter(queue)).to.deep.equal(['a1'])
      })

      it('are moved whole out of their queue', async () => {
        const queue = await made()
        await add(queue, [{ id: 'a1', group: 'a' }])
        await queue.block(wrong)
        expect(await move(queue.keys, queue.dead, queue.deadChannel)).to.deep.include({ moved: 1 })
        await queue.unblock(wrong)
        const { dead, queue: own } = await queue.read()
        expect([own.messages, own.due]).to.deep.equal([undefined, undefined])
        expect(dead).to.deep.include({ due: { 10: [['a1', String(NOW)]] }, groupTurns: [['a', '1']] })
      })

      it('are restored whole, also in the place of others', async () => {
        const queue = await made()
        await add(queue, [{ id: 'a2', group: 'a', at: NOW + 50 }])
        await queue.block(wrong)
        const items = [
          ['a1', `g1,${NOW + 9},1,,,0,4,`, 'old\na1'],
          ['a2', `g1,${NOW + 8},0,,,0,0,${NOW + 50}`, 'b2'],
        ]
        const args = { channel: queue.channel, client: 'me', known: false, items: items.flat() }
        expect(await run(rig.sender, scripts.restore, queue.keys, args)).to.deep.equal([1, 2])
        const { messages, due } = (await queue.read()).queue
        expect(messages).to.have.all.keys('a1', 'a2')
        expect(due).to.deep.equal({
          10: [
            ['a2', String(NOW + 8)],
            ['a1', String(NOW + 9)],
          ],
        })
        expect(await comingAfter(queue)).to.deep.equal(['a1', 'a2'])
      })

      it('of a schedule are added, and withdrawn, with all steps', async () => {
        const queue = await made()
        await queue.block(wrong)
        const items = [{ id: 'r@1', group: 'a', at: NOW + 5 }]
        expect(await repeat(queue, { value: '1', at: NOW + 5, items })).to.equal(1)
        expect((await queue.read()).queue.repeats).to.deep.equal({ r: '1' })
        const next = [{ id: 'r@2', group: 'a', at: NOW + 6 }]
        expect(await repeat(queue, { known: '1', value: '2', withdrawn: 'r@1', items: next })).to.equal(1)
        expect((await queue.read()).queue).to.deep.include({
          repeats: { r: '2' },
          due: { 10: [['r@2', `${NOW + 6}`]] },
        })
        expect(await comingAfter(queue)).to.deep.equal(['r@2'])
      })

      it('end their claims, so that their group has its slots after it', async () => {
        const queue = await made({ groupConcurrency: '1' })
        await add(queue, [
          { id: 'a1', group: 'a' },
          { id: 'a2', group: 'a' },
          { id: 'b1', group: 'b' },
        ])
        const first = await poll(queue, { visibilityMs: 60_000 })
        expect(ids(first)).to.deep.equal(['a1', 'b1'])
        await queue.block(wrong)
        const ofA = { messages: first.messages.slice(0, 1) }
        expect(await acknowledge(queue, ofA)).to.deep.equal([true])
        // b1 stays in flight, so that no count begins anew
        expect(await comingAfter(queue)).to.deep.equal(['a2'])
      })
    })
  }

  it('are moved to no other queue while groupOrder is of another type, as they would stay here too', async () => {
    const queue = await made()
    await add(queue, [{ id: 'a1', group: 'a' }])
    await queue.block('groupOrder')
    expect(await rejection(move(queue.keys, queue.dead, queue.deadChannel))).to.include({ code: 'ERR_WRONG_TYPE' })
    expect((await queue.read()).dead).to.deep.equal({})
  })

  for (const how of ['replace', 'postpone', 'reschedule'] as const) {
    it(`stay in flight where groupOrder is of another type: ${how}`, async () => {
      const queue = await made()
      await add(queue, [{ id: 'a1', group: 'a' }])
      await poll(queue, { visibilityMs: 5 })
      await queue.block('groupOrder')
      const when = { channel: queue.channel, nowMs: NOW + 6, id: Buffer.from('a1'), priority: -1, client: 'me' }
      const changed =
        how === 'reschedule'
          ? run(rig.sender, scripts.reschedule, queue.keys, { ...when, when: '20' })
          : add(queue, [{ id: 'a1', group: 'a' }], NOW + 6, how)
      expect(await rejection(changed)).to.include({ code: 'ERR_WRONG_TYPE' })
      await queue.unblock('groupOrder')
      expect(ids(await poll(queue, { nowMs: NOW + 9 }))).to.deep.equal(['a1'])
    })
  }

  it('are announced where the end of a claim lets their group wait for a time only', async () => {
    const queue = await made({ groupConcurrency: '1' })
    await add(queue, [
      { id: 'a1', group: 'a' },
      { id: 'a2', group: 'a', at: NOW + 3_000 },
    ])
    const first = await poll(queue, { visibilityMs: 30_000 })
    expect(first.next).to.equal(NOW + 30_000)
    await queue.published()
    await acknowledge(queue, first, NOW + 2_000)
    expect(await queue.published()).to.deep.equal([`${NOW + 2_000}`])
    expect((await poll(queue, { nowMs: NOW + 2_000 })).next).to.equal(NOW + 3_000)
  })

  it('have no priority in the change stream where they are postponed', async () => {
    const queue = await made({ changes: 'g,100,,0,first' })
    await add(queue, [{ id: 'a1', group: 'a', at: NOW + 50 }])
    await add(queue, [{ id: 'a1', group: 'a', at: NOW + 80 }], NOW, 'postpone')
    expect((await queue.changes()).at(-1)).to.include(`r,,${NOW + 80},0,`)
  })

  it('get another time, and another group where they are replaced', async () => {
    const queue = await made({ groupConcurrency: '1' })
    await add(queue, [
      { id: 'a1', group: 'a', at: NOW + 50 },
      { id: 'a2', group: 'a', at: NOW + 60 },
    ])
    const when = { channel: queue.channel, nowMs: NOW, id: Buffer.from('a2'), priority: -1, client: 'me' }
    expect(await run(rig.sender, scripts.reschedule, queue.keys, { ...when, when: '20' })).to.equal(NOW + 20)
    expect((await add(queue, [{ id: 'a1', group: 'a', at: NOW + 30 }], NOW, 'postpone')).outcomes).to.deep.equal([3])
    expect(ids(await poll(queue, { nowMs: NOW + 30 }))).to.deep.equal(['a2'])
    expect((await add(queue, [{ id: 'a2', group: 'b' }, { id: 'a1' }], NOW + 31, 'replace')).outcomes).to.deep.equal([
      2, 2,
    ])
    expect(ids(await poll(queue, { nowMs: NOW + 32 }))).to.have.members(['a2', 'a1'])
    const { groups, waiting } = await left(queue)
    expect({ groups, waiting }).to.deep.equal({ groups: { b: '1 ' }, waiting: [] })
  })

  it('are visible in inspections, and are removed when the queue is cleared', async () => {
    const queue = await made()
    await add(queue, [
      { id: 'a1', group: 'a' },
      { id: 'a2', group: 'a', at: NOW + 50 },
    ])
    expect(await run(rig.sender, scripts.count, queue.keys, { nowMs: NOW })).to.include({
      total: 2,
      visible: 1,
      delayed: 1,
    })
    const { messages } = await run(rig.sender, scripts.get, queue.keys, { nowMs: NOW, ids: [Buffer.from('a2')] })
    expect(messages[0]).to.include({ priority: 0, visibleAt: NOW + 50, inFlight: false })
    await run(rig.sender, scripts.clear, queue.keys, { client: 'me' })
    expect(await left(queue)).to.deep.equal(NOTHING)
  })

  it('come however large they are, each in its turn', async () => {
    const queue = await made()
    const large = 'x'.repeat(1_500_000)
    for (const [id, group] of [
      ['a1', 'a'],
      ['plain', ''],
      ['b1', 'b'],
    ] as const) {
      await run(rig.sender, scripts.add, queue.keys, {
        channel: queue.channel,
        nowMs: NOW,
        existing: 'keep',
        sentAgoMs: -1,
        durable: false,
        batch: '',
        client: 'me',
        items: [id, `${group === '' ? 0 : 'g1'},,,,0,,`, `${group}${large}`],
      })
    }
    await add(queue, [{ id: 'a2', group: 'a' }])
    const claimed: string[] = []
    for (let n = 0; n < 8 && claimed.length < 4; n++) claimed.push(...ids(await poll(queue)))
    expect(claimed).to.have.members(['a1', 'plain', 'b1', 'a2'])
  })

  describe('whose messages fill the limit of one poll', () => {
    const large = (from: string, many: number, kib: number, group = ''): Item[] =>
      Array.from({ length: many }, (_, n) => ({ id: `${from}${n}`, group, kib }))

    for (const [count, many, kib] of [
      [100, 99, 11],
      [10, 9, 120],
      [4, 1, 600],
    ] as const) {
      it(`let those without a group have their turns (${many} groups with messages of ${kib} KiB, ${count} wanted)`, async () => {
        const queue = await made()
        for (let n = 0; n < 20; n++) await add(queue, [{ id: `plain${n + 10}` }])
        for (let n = 0; n < many; n++) await add(queue, large(`g${n}-`, 6, kib, `g${n}`))
        const claimed = []
        for (let n = 0; n < 5; n++) claimed.push(ids(await poll(queue, { count })))
        const plain = claimed.flat().filter((id) => id.startsWith('plain'))
        expect(plain).to.have.length.of.at.least(2)
        expect(plain).to.deep.equal(plain.map((_, n) => `plain${n + 10}`))
        expect(claimed.flat().length).to.be.above(plain.length)
      })
    }

    it('and without a group, whose messages are too large for all their turns, keep the next ones', async () => {
      const queue = await made()
      await add(queue, [{ id: 'a', group: 'g' }])
      await add(queue, large('plain', 6, 600))
      await add(
        queue,
        Array.from({ length: 40 }, (_, n) => ({ id: `g${n}`, group: 'g' })),
      )
      for (let n = 0; n < 3; n++) {
        const claimed = ids(await poll(queue, { count: 10 }))
        expect(claimed.filter((id) => id.startsWith('plain'))).to.deep.equal([`plain${n}`])
        expect(claimed.length, `poll ${n}`).to.be.within(2, 6)
        expect((await left(queue)).turns).to.have.members(['', 'g'])
      }
    })

    it('let no group wait longer than one turn of each other group', async function () {
      this.timeout(120_000)
      const item = fc.record({
        group: fc.constantFrom('', '', 'a', 'a', 'b', 'c'),
        kib: fc.constantFrom(0, 0, 11, 120, 300, 600, 1_100),
      })
      await fc.assert(
        fc.asyncProperty(
          fc.array(item, { maxLength: 16, size: 'max' }),
          fc.integer({ min: 1, max: 12 }),
          async (drawn, count) => {
            const queue = await made()
            const lanes = new Map<string, string[]>()
            for (const [n, { group, kib }] of drawn.entries()) {
              const id = `${group}${n + 10}`
              lanes.set(group, [...(lanes.get(group) ?? []), id])
              await add(queue, [{ id, group, kib }])
            }
            const [most, waited] = [lanes.size, new Map<string, number>()]
            while (lanes.size > 0) {
              const claimed = ids(await poll(queue, { count }))
              for (const [group, waiting] of lanes) {
                const here = claimed.filter((id) => id.replace(/\d+/, '') === group)
                expect(here).to.deep.equal(waiting.splice(0, here.length))
                waited.set(group, here.length > 0 ? 0 : (waited.get(group) ?? 0) + 1)
                expect(waited.get(group), `polls without one of ${group}`).to.be.below(most)
                if (waiting.length === 0) lanes.delete(group)
              }
            }
          },
        ),
        { numRuns: rounds(100) },
      )
    })
  })

  it('are handed out, however little time there is', async () => {
    const queue = await made()
    await add(queue, [{ id: 'a1', group: 'a' }])
    expect(ids(await poll(queue, { budgetUs: 0 }))).to.deep.equal(['a1'])
  })

  it('are handed out many at once as they are one by one', async function () {
    this.timeout(120_000)
    const item = fc.record({
      group: fc.constantFrom('', 'a', 'a', 'a', 'b', 'b', 'c', 'd'),
      at: fc.constantFrom(NOW - 2, NOW - 1, NOW, NOW, NOW + 5, NOW + 1_500),
      priority: fc.constantFrom(0, 0, 4),
      ttl: fc.constantFrom(0, 0, 0, 0, 1),
    })
    const config = fc.record({
      groupConcurrency: fc.constantFrom('', '', '1', '2', '3'),
      groupRateLimit: fc.constantFrom('', '', '1/1000', '3/1000'),
      concurrency: fc.constantFrom('', '', '5'),
    })
    const looks = fc.array(
      fc.record({ count: fc.integer({ min: 1, max: 25 }), later: fc.constantFrom(0, 0, 7, 1_100), ends: fc.boolean() }),
      { minLength: 1, maxLength: 4 },
    )
    const seen = { handed: 0, expired: 0, rounds: 0 }
    await fc.assert(
      fc.asyncProperty(
        fc.array(item, { maxLength: 60, size: 'max' }),
        config,
        looks,
        async (drawn, settings, steps) => {
          const items = drawn.map(({ group, priority, ttl, ...rest }, n) => ({
            ...{ ...rest, group, id: `${group}${n}`, ttl: ttl || undefined! },
            priority: group === '' ? priority : 0,
          }))
          const given = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== ''))
          const queues = [await made(given), await made(given)]
          for (const queue of queues) await add(queue, items, NOW - 10)
          let nowMs = NOW
          for (const { count, later, ends } of steps) {
            nowMs += later
            const args = { nowMs, visibilityMs: 600_000 }
            const together = await poll(queues[0]!, { ...args, count })
            const alone: PollReply['messages'][number][] = []
            let expired = 0
            for (let n = 0; n < count; n++) {
              const reply = await poll(queues[1]!, { ...args, count: 1 })
              expired += reply.expired
              alone.push(...reply.messages)
            }
            expect(ids(together)).to.deep.equal(alone.map(({ id }) => id))
            // what is behind the last one that is wanted is looked at by the next poll
            seen.handed += alone.length
            seen.expired += expired
            seen.rounds++
            if (ends) {
              await acknowledge(queues[0]!, together, nowMs)
              for (const message of alone) await acknowledge(queues[1]!, { messages: [message] }, nowMs)
            }
          }
          const after = { nowMs: nowMs + 700_000, count: 100 }
          const [one, two] = [await poll(queues[0]!, after), await poll(queues[1]!, after)]
          expect(ids(one)).to.have.members(ids(two))
          // the claims; of when they were, what is too old goes when a group is looked at
          const claims = async (queue: ReliableFixture) =>
            Object.entries((await left(queue)).groups as Record<string, string>).flatMap(([group, state]) =>
              state.startsWith('0 ') ? [] : [`${group} ${state.split(' ')[0]}`],
            )
          expect(await claims(queues[0]!)).to.have.members(await claims(queues[1]!))
        },
      ),
      { numRuns: rounds(200) },
    )
    expect(seen.handed).to.be.above(100)
    expect(seen.expired).to.be.above(5)
  })

  describe('of a schedule', () => {
    it('have their turns among the added messages, each at its time', async () => {
      const queue = await made()
      await add(queue, [...['a1', 'a2'].map((id) => ({ id, group: 'a' })), { id: 'b1', group: 'b' }])
      const items = [
        { id: 'r@1', group: 'b' },
        { id: 'r@2', group: 'b', at: NOW + 5 },
      ]
      expect(await repeat(queue, { value: '2', at: NOW + 5, items })).to.equal(1)
      const first = await poll(queue)
      expect(ids(first)).to.deep.equal(['a1', 'b1', 'a2', 'r@1'])
      const second = await poll(queue, { nowMs: NOW + 5 })
      expect(ids(second)).to.deep.equal(['r@2'])
      await acknowledge(queue, { messages: [...first.messages, ...second.messages] }, NOW + 5)
      expect(await left(queue)).to.deep.equal(NOTHING)
    })

    it('wake the consumers that wait for their group, and keep to its limit', async () => {
      const queue = await made({ groupConcurrency: '1' })
      const items = ['r@1', 'r@2'].map((id) => ({ id, group: 'a', at: NOW + 5 }))
      await repeat(queue, { value: '2', at: NOW + 5, items })
      expect(await queue.published()).to.deep.equal([String(NOW + 5)])
      expect((await poll(queue)).next).to.equal(NOW + 5)
      expect(ids(await poll(queue, { nowMs: NOW + 5 }))).to.deep.equal(['r@1'])
      expect(ids(await poll(queue, { nowMs: NOW + 6 }))).to.deep.equal([])
    })

    it('wait while their group is paused', async () => {
      const queue = await made()
      const pause = (isOn: boolean) =>
        run(rig.sender, pauseGroup, queue.keys, {
          ...{ channel: queue.channel, nowMs: NOW, pause: isOn, group: Buffer.from('a') },
        })
      await pause(true)
      await repeat(queue, { value: '2', items: [{ id: 'r@1', group: 'a' }] })
      await add(queue, [{ id: 'x' }])
      expect(ids(await poll(queue))).to.deep.equal(['x'])
      expect(ids(await poll(queue))).to.deep.equal([])
      await pause(false)
      expect(ids(await poll(queue))).to.deep.equal(['r@1'])
    })

    it('are withdrawn without a trace', async () => {
      const queue = await made()
      await repeat(queue, { value: '1', items: [{ id: 'r@1', group: 'a', at: NOW + 5 }] })
      expect(await left(queue)).to.deep.include({ waiting: [['r@1', String(NOW + 5)]], messages: ['r@1'] })
      expect(await repeat(queue, { known: '1', withdrawn: 'r@1' })).to.equal(1)
      expect(await left(queue)).to.deep.equal(NOTHING)
    })

    it('are replaced by messages of another group, and by messages without a group', async () => {
      const queue = await made()
      const at = NOW + 5
      await repeat(queue, { value: '1', at, items: [{ id: 'r@1', group: 'a', at }] })
      await repeat(queue, { known: '1', value: '2', at, withdrawn: 'r@1', items: [{ id: 'r@1', group: 'b', at }] })
      expect(await left(queue)).to.deep.include({ wakes: [['b', String(at)]], waiting: [['r@1', String(at)]] })
      await repeat(queue, { known: '2', value: '3', at, withdrawn: 'r@1', items: [{ id: 'r@1', at }] })
      expect(await left(queue)).to.deep.equal({ ...NOTHING, messages: ['r@1'] })
      expect(ids(await poll(queue, { nowMs: at }))).to.deep.equal(['r@1'])
    })

    it('take the place of records without a place, whose claims the next poll ends', async () => {
      const queue = await made({ groupConcurrency: '1' })
      await add(queue, [
        { id: 'r@1', group: 'a' },
        { id: 'z2', group: 'a' },
      ])
      expect(ids(await poll(queue, { visibilityMs: 60_000 }))).to.deep.equal(['r@1'])
      await rig.redis.zrem(queue.keys.inFlight, 'gr@1')
      await queue.published()
      await repeat(queue, { value: '2', items: [{ id: 'r@1', group: 'b', at: NOW + 5 }] })
      expect(await queue.published()).to.deep.equal([String(NOW + 5)])
      expect(await left(queue)).to.deep.include({ wakes: [['b', String(NOW + 5)]] })
      expect(await poll(queue, { nowMs: NOW + 1 })).to.deep.include({ messages: [] })
      expect(ids(await poll(queue, { nowMs: NOW + 5, visibilityMs: 60_000 }))).to.have.members(['z2', 'r@1'])
      expect(await repeat(queue, { known: '2', value: '3', items: [{ id: 'r@1', group: 'b' }] })).to.equal(1)
      expect(ids(await poll(queue, { nowMs: NOW + 6 })), 'held, so it stays').to.deep.equal([])
    })

    it('leave the next one of their group at its time when they are withdrawn', async () => {
      const queue = await made()
      await add(queue, [{ id: 'a1', group: 'a', at: NOW + 9 }])
      await repeat(queue, { value: '1', items: [{ id: 'r@1', group: 'a', at: NOW + 5 }] })
      await repeat(queue, { known: '1', withdrawn: 'r@1' })
      expect((await poll(queue)).next).to.equal(NOW + 9)
      expect(ids(await poll(queue, { nowMs: NOW + 9 }))).to.deep.equal(['a1'])
    })

    it('stay if they are visible or held when they are withdrawn', async () => {
      const queue = await made()
      await add(
        queue,
        ['a1', 'a2'].map((id) => ({ id, group: 'a' })),
      )
      const held = await poll(queue, { count: 1 })
      for (const withdrawn of ['a1', 'a2']) await repeat(queue, { withdrawn })
      expect((await left(queue)).messages.sort()).to.deep.equal(['a1', 'a2'])
      await acknowledge(queue, held)
      expect(ids(await poll(queue))).to.deep.equal(['a2'])
    })
  })

  it('keep to the limits of the whole queue too', async () => {
    const queue = await made({ concurrency: '3' })
    await add(queue, [
      ...['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })),
      ...['b1', 'b2'].map((id) => ({ id, group: 'b' })),
    ])
    expect(ids(await poll(queue))).to.deep.equal(['a1', 'b1', 'a2'])
    expect(ids(await poll(queue))).to.deep.equal([])
  })

  describe('whose limits are changed', () => {
    /** As `setConfig` does. */
    async function change(queue: ReliableFixture, settings: Record<string, string>, nowMs = NOW): Promise<number> {
      const names = Object.entries(settings).flat()
      const args = { channel: queue.channel, ifAbsent: false, epoch: 'e', settings: names }
      await run(rig.sender, scripts.configure, queue.keys, args)
      await queue.published()
      let [cursor, pages] = ['0', 0]
      do {
        cursor = await run(rig.sender, refreshGroups, queue.keys, { channel: queue.channel, nowMs, cursor })
        pages++
      } while (cursor !== '0')
      return pages
    }

    it('get the messages that a raised concurrency permits, also full groups, and waiting consumers poll', async () => {
      const queue = await made({ groupConcurrency: '1' })
      await add(queue, [
        ...['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })),
        ...['b1', 'b2'].map((id) => ({ id, group: 'b' })),
      ])
      expect(ids(await poll(queue))).to.deep.equal(['a1', 'b1'])
      await change(queue, { groupConcurrency: '2' })
      expect(await queue.published()).to.include('0')
      expect(ids(await poll(queue))).to.have.members(['a2', 'b2'])
      expect(ids(await poll(queue))).to.deep.equal([])
      await change(queue, { groupConcurrency: '' })
      expect(ids(await poll(queue))).to.deep.equal(['a3'])
    })

    it('keep to a lowered one from the next claim on', async () => {
      const queue = await made({ groupConcurrency: '3' })
      await add(
        queue,
        ['a1', 'a2', 'a3', 'a4'].map((id) => ({ id, group: 'a' })),
      )
      const held = await poll(queue, { count: 2 })
      await change(queue, { groupConcurrency: '1' })
      expect(ids(await poll(queue))).to.deep.equal([])
      await acknowledge(queue, { messages: held.messages.slice(0, 1) })
      expect(ids(await poll(queue))).to.deep.equal([])
      await acknowledge(queue, { messages: held.messages.slice(1) })
      expect(ids(await poll(queue))).to.deep.equal(['a3'])
    })

    it('have the time that a new rate gives them, and no time without a rate', async () => {
      const queue = await made({ groupRateLimit: '1/60000' })
      await add(
        queue,
        ['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })),
      )
      await acknowledge(queue, await poll(queue))
      expect((await left(queue)).wakes).to.deep.equal([['a', `${NOW + 60_001}`]])
      await change(queue, { groupRateLimit: '1/10000' })
      expect((await left(queue)).wakes).to.deep.equal([['a', `${NOW + 10_001}`]])
      expect(await queue.published()).to.deep.equal(['0'])
      await change(queue, { groupRateLimit: '' })
      expect(ids(await poll(queue))).to.deep.equal(['a2', 'a3'])
    })

    it('lose claims that no consumer has, where there are no claims at all', async () => {
      const queue = await made({ groupConcurrency: '2' })
      await add(
        queue,
        ['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })),
      )
      await poll(queue)
      await rig.redis.unlink(queue.keys.inFlight)
      expect(ids(await poll(queue))).to.deep.equal([])
      await change(queue, { groupConcurrency: '3' })
      expect((await left(queue)).groups).to.deep.equal({})
      expect(ids(await poll(queue))).to.deep.equal(['a3'])
    })

    it('and are paused stay so', async () => {
      const queue = await made({ groupConcurrency: '1' })
      await add(queue, [
        { id: 'a1', group: 'a' },
        { id: 'a2', group: 'a' },
      ])
      await poll(queue)
      await rig.redis.zadd(queue.keys.groupPauses, 0, 'a')
      await change(queue, { groupConcurrency: '2' })
      expect(await left(queue)).to.deep.include({ turns: [], wakes: [] })
    })

    it('are looked at in pages, 3,000 of them', async () => {
      const queue = await made({ groupConcurrency: '1' })
      for (let from = 0; from < 3_000; from += 500)
        await add(
          queue,
          Array.from({ length: 1_000 }, (_, n) => ({ id: `${from}-${n}`, group: `g${from + (n >> 1)}` })),
        )
      for (let n = 0; n < 20; n++) await poll(queue, { count: 500, visibilityMs: 60_000 })
      expect((await left(queue)).turns).to.deep.equal([])
      expect(await change(queue, { groupConcurrency: '2' })).to.be.greaterThan(3_000 / 300)
      expect((await left(queue)).turns).to.have.length(3_000)
    })
  })

  describe('are counted', () => {
    const counts = (queue: ReliableFixture, groups: readonly string[], nowMs = NOW) =>
      run(rig.sender, countGroups, queue.keys, { nowMs, names: groups.map((group) => Buffer.from(group)) })

    async function list(queue: ReliableFixture, count = 100): Promise<string[]> {
      const names: string[] = []
      let cursor = Buffer.alloc(0)
      for (let pages = 0; pages < 1_000; pages++) {
        const reply = await run(rig.sender, listGroups, queue.keys, { cursor, count })
        names.push(...reply.names.map(String))
        cursor = Buffer.from(reply.cursor)
        if (cursor.length === 0) return names
      }
      throw new Error('the pages have no end')
    }

    it('by the state of their messages', async () => {
      const queue = await made({ groupConcurrency: '2', groupRateLimit: '5/1000' })
      await add(queue, [
        ...['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })),
        { id: 'a4', group: 'a', at: NOW + 1 },
        { id: 'ab', group: 'ab' },
        { id: 'b1', group: 'b', at: NOW + 1 },
      ])
      await poll(queue, { count: 3 })
      await rig.redis.zadd(queue.keys.groupPauses, 0, 'b')
      const none = { visible: 0, delayed: 0, inFlight: 0, delivered: 0, paused: false }
      expect(await counts(queue, ['a', 'ab', 'b', 'c'])).to.deep.equal([
        { ...none, visible: 1, delayed: 1, inFlight: 2, delivered: 2 },
        { ...none, inFlight: 1, delivered: 1 },
        { ...none, delayed: 1, paused: true },
        none,
      ])
      expect((await counts(queue, ['a'], NOW + 1_002))[0]).to.include({ visible: 2, delayed: 0, delivered: 0 })
    })

    describe('in all', () => {
      const all = (queue: ReliableFixture, nowMs = NOW, most = 500) =>
        run(rig.sender, totals, queue.keys, { nowMs, most })

      it('nothing of an empty queue', async () => {
        expect(await all(await made())).to.deep.equal({
          ...{
            visible: 0,
            paused: 0,
            limited: 0,
            inFlight: 0,
            pausedTasks: 0,
            groups: { ready: 0, later: 0, paused: 0 },
          },
          ...{ batches: { unfinished: 0, finished: 0 }, opensAt: null },
          ...{ completed: 0, addPaused: false, pollPaused: false },
        })
      })

      it('completed messages that are kept and not too old, and the paused operations', async () => {
        const queue = await made()
        const times = [NOW - 1_000, NOW - 500, NOW - 499, NOW]
        await rig.redis.zadd(queue.keys.completedAt, ...times.flatMap((at) => [at, `at ${at}`]))
        expect(await all(queue)).to.include({ completed: 4, addPaused: false, pollPaused: false, inFlight: 0 })
        await rig.redis.hset(queue.keys.config, { keepCompletedFor: '500', addPaused: '1' })
        expect(await all(queue)).to.include({ completed: 3, addPaused: true, pollPaused: false })
        expect(await all(queue, NOW + 1)).to.include({ completed: 2 })
        await rig.redis.hset(queue.keys.config, { keepCompletedFor: 'x', addPaused: '0', pollPaused: '1' })
        expect(await all(queue)).to.include({ completed: 4, addPaused: false, pollPaused: true })
      })

      it('messages held back by limits of groups, and by those of the queue', async () => {
        const queue = await made({ groupConcurrency: '2', groupRateLimit: '3/1000' })
        await add(queue, [
          ...['a1', 'a2', 'a3', 'a4', 'a5'].map((id) => ({ id, group: 'a' })),
          ...['b1', 'b2', 'b3'].map((id) => ({ id, group: 'b' })),
          ...[{ id: 'x' }, { id: 'y' }, { id: 'later', group: 'a', at: NOW + 5 }],
        ])
        // two of each group and both of none can be had
        expect(await all(queue)).to.include({ visible: 10, paused: 0, limited: 4 })
        await rig.redis.hset(queue.keys.config, 'concurrency', '5')
        expect(await all(queue)).to.include({ visible: 10, limited: 5 })
        await rig.redis.hset(queue.keys.config, 'rateLimit', '1/1000')
        expect(await all(queue)).to.include({ visible: 10, limited: 9, opensAt: null })
        await poll(queue)
        expect(await all(queue)).to.include({ visible: 9, limited: 9, opensAt: NOW + 1_000 })
        expect(await all(queue, NOW + 1_000)).to.include({ visible: 10, limited: 9, opensAt: null })
        await rig.redis.hdel(queue.keys.config, 'rateLimit', 'concurrency', 'groupConcurrency')
        // three of each in a second, of which one has been
        expect((await all(queue, NOW + 1_000)).limited).to.equal(3)
        await rig.redis.hset(queue.keys.config, 'pollPaused', '1')
        expect(await all(queue)).to.include({ visible: 9, paused: 9, limited: 0 })
      })

      it('of a group that waits for its time, once that has come', async () => {
        const queue = await made({ groupConcurrency: '1' })
        await add(queue, [
          { id: 'a1', group: 'a', at: NOW + 9 },
          { id: 'a2', group: 'a', at: NOW + 9 },
        ])
        expect(await all(queue)).to.include({ visible: 0, limited: 0 })
        expect(await all(queue, NOW + 9)).to.include({ visible: 2, limited: 1 })
      })

      it('examines at most `most` groups; messages of further groups count as not held back', async () => {
        const queue = await made({ groupConcurrency: '1' })
        const groups = ['a', 'b', 'c'].flatMap((group) => [1, 2, 3].map((n) => ({ id: `${group}${n}`, group })))
        await add(queue, groups)
        expect((await all(queue)).limited).to.equal(6)
        expect((await all(queue, NOW, 2)).limited).to.equal(4)
        for (const group of ['b', 'c']) await rig.redis.zadd(queue.keys.groupPauses, 0, group)
        expect(await all(queue)).to.include({ paused: 6, limited: 2 })
        expect((await all(queue, NOW, 1)).paused).to.equal(3)
      })

      it('and skips values of other programs', async () => {
        const queue = await made({ groupConcurrency: '1' })
        await add(queue, [{ id: 'a1', group: 'a' }])
        await rig.redis.hset(queue.keys.batches, 'n', 'x'.repeat(1_000_000))
        await rig.redis.zadd(queue.keys.groupTurns, 1, 'y'.repeat(300))
        await rig.redis.zadd(queue.keys.groupPauses, 0, 'z'.repeat(300))
        await rig.redis.hset(queue.keys.groups, 'a', '9'.repeat(2_000))
        expect(await all(queue)).to.deep.include({ visible: 1, limited: 0, batches: { unfinished: 0, finished: 0 } })
      })
    })

    it('with values of other programs counted as 0', async () => {
      const queue = await made()
      await rig.redis.hset(queue.keys.groups, 'a', '9'.repeat(20), 'b', 'x'.repeat(2_000), 'c', '')
      expect((await counts(queue, ['a', 'b', 'c'])).map(({ inFlight }) => inFlight)).to.deep.equal([0, 0, 0])
    })

    it('as numbers in their range, whatever another program wrote as their rate', async () => {
      const queue = await made({ groupRateLimit: '5/1000' })
      await rig.redis.hset(queue.keys.groups, 'a', `0 ${`${'9'.repeat(16)}@${NOW} `.repeat(3)}`)
      expect((await counts(queue, ['a'])).map(({ delivered }) => delivered)).to.deep.equal([3_000_000])
    })

    for (const count of [1, 2, 100])
      it(`and listed, each once, in pages of ${count}`, async () => {
        const queue = await made({ groupConcurrency: '1' })
        await add(queue, [
          ...['a1', 'a2', 'a3'].map((id) => ({ id, group: 'a' })),
          { id: 'h1', group: 'held' },
          { id: 'l1', group: 'later', at: NOW + 50 },
          { id: 'x' },
        ])
        await poll(queue)
        for (const group of ['a', 'idle', 'idle 2']) await rig.redis.zadd(queue.keys.groupPauses, 0, group)
        const names = await list(queue, count)
        expect(names.slice(0, 2)).to.deep.equal(['a', 'later'])
        expect(names).to.have.members(['a', 'later', 'held', 'idle', 'idle 2'])
      })

    it('and listed to the end, whatever another program wrote', async () => {
      const queue = await made()
      await add(queue, [
        { id: 'a1', group: 'a' },
        { id: 'b1', group: 'b' },
      ])
      const forged = [
        '',
        '\0',
        '\u0001',
        '\u0001a',
        '\u0001a:',
        '\u0001a\uffff',
        '\u0001azzz',
        '\u0005ab',
        'zzz',
        '\u00ff',
      ]
      await rig.redis.zadd(queue.keys.groupOrder, ...forged.flatMap((member) => [0, member]))
      await rig.redis.hset(queue.keys.groups, '', 'x', 'y'.repeat(300), 'x')
      await rig.redis.zadd(queue.keys.groupPauses, 0, '', 0, 'z'.repeat(300))
      for (const count of [1, 3, 100]) expect(await list(queue, count)).to.include.members(['a', 'b'])
    })

    it('and their claims compared with the actual ones', async () => {
      const queue = await made()
      const claims = (most = 1_000) =>
        run(rig.sender, lostClaims, { inFlight: queue.keys.inFlight, groups: queue.keys.groups }, { most })
      expect(await claims()).to.deep.equal({ counted: 0, held: 0, group: '', most: 0 })
      await add(
        queue,
        ['a1', 'a2', 'b1'].map((id) => ({ id, group: id.slice(0, 1) })),
      )
      await poll(queue)
      expect(await claims()).to.deep.equal({ counted: 3, held: 3, group: 'a', most: 2 })
      await rig.redis.hset(queue.keys.groups, 'b', '7 ', 'c', '9'.repeat(30), 'd', 'x'.repeat(5_000))
      expect(await claims()).to.deep.equal({ counted: 9, held: 3, group: 'b', most: 7 })
      expect(await claims(3)).to.equal(null)
    })
  })

  describe('that are paused', () => {
    const pause = (queue: ReliableFixture, group: string, isPaused = true, nowMs = NOW): Promise<boolean> =>
      run(rig.sender, pauseGroup, queue.keys, {
        channel: queue.channel,
        nowMs,
        pause: isPaused,
        group: Buffer.from(group),
      })
    const paused = async (queue: ReliableFixture) => (await queue.read()).queue.groupPauses ?? []

    it('have no turn, while others continue', async () => {
      const queue = await made()
      await add(queue, [
        { id: 'a1', group: 'a' },
        { id: 'b1', group: 'b' },
      ])
      expect(await pause(queue, 'a')).to.equal(true)
      expect(await pause(queue, 'a')).to.equal(false)
      expect(await left(queue)).to.deep.include({ turns: ['b'], wakes: [] })
      expect(await paused(queue)).to.deep.equal([['a', '0']])
      const reply = await poll(queue)
      expect(ids(reply)).to.deep.equal(['b1'])
      await acknowledge(queue, reply)
      expect(await poll(queue)).to.include({ next: null, changed: 0 })
    })

    it('get no message that is added, comes back, or is due later, and are examined once for it', async () => {
      const queue = await made({ groupConcurrency: '2' })
      await add(queue, [{ id: 'a1', group: 'a' }])
      const held = await poll(queue)
      await pause(queue, 'a')
      await add(queue, [
        { id: 'a2', group: 'a' },
        { id: 'a3', group: 'a', at: NOW + 9 },
      ])
      expect(await poll(queue)).to.deep.include({ messages: [], changed: 1, next: NOW + 500 })
      await acknowledge(queue, held)
      expect(await poll(queue)).to.deep.include({ messages: [], next: null })
      expect(await poll(queue, { nowMs: NOW + 10 })).to.deep.include({ messages: [], changed: 0, next: null })
      expect(await left(queue)).to.deep.include({ turns: [], wakes: [], groups: {} })
    })

    it('have a turn again at once when they are resumed, which wakes waiting consumers', async () => {
      const queue = await made()
      await pause(queue, 'a')
      await add(queue, [
        { id: 'a1', group: 'a' },
        { id: 'b1', group: 'b' },
      ])
      expect(ids(await poll(queue, { count: 1 }))).to.deep.equal(['b1'])
      await queue.published()
      expect(await pause(queue, 'a', false)).to.equal(true)
      expect(await queue.published()).to.deep.equal(['0'])
      expect(ids(await poll(queue))).to.deep.equal(['a1'])
      expect(await pause(queue, 'a', false)).to.equal(false)
      expect(await queue.published()).to.have.length(1) // of the poll alone
      expect(await paused(queue)).to.deep.equal([])
    })

    it('have their turn when they are resumed once more, where an error came after the first time', async () => {
      const queue = await made()
      await pause(queue, 'a')
      await add(queue, [{ id: 'a1', group: 'a' }])
      await poll(queue)
      await rig.redis.set(queue.keys.groups, 'text')
      expect(await rejection(pause(queue, 'a', false))).to.have.property('code', 'ERR_WRONG_TYPE')
      await rig.redis.del(queue.keys.groups)
      expect(await paused(queue)).to.deep.equal([])
      await queue.published()
      expect(await pause(queue, 'a', false)).to.equal(false)
      expect(await queue.published()).to.deep.equal(['0'])
      expect(ids(await poll(queue))).to.deep.equal(['a1'])
    })

    it('wait for their time and their limits as before when they are resumed', async () => {
      const queue = await made({ groupConcurrency: '1' })
      await add(queue, [
        { id: 'a1', group: 'a' },
        { id: 'a2', group: 'a' },
        { id: 'b1', group: 'b', at: NOW + 7 },
      ])
      expect(ids(await poll(queue))).to.deep.equal(['a1'])
      for (const group of ['a', 'b']) await pause(queue, group)
      expect(await left(queue)).to.deep.include({ turns: [], wakes: [] })
      for (const group of ['a', 'b']) await pause(queue, group, false)
      expect(await left(queue)).to.deep.include({ turns: [], wakes: [['b', `${NOW + 7}`]] })
      expect(ids(await poll(queue))).to.deep.equal([])
    })

    it('stay so when the queue is cleared', async () => {
      const queue = await made()
      await pause(queue, 'a')
      await run(rig.sender, scripts.clear, queue.keys, { client: 'me' })
      await add(queue, [{ id: 'a1', group: 'a' }])
      expect(ids(await poll(queue))).to.deep.equal([])
    })

    it('cost nothing, 100,000 of them', async () => {
      const queue = await made()
      const groups = Array.from({ length: 100_000 }, (_, n) => `paused ${n}`)
      for (let from = 0; from < groups.length; from += 10_000)
        await rig.redis.zadd(queue.keys.groupPauses, ...groups.slice(from, from + 10_000).flatMap((name) => [0, name]))
      await add(queue, [
        { id: 'x', group: groups[7]! },
        { id: 'y', group: 'b' },
      ])
      expect((await poll(queue)).changed).to.be.below(5)
      await add(queue, [{ id: 'z', group: 'b' }])
      expect((await poll(queue)).changed).to.be.below(5)
    })

    it('hold up no message without a group where their key is of another type', async () => {
      const queue = await made()
      await add(queue, [{ id: 'a1', group: 'a' }, { id: 'x' }])
      await rig.redis.set(queue.keys.groupPauses, 'text')
      const reply = await poll(queue)
      expect(ids(reply)).to.deep.equal(['x'])
      expect(reply.problem).to.include('the groups')
    })
  })
})
