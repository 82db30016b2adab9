import { expect } from 'chai'
import * as changeScripts from '../../src/store/reliable-change-scripts.js'
import * as scripts from '../../src/store/reliable-scripts.js'
import { run, type Sender } from '../../src/store/run.js'
import { eventually } from '../support/events.js'
import {
  groupKeysOf,
  handled,
  having,
  NOW,
  record,
  useReliable,
  type ReliableFixture,
  type State,
} from './reliable-support.js'
import { raw, rejection } from './support.js'

const client = 'me'
const REMOVED = { isRemoved: true, from: '' }
const NONE = { isRemoved: false, from: '' }
const ON = 'r,1000,,0,epoch'
const WITH_RECORDS = 'r,1000,,1,epoch'
const FOR_GROUPS = 'g,3,,0,epoch'

type Pair = readonly [id: string, claim: string, priority?: number]
type Call = (sender: Sender, queue: ReliableFixture) => Promise<unknown>

const add =
  (items: readonly string[], more: { existing?: string; nowMs?: number } = {}): Call =>
  (sender, { keys, channel }) =>
    run(sender, scripts.add, keys, {
      ...{
        channel,
        nowMs: NOW,
        existing: 'keep',
        sentAgoMs: -1,
        durable: false,
        batch: '',
        client,
        items: items.map(raw),
      },
      ...more,
    })

const poll =
  (more: { count?: number; beforehand?: boolean; visibilityMs?: number } = {}): Call =>
  (sender, { keys, channel, deadChannel }) =>
    run(sender, scripts.poll, keys, {
      ...{ channel, deadChannel, nowMs: NOW, budgetUs: 10_000_000, count: 10, visibilityMs: 50, token: 't', idleMs: 1 },
      ...{ announce: false, beforehand: false, repeatBytes: 1000, client },
      ...more,
    })

const giveBack =
  (how: string, reason: string, ...pairs: readonly Pair[]): Call =>
  (sender, { keys, channel, deadChannel }) =>
    run(sender, scripts.negativeAcknowledge, keys, {
      ...{ channel, deadChannel, nowMs: NOW, how, delayMs: 7, reason, client },
      handled: handled(...pairs),
    })

const acknowledge =
  (...pairs: readonly Pair[]): Call =>
  (sender, { keys }) =>
    run(sender, scripts.acknowledge, keys, { nowMs: NOW, client, withResults: false, handled: handled(...pairs) })

const move =
  (isRedriven: boolean): Call =>
  (sender, { keys, dead, channel }) =>
    run(
      sender,
      scripts.move,
      {
        ...{ messages: dead.messages, deliveries: dead.deliveries, failures: dead.failures, due: dead.due0 },
        ...{ config: dead.config, changes: dead.changes, completed: dead.completed, completedAt: dead.completedAt },
        ...{ targetMessages: keys.messages, targetDue: keys.due0, targetConfig: keys.config },
        targetChanges: keys.changes,
        ...groupKeysOf(dead, keys),
      },
      { targetChannel: channel, nowMs: NOW, count: 9, client, targetName: '"q"', priority: 0, isRedriven, ids: [] },
    )

const remove =
  (...ids: string[]): Call =>
  (sender, { keys }) =>
    run(sender, scripts.remove, keys, { nowMs: NOW, alsoHeld: true, client, ids: ids.map(raw) })

const held = (id: string, attempts = 1) => ({ id, until: NOW + 1, attempts, priority: 3 })

interface Case {
  readonly what: string
  readonly before?: State
  readonly call: Call
  /** The parts of the one entry; none for no entry. */
  readonly says: string
  /** The same of the dead letters. */
  readonly dead?: string
  readonly setting?: string
}

const CASES: readonly Case[] = [
  {
    what: 'add: those alike together, others apart',
    call: add(['a1', '2,5,,,0,,', 'A', 'a2', '2,5,,,0,,', 'A', 'a', '2,5,,,0,,', 'A', 'b', '0,@1,,,0,,', 'B']),
    says: `a,,${NOW + 5},2,2,2,0\na1a2a,,${NOW + 5},2,1,1,0\naa,,${NOW},0,1,1,0\nb`,
  },
  {
    what: 'add with records',
    setting: WITH_RECORDS,
    call: add(['a', '0,0,9,,0,,', 'A']),
    says: `a,,${NOW},0,1,1,12\n\x0a${NOW + 9},,0Aa`,
  },
  {
    what: 'add of what is there',
    before: having([{ id: 'a' }]),
    call: add(['a', '0,0,,,0,,', 'A']),
    says: '',
  },
  {
    what: 'add in the place of another',
    before: having([held('a', 4)]),
    call: add(['a', '1,0,,,0,,', 'A'], { existing: 'replace' }),
    says: `a,,${NOW},1,1,1,0\na`,
  },
  {
    what: 'add that postpones',
    before: having([{ id: 'a', priority: 4, at: NOW + 1, expires: NOW + 2 }]),
    call: add(['a', '1,10,,,0,,', 'A'], { existing: 'postpone' }),
    says: `r,,${NOW + 10},4,1,1,7\n${NOW + 11}a`,
  },
  {
    what: 'poll',
    before: having([
      { id: 'a', priority: 9 },
      { id: 'b', attempts: 2 },
      { id: 'c', attempts: 2 },
      { id: 'later', at: NOW + 1 },
    ]),
    call: poll(),
    says: `p,1,${NOW + 50},9,1,1,0\nap,3,${NOW + 50},0,1,2,0\nbc`,
  },
  { what: 'poll of nothing', call: poll(), says: '' },
  {
    what: 'poll: what was not acknowledged in time, what has expired, what was delivered too often',
    before: having([
      { id: 'ended', until: NOW - 1, attempts: 1 },
      { id: 'over', expires: NOW },
      { id: 'often', attempts: 3, limit: 3, at: NOW - 5 },
    ]),
    call: poll(),
    says:
      `f,1,${NOW - 1},,5,1,22\n"its visibility ended"ended` +
      `d,3,,,5,1,0\noftenp,2,${NOW + 50},0,5,1,0\nendede,,,,4,1,0\nover`,
    dead: `a,,${NOW},0,5,1,0\noften`,
  },
  {
    what: 'poll: what a caller had taken beforehand and not begun',
    before: having([{ id: 'a', until: `${NOW - 1}.75`, attempts: 3 }]),
    call: poll({ count: 0 }),
    says: `l,2,${NOW},,1,1,0\na`,
  },
  {
    what: 'poll beforehand',
    before: having([{ id: 'a' }]),
    call: poll({ beforehand: true }),
    says: `p,1,${NOW + 50},0,1,1,0\na`,
  },
  {
    what: 'acknowledge: what was the caller’s',
    before: having([held('a1'), held('a2'), { ...held('b'), until: NOW }]),
    call: acknowledge(['a1', '1 t', 3], ['b', '1 t', 3], ['a2', '1 t', 3], ['a1', '1 t', 3]),
    says: 'k,,,,2,2,0\na1a2',
  },
  {
    what: 'acknowledge: nothing was the caller’s',
    before: having([held('a')]),
    call: acknowledge(['a', '2 t', 3]),
    says: '',
  },
  {
    what: 'give back as failed, and as often as it may',
    before: having([held('a', 2), { ...held('b', 2), limit: 2 }]),
    call: giveBack('failed', '"why"', ['a', '2 t', 3], ['b', '2 t', 3]),
    says: `f,2,${NOW + 7},,1,1,5\n"why"ad,2,,,1,1,5\n"why"b`,
    dead: `a,,${NOW},0,1,1,0\nb`,
  },
  {
    what: 'give back as released',
    before: having([held('a', 2)]),
    call: giveBack('released', '"why"', ['a', '2 t', 3]),
    says: `l,1,${NOW + 7},,1,1,0\na`,
  },
  {
    what: 'reject',
    before: having([held('a', 2)], { config: [['deadLetters', '0']] }),
    call: giveBack('rejected', '"why"', ['a', '2 t', 3]),
    says: 'd,2,,,1,1,5\n"why"a',
  },
  {
    what: 'remove',
    before: having([{ id: 'a' }, held('b')]),
    call: remove('a', 'none', 'b'),
    says: 'x,,,,1,2,0\nab',
  },
  {
    what: 'reschedule',
    before: having([{ id: 'a', expires: NOW + 1 }]),
    call: (sender, { keys, channel }) =>
      run(sender, scripts.reschedule, keys, { channel, nowMs: NOW, id: raw('a'), when: '3', priority: 5, client }),
    says: `r,,${NOW + 3},5,1,1,7\n${NOW + 4}a`,
  },
  {
    what: 'update with a record',
    before: having([{ id: 'a', headers: '{}' }]),
    setting: WITH_RECORDS,
    call: (sender, { keys }) =>
      run(sender, scripts.update, keys, { nowMs: NOW, id: raw('a'), payload: raw('new'), client }),
    says: `u,,,,1,1,${record('new', { headers: '{}' }).length}\n\x03,,2{}newa`,
  },
  {
    what: 'a repeat: what goes and what comes',
    before: having([{ id: 'old', at: NOW + 9 }, { id: 'there' }]),
    call: (sender, { keys, channel }) =>
      run(sender, scripts.repeat, keys, {
        ...{
          channel,
          nowMs: NOW,
          computedAt: NOW,
          name: raw('r'),
          expected: raw(''),
          value: raw('v'),
          at: '',
          priority: 6,
        },
        ...{ withdrawn: raw('old'), client, items: ['new', String(NOW + 2), '\0N', 'there', '1', '\0T'].map(raw) },
      }),
    says: `x,,,,3,1,0\nolda,,${NOW + 2},6,3,1,0\nnew`,
  },
  {
    what: 'move: both queues record it',
    before: { dead: having([{ id: 'a' }, { id: 'b' }]) },
    call: move(false),
    says: `a,,${NOW},0,1,2,0\nab`,
    dead: 'm,,,,1,2,3\n"q"ab',
  },
  {
    what: 'redrive: both queues record it',
    before: { dead: having([{ id: 'a' }]) },
    call: move(true),
    says: `b,,${NOW},0,1,1,0\na`,
    dead: 'm,,,,1,1,3\n"q"a',
  },
  {
    what: 'clear',
    before: having([{ id: 'a' }, held('b')]),
    call: (sender, { keys }) => run(sender, scripts.clear, keys, { client }),
    says: 'c,,,,0,1,0\n',
  },
  {
    what: 'clear of nothing',
    call: (sender, { keys }) => run(sender, scripts.clear, keys, { client }),
    says: '',
  },
]

function keeping(state: State = {}, setting: string | undefined): State {
  if (setting === undefined) return state
  const changes = [['changes', setting]] as const
  return {
    ...state,
    config: [...(state.config ?? []), ...changes],
    dead: { ...state.dead, config: [...(state.dead?.config ?? []), ...changes] },
  }
}

const asEntries = (says = ''): string[] => (says === '' ? [] : [`epoch ${client}\n${says}`])

describe('the change stream', () => {
  const rig = useReliable()

  describe('one entry for each script call', () => {
    for (const { what, before, call, says, dead, setting = ON } of CASES) {
      it(what, async () => {
        const queue = await rig.queue(keeping(before, setting))
        const reply = await call(rig.sender, queue)
        expect(await queue.changes()).to.deep.equal(asEntries(says))
        expect(await queue.changes(queue.dead)).to.deep.equal(asEntries(dead))
        const after = await queue.read()

        const other = await rig.queue(before)
        expect(await call(rig.sender, other), 'the reply without the stream').to.deep.equal(reply)
        expect(await rig.redis.exists(other.keys.changes, other.dead.changes), 'no stream').to.equal(0)
        const without = await other.read()
        delete (after.queue.config as Record<string, string> | undefined)?.['changes']
        delete (after.dead.config as Record<string, string> | undefined)?.['changes']
        for (const side of [after.queue, after.dead])
          if (Object.keys(side.config ?? {}).length === 0) delete side.config
        expect(without, 'the state without the stream').to.deep.equal(after)
      })
    }
  })

  describe('the epoch', () => {
    const epochOf = async (queue: ReliableFixture): Promise<string | undefined> =>
      (await rig.redis.hget(queue.keys.config, 'changes'))?.split(',').at(-1)
    const one = add(['a', '0,0,,,0,,', 'A'])
    const two = add(['b', '0,0,,,0,,', 'B'])

    it('changes when the stream is gone, and is in the entries', async () => {
      const queue = await rig.queue(keeping({}, ON))
      await one(rig.sender, queue)
      expect(await epochOf(queue)).to.equal('epoch')
      await rig.redis.unlink(queue.keys.changes)
      await two(rig.sender, queue)
      const next = await epochOf(queue)
      expect(next).to.match(/^[\da-f]{16}$/)
      expect(await queue.changes()).to.deep.equal([`${next} me\na,,${NOW},0,1,1,0\nb`])
    })

    it('ends when the entry cannot be written, and the work continues', async () => {
      const queue = await rig.queue(having([held('a')], keeping({}, ON)))
      await queue.block('changes')
      expect(await acknowledge(['a', '1 t', 3])(rig.sender, queue)).to.deep.equal([true])
      expect(await epochOf(queue)).to.equal('~epoch')
      await one(rig.sender, queue)
      expect(await epochOf(queue)).to.equal('~epoch')
      await queue.unblock('changes')
      await two(rig.sender, queue)
      const next = await epochOf(queue)
      expect(next).to.match(/^[\da-f]{16}$/)
      expect(await queue.changes()).to.deep.equal([`${next} me\na,,${NOW},0,1,1,0\nb`])
    })

    for (const setting of ['', 'x', 'r,1,', 'r,1000,,2,e', 'g,x,,0,e', `r,1000,,0,${'e'.repeat(100)}`, 'r,1000,,0,é']) {
      it(`nothing is recorded with the setting ${JSON.stringify(setting.slice(0, 20))}`, async () => {
        const queue = await rig.queue({ config: [['changes', setting]] })
        await rig.redis.unlink(queue.keys.changes)
        await one(rig.sender, queue)
        expect(await rig.redis.exists(queue.keys.changes)).to.equal(0)
      })
    }

    it('is kept by `configure`, and begins anew when the stream was turned off', async () => {
      const queue = await rig.queue()
      const set = (settings: string[], epoch: string): Promise<boolean> =>
        run(rig.sender, scripts.configure, queue.keys, { channel: queue.channel, ifAbsent: false, epoch, settings })
      await set(['changes', 'g,1000,,0'], 'first')
      await set(['changes', 'r,500,60000,1', 'delay', '1'], 'second')
      expect(await rig.redis.hgetall(queue.keys.config)).to.deep.equal({ changes: 'r,500,60000,1,first', delay: '1' })
      await one(rig.sender, queue)
      await set(['changes', ''], 'third')
      expect(await rig.redis.exists(queue.keys.changes)).to.equal(0)
      expect(await rig.redis.hgetall(queue.keys.config)).to.deep.equal({ delay: '1' })
      await set(['changes', 'r,500,,0'], 'fourth')
      expect(await epochOf(queue)).to.equal('fourth')
    })
  })

  describe('bounds', () => {
    it('keeps the last changes, and young ones', async () => {
      const queue = await rig.queue(keeping({}, 'r,100,,0,epoch'))
      const call = (n: number) => add([String(n), '0,0,,,0,,', ''])(rig.sender, queue)
      for (let n = 0; n < 450; n++) await call(n)
      expect(await rig.redis.xlen(queue.keys.changes)).to.be.within(100, 300)
      await rig.redis.hset(queue.keys.config, 'changes', 'r,100000,60000,0,epoch')
      await rig.redis.xtrim(queue.keys.changes, 'MAXLEN', 0)
      for (let n = 0; n < 200; n++) await rig.redis.xadd(queue.keys.changes, 'NOMKSTREAM', '*', 'changes', 'x')
      await call(1_000)
      expect(await rig.redis.xlen(queue.keys.changes)).to.be.at.least(200)
      await rig.redis.hset(queue.keys.config, 'changes', 'r,100000,1,0,epoch')
      let next = 1_001
      await eventually(async () => {
        await call(next++)
        expect(await rig.redis.xlen(queue.keys.changes)).to.be.at.most(100)
      })
    })

    it('refuses to add, and nothing else, when the groups are behind', async () => {
      const queue = await rig.queue(
        having([held('h'), { id: 'x' }], keeping({ dead: having([{ id: 'd' }]) }, FOR_GROUPS)),
      )
      const pipeline = rig.redis.pipeline()
      for (let n = 0; n < 3; n++) pipeline.xadd(queue.keys.changes, '*', 'changes', 'x')
      await pipeline.exec()
      const before = await queue.read()
      expect(await add(['a', '0,0,,,0,,', 'A', 'b', '0,0,,,0,,', 'B'])(rig.sender, queue)).to.deep.equal({
        now: NOW,
        outcomes: [-6, -6],
      })
      expect(await move(true)(rig.sender, queue)).to.deep.equal({ moved: -6, passedOver: 0, gone: 0, rest: 0 })
      expect(await queue.read()).to.deep.equal(before)
      expect(await queue.published()).to.deep.equal([])
      expect(await acknowledge(['h', '1 t', 3])(rig.sender, queue)).to.deep.equal([true])
      expect(await rig.redis.xlen(queue.keys.changes)).to.equal(4)
    })

    it('trims the changes that every group has acknowledged, except the last one', async () => {
      const queue = await rig.queue(keeping({}, 'g,100,,0,epoch'))
      const { config, changes } = queue.keys
      const keys = { config, changes }
      for (let n = 0; n < 6; n++) await add([String(n), '0,0,,,0,,', ''])(rig.sender, queue)
      const ids = (await rig.redis.xrange(changes, '-', '+')).map(([id]) => id)
      const left = async (): Promise<number[]> =>
        (await rig.redis.xrange(changes, '-', '+')).map(([id]) => ids.indexOf(id))
      const done = async (group: string, ...which: number[]): Promise<number> => {
        const args = { group, trim: true, ids: which.map((n) => ids[n] ?? '') }
        return (await run(rig.sender, changeScripts.acknowledgeChanges, keys, args)).done
      }
      for (const group of ['one', 'two']) {
        const args = { group, from: 'start', epoch: '', idleMs: 1 }
        expect(await run(rig.sender, changeScripts.openChanges, keys, args)).to.deep.equal({
          outcome: 'ok',
          after: '0-0',
          epoch: 'epoch',
        })
        await rig.redis.xreadgroup('GROUP', group, 'reader', 'COUNT', 4, 'STREAMS', changes, '>')
      }
      expect(await done('one', 0, 1, 3)).to.equal(3)
      expect(await left()).to.deep.equal([0, 1, 2, 3, 4, 5])
      expect(await done('two', 0, 1)).to.equal(2)
      expect(await left()).to.deep.equal([1, 2, 3, 4, 5])
      expect(await done('one', 2)).to.equal(1)
      expect(await done('two', 2, 3, 3, 0)).to.equal(2)
      expect(await left()).to.deep.equal([3, 4, 5])
      await rig.redis.xreadgroup('GROUP', 'one', 'reader', 'COUNT', 4, 'STREAMS', changes, '>')
      expect(await done('one', 4, 5)).to.equal(2)
      expect(await left()).to.deep.equal([3, 4, 5])
      const status = await run(rig.sender, changeScripts.changeStatus, keys, {})
      expect(status).to.deep.include({ epoch: 'epoch', first: ids[3], last: ids[5], length: 3, limit: 100 })
      expect(
        status.groups.map(({ name, pending, oldest, consumers }) => [name, pending, oldest, consumers]),
      ).to.deep.equal([
        ['one', 0, null, 1],
        ['two', 0, null, 1],
      ])
      const remove = { group: 'two', from: '', most: 1_000 }
      expect(await run(rig.sender, changeScripts.removeChangeGroup, keys, remove)).to.deep.equal(REMOVED)
      expect(await left()).to.deep.equal([5])
      expect(await run(rig.sender, changeScripts.removeChangeGroup, keys, remove)).to.deep.equal(NONE)
    })
  })

  describe('changes kept for groups', () => {
    async function read(counts: Record<string, number>, setting = 'g,100,,0,epoch') {
      const queue = await rig.queue(keeping({}, setting))
      const { config, changes } = queue.keys
      const keys = { config, changes }
      for (let n = 0; n < 3; n++) await add([String(n), '0,0,,,0,,', ''])(rig.sender, queue)
      const ids = (await rig.redis.xrange(changes, '-', '+')).map(([id]) => id)
      const left = async (): Promise<number[]> =>
        (await rig.redis.xrange(changes, '-', '+')).map(([id]) => ids.indexOf(id))
      const done = async (group: string, ...which: number[]): Promise<number> => {
        const args = { group, trim: true, ids: which.map((n) => ids[n] ?? '') }
        return (await run(rig.sender, changeScripts.acknowledgeChanges, keys, args)).done
      }
      for (const [group, count] of Object.entries(counts)) {
        await run(rig.sender, changeScripts.openChanges, keys, { group, from: 'start', epoch: '', idleMs: 1_000_000 })
        await rig.redis.xreadgroup('GROUP', group, 'reader', 'COUNT', count, 'STREAMS', changes, '>')
      }
      return { queue, keys, left, done }
    }

    for (const [ready, busy] of [
      ['a', 'b'],
      ['b', 'a'],
    ] as const) {
      it(`the entry before the one where two groups meet: ${ready} has acknowledged it, ${busy} has not`, async () => {
        const { left, done } = await read({ a: 2, b: 2 })
        await done(ready, 0, 1)
        await done(busy, 0)
        expect(await left()).to.deep.equal([0, 1, 2])
        await done(busy, 1)
        expect(await left()).to.deep.equal([1, 2])
      })
    }

    it('goes with the last of them, so that adding is allowed again', async () => {
      const { queue, keys, left } = await read({ a: 1 }, FOR_GROUPS)
      const more = add(['more', '0,0,,,0,,', ''])
      expect(await more(rig.sender, queue)).to.deep.include({ outcomes: [-6] })
      const remove = (group: string) =>
        run(rig.sender, changeScripts.removeChangeGroup, keys, { group, from: '', most: 1_000 })
      expect(await remove('none')).to.deep.equal(NONE)
      expect(await left()).to.deep.equal([0, 1, 2])
      expect(await remove('a')).to.deep.equal(REMOVED)
      expect(await left()).to.deep.equal([2])
      expect(await more(rig.sender, queue)).to.not.deep.include({ outcomes: [-6] })
      expect(await remove('a')).to.deep.equal(NONE)
      expect(await left(), 'what was added later stays for a group to come').to.have.length(2)
    })

    it('are removed in parts, but not later changes or those that a new group needs', async () => {
      const { keys } = await read({ a: 1 }, 'g,1000000,,0,epoch')
      const pipeline = rig.redis.pipeline()
      for (let n = 0; n < 2_000; n++) pipeline.xadd(keys.changes, '*', 'changes', 'epoch x\n')
      await pipeline.exec()
      const length = () => rig.redis.xlen(keys.changes)
      const remove = (from: string) =>
        run(rig.sender, changeScripts.removeChangeGroup, keys, { group: 'a', from, most: 400 })
      const first = await remove('')
      expect(first.isRemoved).to.equal(true)
      expect(await length()).to.be.within(1_603, 1_803)
      const meanwhile = await rig.redis.xadd(keys.changes, '*', 'changes', 'epoch x\n')
      const second = await remove(first.from)
      expect(second).to.deep.equal({ isRemoved: false, from: first.from })
      const atSecond = await length()
      expect(atSecond).to.be.within(1_204, 1_604)
      await rig.redis.xgroup('CREATE', keys.changes, 'b', '0')
      await rig.redis.xreadgroup('GROUP', 'b', 'reader', 'COUNT', 1, 'STREAMS', keys.changes, '>')
      expect(await remove(second.from)).to.deep.equal(NONE)
      expect(await length()).to.equal(atSecond)
      await rig.redis.xgroup('DESTROY', keys.changes, 'b')
      let { from } = second
      for (let calls = 0; from !== '' && calls < 10; calls++) ({ from } = await remove(from))
      expect(from).to.equal('')
      expect((await rig.redis.xrange(keys.changes, '-', '+')).map(([id]) => id)).to.deep.equal([first.from, meanwhile])
    })

    it('and the shortest time since one of its consumers asked', async () => {
      const { keys } = await read({ a: 1, b: 1 })
      await rig.redis.xgroup('CREATE', keys.changes, 'c', '0')
      const status = () => run(rig.sender, changeScripts.changeStatus, keys, {})
      await eventually(async () => expect((await status()).groups[0]?.idleMs).to.be.at.least(50))
      await rig.redis.xreadgroup('GROUP', 'b', 'another', 'COUNT', 1, 'STREAMS', keys.changes, '>')
      const { groups } = await status()
      const [a, b, c] = groups.map(({ idleMs }) => idleMs)
      expect(a).to.be.at.least(50)
      expect(b).to.be.below(a ?? 0)
      expect(c).to.equal(null)
      const pipeline = rig.redis.pipeline()
      for (let n = 0; n < 1_000; n++) pipeline.xgroup('CREATECONSUMER', keys.changes, 'a', String(n))
      await pipeline.exec()
      const later = await status()
      expect(later.groups.map(({ idleMs }) => idleMs === null)).to.deep.equal([true, false, true])
    })
  })

  describe('where a reader begins', () => {
    const open = async (queue: ReliableFixture, args: { group?: string; from: string; epoch?: string }) => {
      const { config, changes } = queue.keys
      const given = { group: '', epoch: '', idleMs: 0, ...args }
      return run(rig.sender, changeScripts.openChanges, { config, changes }, given)
    }

    it('nowhere when the queue keeps no changes', async () => {
      expect(await open(await rig.queue(), { from: 'start' })).to.deep.equal({ outcome: 'off' })
    })

    it('at the start, at the end, or at a position that is there', async () => {
      const queue = await rig.queue(keeping({}, ON))
      await add(['a', '0,0,,,0,,', ''])(rig.sender, queue)
      await add(['b', '0,0,,,0,,', ''])(rig.sender, queue)
      const [first = '', last = ''] = (await rig.redis.xrange(queue.keys.changes, '-', '+')).map(([id]) => id)
      expect(await open(queue, { from: 'start' })).to.deep.equal({ outcome: 'ok', after: '0-0', epoch: 'epoch' })
      expect(await open(queue, { from: 'end' })).to.deep.equal({ outcome: 'ok', after: last, epoch: 'epoch' })
      const atFirst = { outcome: 'ok', after: first, epoch: 'epoch' }
      expect(await open(queue, { from: first, epoch: 'epoch' })).to.deep.equal(atFirst)
      expect(await open(queue, { from: first, epoch: 'other' })).to.deep.equal({ outcome: 'epoch' })
      const later = `${Number.parseInt(last, 10) + 1}-0`
      expect(await open(queue, { from: later, epoch: 'epoch' })).to.deep.equal({ outcome: 'rewound' })
      await rig.redis.xdel(queue.keys.changes, first)
      expect(await open(queue, { from: first, epoch: 'epoch' })).to.deep.equal({ outcome: 'trimmed' })
    })

    it('a group that was created after the stream was deleted does not hide the deletion', async () => {
      const queue = await rig.queue(keeping({}, ON))
      await rig.redis.unlink(queue.keys.changes)
      const opened = await open(queue, { group: 'g', from: 'start' })
      expect(opened).to.deep.include({ outcome: 'ok', after: '0-0' })
      expect(opened)
        .to.have.property('epoch')
        .that.matches(/^[\da-f]{16}$/)
      expect(await rig.redis.hget(queue.keys.config, 'changes')).to.match(/^r,1000,,0,[\da-f]{16}$/)
    })

    it('removes readers that have ended and have no unacknowledged entries', async () => {
      const queue = await rig.queue(keeping({}, ON))
      await add(['a', '0,0,,,0,,', ''])(rig.sender, queue)
      await open(queue, { group: 'g', from: 'start' })
      await rig.redis.xreadgroup('GROUP', 'g', 'busy', 'COUNT', 9, 'STREAMS', queue.keys.changes, '>')
      await rig.redis.xgroup('CREATECONSUMER', queue.keys.changes, 'g', 'gone')
      await eventually(async () => {
        await open(queue, { group: 'g', from: 'start' })
        const [group] = (await rig.redis.xinfo('GROUPS', queue.keys.changes)) as unknown[][]
        expect(group?.[3]).to.equal(1)
      })
    })

    it('a key of another type is an error', async () => {
      const queue = await rig.queue(keeping({}, ON))
      await queue.block('changes')
      for (const args of [{ from: 'end' }, { from: 'start', group: 'g' }]) {
        expect(await rejection(open(queue, args))).to.include({ code: 'ERR_WRONG_TYPE' })
      }
    })
  })

  describe('reading by pages', () => {
    const read = (
      queue: ReliableFixture,
      args: { after?: string; epoch?: string; count?: number; bytes?: number } = {},
    ) => {
      const { config, changes } = queue.keys
      const given = { after: '0-0', epoch: '', count: 100, bytes: 1_000_000, digest: '', ...args }
      return run(rig.sender, changeScripts.readChanges, { config, changes }, given)
    }
    const release = (queue: ReliableFixture, group: string, id: string): Promise<boolean> => {
      const { config, changes } = queue.keys
      return run(rig.sender, changeScripts.releaseChanges, { config, changes }, { group, id })
    }
    const idsOf = async (queue: ReliableFixture): Promise<string[]> =>
      (await rig.redis.xrange(queue.keys.changes, '-', '+')).map(([id]) => id)
    const readIds = async (...args: Parameters<typeof read>): Promise<string[]> =>
      (await read(...args)).entries.map((entry) => String((entry as unknown[])[0]))
    const filled = async (setting: string, count = 30): Promise<ReliableFixture> => {
      const queue = await rig.queue(keeping({}, setting))
      for (let n = 0; n < count; n++) await add([String(n), '0,0,,,0,,', ''])(rig.sender, queue)
      return queue
    }

    it('has nothing when the queue keeps no changes', async () => {
      expect(await read(await rig.queue())).to.deep.equal({ status: 'off', epoch: null, last: null, entries: [] })
    })

    it('has nothing before the first change', async () => {
      const queue = await rig.queue(keeping({}, ON))
      await rig.redis.unlink(queue.keys.changes)
      const nothing = { status: 'ok', epoch: 'epoch', last: null, entries: [] }
      expect(await read(queue)).to.deep.equal(nothing)
      expect(await read(queue, { epoch: 'epoch' })).to.deep.equal(nothing)
    })

    it('has the entries after one, in order, at most `count`', async () => {
      const queue = await filled(ON)
      const ids = await idsOf(queue)
      expect(await readIds(queue)).to.deep.equal(ids)
      expect(await readIds(queue, { after: ids[3] ?? '', epoch: 'epoch', count: 11 })).to.deep.equal(ids.slice(4, 15))
      expect(await readIds(queue, { after: ids[3] ?? '', count: 1 })).to.deep.equal([ids[4]])
      const atEnd = await read(queue, { after: ids[29] ?? '', epoch: 'epoch' })
      expect(atEnd).to.deep.equal({ status: 'ok', epoch: 'epoch', last: ids[29], entries: [] })
    })

    it('ends with the entry that makes it too long', async () => {
      const queue = await filled(ON)
      const ids = await idsOf(queue)
      const [[, fields] = ['', []]] = await rig.redis.xrange(queue.keys.changes, '-', '+', 'COUNT', 1)
      const size = fields.join('').length
      expect(await readIds(queue, { bytes: 1 })).to.deep.equal([ids[0]])
      expect(await readIds(queue, { bytes: 2 * size })).to.deep.equal(ids.slice(0, 2))
      expect(await readIds(queue, { bytes: 9 * size + 1 })).to.deep.equal(ids.slice(0, 10))
    })

    it('reports that the entry is gone, and why', async () => {
      const queue = await filled(ON, 3)
      const [first = '', second = '', last = ''] = await idsOf(queue)
      const reading = async (after: string, epoch: string): Promise<unknown> => {
        const { status, last: newest, entries } = await read(queue, { after, epoch })
        return [status, newest, entries.length]
      }
      expect(await reading(first, 'epoch')).to.deep.equal(['ok', last, 2])
      expect(await reading(first, 'other')).to.deep.equal(['epoch', last, 0])
      expect(await reading(`${Number.parseInt(last, 10) + 1}-0`, 'epoch')).to.deep.equal(['rewound', last, 0])
      await rig.redis.xdel(queue.keys.changes, second)
      expect(await reading(second, 'epoch')).to.deep.equal(['trimmed', last, 0])
      await rig.redis.unlink(queue.keys.changes)
      expect(await reading(first, 'epoch')).to.deep.equal(['rewound', null, 0])
    })

    it('removes the entries that all groups have, except the last of these', async () => {
      const queue = await filled('g,100,,0,epoch', 6)
      const ids = await idsOf(queue)
      expect(await release(queue, 'one', '0-0')).to.equal(true)
      expect(await release(queue, 'two', '0-0')).to.equal(true)
      expect(await release(queue, 'one', ids[4] ?? '')).to.equal(true)
      expect(await idsOf(queue)).to.deep.equal(ids)
      expect(await release(queue, 'two', ids[2] ?? '')).to.equal(true)
      expect(await idsOf(queue)).to.deep.equal(ids.slice(2))
      expect((await read(queue, { after: ids[2] ?? '', epoch: 'epoch' })).status).to.equal('ok')
      expect(await release(queue, 'two', ids[5] ?? '')).to.equal(true)
      expect(await idsOf(queue)).to.deep.equal(ids.slice(4))
      const { config, changes } = queue.keys
      const { groups } = await run(rig.sender, changeScripts.changeStatus, { config, changes }, {})
      expect(groups.map(({ name, pending, consumers }) => [name, pending, consumers])).to.deep.equal([
        ['one', 0, 1],
        ['two', 0, 1],
      ])
      for (const { idleMs } of groups) expect(idleMs).to.be.within(0, 60_000)
      await release(queue, 'one', ids[5] ?? '')
      const after = await run(rig.sender, changeScripts.changeStatus, { config, changes }, {})
      expect(after.groups.map(({ lag }) => lag ?? 0)).to.deep.equal([0, 0])
    })

    it('releases entries where another program has set their count too high', async () => {
      const queue = await filled('g,100,,0,epoch', 3)
      const ids = await idsOf(queue)
      const counts = ['ENTRIESADDED', '9223372036854775807', 'MAXDELETEDID', '0-0']
      const set = rig.redis.call('XSETID', queue.keys.changes, ids[2] ?? '', ...counts)
      // before Redis 7 there is no such count
      await set.catch((error: Error) => expect(error.message).to.match(/syntax error|wrong number of arguments/))
      expect(await release(queue, 'g', ids[1] ?? '')).to.equal(true)
      expect(await idsOf(queue)).to.deep.equal(ids.slice(1))
    })

    it('goes no step back, and to no entry that is not there', async () => {
      const queue = await filled('g,100,,0,epoch', 5)
      const ids = await idsOf(queue)
      expect(await release(queue, 'g', ids[3] ?? '')).to.equal(true)
      expect(await idsOf(queue)).to.deep.equal(ids.slice(3))
      for (const id of [ids[3] ?? '', ids[1] ?? '', '0-0', `${Number.parseInt(ids[4] ?? '', 10) + 9}-0`]) {
        expect(await release(queue, 'g', id), id).to.equal(false)
      }
      expect(await idsOf(queue)).to.deep.equal(ids.slice(3))
    })

    it('a group does not hide that the stream went', async () => {
      const queue = await filled('g,100,,0,epoch', 1)
      const [id = ''] = await idsOf(queue)
      await rig.redis.unlink(queue.keys.changes)
      expect(await release(queue, 'g', id)).to.equal(false)
      expect(await rig.redis.exists(queue.keys.changes)).to.equal(0)
      expect(await release(queue, 'g', '0-0')).to.equal(true)
      expect((await read(queue, { after: id, epoch: 'epoch' })).status).to.equal('epoch')
    })

    it('makes no group when the queue keeps no changes', async () => {
      const queue = await rig.queue()
      expect(await release(queue, 'g', '0-0')).to.equal(false)
      expect(await rig.redis.exists(queue.keys.changes)).to.equal(0)
    })

    it('leaves the stream of the last ones as it is', async () => {
      const queue = await filled(ON, 4)
      const ids = await idsOf(queue)
      expect(await release(queue, 'g', ids[3] ?? '')).to.equal(true)
      expect(await idsOf(queue)).to.deep.equal(ids)
    })

    it('a key of another type is an error', async () => {
      const queue = await rig.queue(keeping({}, ON))
      await queue.block('changes')
      expect(await rejection(read(queue))).to.include({ code: 'ERR_WRONG_TYPE' })
      expect(await rejection(release(queue, 'g', '0-0'))).to.include({ code: 'ERR_WRONG_TYPE' })
    })
  })

  it('counts entries of other programs among the last ones', async () => {
    const queue = await rig.queue(keeping({}, ON))
    await add(['a', '0,0,,,0,,', ''])(rig.sender, queue)
    await rig.redis.xadd(queue.keys.changes, '*', 'changes', 'nonsense')
    await rig.redis.xadd(queue.keys.changes, '*', 'a', 'b', 'c', 'd')
    const { changes } = queue.keys
    expect(await run(rig.sender, changeScripts.inspectChanges, { changes }, { count: 10 })).to.deep.equal({
      examined: 3,
      foreign: 2,
    })
  })

  it('a setting that no version writes keeps nothing, and refuses nothing', async () => {
    for (const setting of [
      'g,0,,0,e',
      `r,${'9'.repeat(26)},,0,e`,
      'r,100000001,,0,e',
      `r,1000,${'9'.repeat(17)},0,e`,
    ]) {
      const queue = await rig.queue(keeping({}, setting))
      const before = await rig.redis.xlen(queue.keys.changes)
      const added = await add(['a', '0,0,,,0,,', ''])(rig.sender, queue)
      expect(added, setting).to.have.deep.property('outcomes').that.does.not.include(-6)
      const { config, changes } = queue.keys
      expect(await run(rig.sender, changeScripts.changeStatus, { config, changes }, {}), setting).to.include({
        epoch: null,
        limit: null,
        length: before,
      })
    }
  })

  it('a stream with ids that come from no clock begins anew', async () => {
    const most = '18446744073709551615'
    for (const id of [
      `${most}-${most}`,
      '18446744073709551614-5',
      '18446744073709551615-1',
      '10000000000000-0',
      `1-${most}`,
    ]) {
      for (const setting of [ON, FOR_GROUPS]) {
        const queue = await rig.queue(keeping({}, setting))
        const { config, changes } = queue.keys
        await rig.redis.xadd(changes, id, 'any', 'thing')
        if (id.startsWith('1-')) await rig.redis.call('XSETID', changes, `9007199254740991-${most}`)
        await add(['a', '0,0,,,0,,', ''])(rig.sender, queue)
        const entries = await rig.redis.xrange(changes, '-', '+')
        expect(entries, id).to.have.length(1)
        const epoch = (await rig.redis.hget(config, 'changes'))?.split(',')[4]
        expect(epoch, id).to.match(/^[\da-f]{16}$/)
        expect(entries[0]?.[1][1], id).to.equal(`${epoch} me\na,,1000,0,1,1,0\na`.replace('1000', String(NOW)))
        expect(entries[0]?.[0], id).to.match(/^\d{13}-\d$/)
      }
    }
  })

  describe('a page of entries', () => {
    async function filled(sizes: readonly number[]) {
      const queue = await rig.queue(keeping({}, ON))
      for (const size of sizes) await rig.redis.xadd(queue.keys.changes, '*', 'changes', 'x'.repeat(size))
      await rig.redis.xgroup('CREATE', queue.keys.changes, 'g', '0')
      const read = (group: string, after: string, count = 100, bytes = 1_000) => {
        const args = { group, consumer: 'c', after, count, bytes }
        return run(rig.sender, changeScripts.followChanges, { changes: queue.keys.changes }, args)
      }
      return { queue, read }
    }

    it('ends soon after the bytes that are wanted, for each kind of reader', async () => {
      const { read } = await filled(Array.from({ length: 60 }, (_, n) => (n < 20 ? 1 : 900)))
      for (const [group, after] of [
        ['', '0-0'],
        ['g', '>'],
        ['g', '0-0'],
      ] as const) {
        const page = await read(group, after)
        expect(page.length).to.be.within(22, 28)
        expect(page.map(({ value }) => value?.length)).to.deep.equal(page.map((_, n) => (n < 20 ? 1 : 900)))
      }
      const next = await read('g', '>', 3)
      expect(next).to.have.length(3)
    })

    it('reports entries of other programs and missing ones, without their bytes', async () => {
      const { queue, read } = await filled([1])
      const key = queue.keys.changes
      await rig.redis.xadd(key, '*', 'any', 'thing')
      const id = (await rig.redis.xadd(key, '*', 'changes', 'gone')) ?? ''
      await rig.redis.xadd(key, '*', 'changes', 'x', 'y', 'z')
      expect((await read('g', '>')).map(({ value }) => value?.toString() ?? null)).to.deep.equal([
        'x',
        null,
        'gone',
        null,
      ])
      await rig.redis.xdel(key, id)
      const own = await read('g', '0-0')
      expect(own.map(({ value, isGone }) => [value?.toString() ?? null, isGone])).to.deep.equal([
        ['x', false],
        [null, false],
        [null, true],
        [null, false],
      ])
      expect(await read('', own.at(-1)?.id ?? '')).to.deep.equal([])
    })
  })

  it('more groups than any queue has are counted, and not looked at', async () => {
    const queue = await rig.queue(keeping({}, FOR_GROUPS))
    await add(['a', '0,0,,,0,,', ''])(rig.sender, queue)
    const { config, changes } = queue.keys
    const pipeline = rig.redis.pipeline()
    for (let n = 0; n < 1_001; n++) pipeline.xgroup('CREATE', changes, `g${n}`, '0')
    await pipeline.exec()
    const acknowledged = await run(
      rig.sender,
      changeScripts.acknowledgeChanges,
      { config, changes },
      { group: 'g0', trim: true, ids: [] },
    )
    expect(acknowledged).to.deep.equal({ done: 0, groups: 1_001 })
    const status = await run(rig.sender, changeScripts.changeStatus, { config, changes }, {})
    expect(status).to.deep.include({ groupCount: 1_001, groups: [], length: 1 })
  })
})
