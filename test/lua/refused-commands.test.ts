/**
 * Scripts that move messages, each run once for every command that it calls, as a user who may not call that command. Redis undoes nothing
 * of a script that ends with an error, so the order of its commands decides whether the message still has a place.
 */
import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { EntryIds } from '../../src/codecs/entry-id.js'
import { encodeEntry, WHEEL_ID_BYTES } from '../../src/codecs/entry.js'
import { resolveSettings } from '../../src/options.js'
import { DelayedStore, FIRST_ATTEMPT } from '../../src/store/delayed-store.js'
import { pauseTask } from '../../src/store/reliable-group-scripts.js'
import * as scripts from '../../src/store/reliable-scripts.js'
import { run, type Sender } from '../../src/store/run.js'
import { TransferStore } from '../../src/store/transfer-store.js'
import { WheelStore } from '../../src/store/wheel-store.js'
import {
  groupKeysOf,
  NOW,
  pollArgs,
  record,
  useReliable,
  type KeyName,
  type PollArgs,
  type ReliableFixture,
} from './reliable-support.js'
import { commandCalls, raw, senderOf, useRedis } from './support.js'

/** After all times of the messages; polls of this time look for what others have lost. */
const END = NOW * 61 * 350
/** Longer than a test lasts: a message with a time to live has more that can be refused. */
const TIME_TO_LIVE = 2 * END
/** How the scripts come to Redis. */
const TRANSPORT = new Set(['evalsha', 'eval', 'ping', 'info'])

/** A user who may do everything but one command. */
class Refused {
  readonly sender: Sender
  readonly #redis: Redis
  readonly #own: Redis

  private constructor(redis: Redis, own: Redis) {
    this.#redis = redis
    this.#own = own
    this.sender = senderOf(own)
  }

  static async open(redis: Redis): Promise<Refused> {
    await redis.call('ACL', 'SETUSER', 'refused', 'on', 'nopass', '~*', '&*', '+@all')
    return new Refused(redis, redis.duplicate({ username: 'refused', password: 'any' }))
  }

  /** Runs `action` without the right to one command; returns whether it resolved. */
  async without(command: string, action: () => Promise<unknown>): Promise<boolean> {
    await this.#redis.call('ACL', 'SETUSER', 'refused', `-${command}`)
    try {
      await action()
      return true
    } catch (error) {
      expect((error as Error).message, command).to.match(/can't run|permission/)
      return false
    } finally {
      await this.#redis.call('ACL', 'SETUSER', 'refused', '+@all')
    }
  }

  close(): void {
    this.#own.disconnect()
  }
}

async function commandsOf(redis: Redis, action: () => Promise<unknown>): Promise<string[]> {
  return Object.keys(await commandCalls(redis, action)).filter((command) => !TRANSPORT.has(command))
}

interface Item {
  readonly id: string
  readonly group?: string
  readonly priority?: number
  readonly at?: number
  readonly task?: string
  readonly limit?: number
}

const add = (
  queue: ReliableFixture,
  sender: Sender,
  items: readonly Item[],
  existing: 'keep' | 'replace' | 'postpone' = 'keep',
) =>
  run(sender, scripts.add, queue.keys, {
    ...{ channel: queue.channel, nowMs: 1, existing, sentAgoMs: -1, durable: false, batch: '', client: 'me' },
    items: items.flatMap(({ id, group = '', priority = 0, at = NOW, task, limit = '' }) => {
      const headers = task === undefined ? '' : JSON.stringify({ task })
      const place = group === '' ? priority : `g${group.length}`
      return [id, `${place},@${at},${TIME_TO_LIVE},${limit},${headers.length},,`, `${group}${headers}payload of ${id}`]
    }),
  })
const poll = (queue: ReliableFixture, sender: Sender, args: Partial<PollArgs> = {}) =>
  run(sender, scripts.poll, queue.keys, pollArgs(queue, { budgetUs: 60_000_000, ...args }))
const pause = (queue: ReliableFixture, sender: Sender, isOn: boolean) =>
  run(sender, pauseTask, queue.keys, { channel: queue.channel, pause: isOn, task: Buffer.from('report') })
const reschedule = (queue: ReliableFixture, sender: Sender, id: string, when: string, priority = -1) =>
  run(sender, scripts.reschedule, queue.keys, {
    channel: queue.channel,
    nowMs: NOW,
    id: raw(id),
    when,
    priority,
    client: 'me',
  })
const giveBack = (queue: ReliableFixture, sender: Sender, how: 'failed' | 'rejected' | 'released', member: string) =>
  run(sender, scripts.negativeAcknowledge, queue.keys, {
    ...{ channel: queue.channel, deadChannel: queue.deadChannel, nowMs: NOW, how, delayMs: 10, reason: '"no"' },
    ...{ client: 'me', handled: [Buffer.from(member), Buffer.from('1 t')] },
  })
const restore = (queue: ReliableFixture, sender: Sender, id: string, group: string, replaces: number | '') =>
  run(sender, scripts.restore, queue.keys, {
    ...{ channel: queue.channel, client: 'me', known: false },
    items: [id, `${group === '' ? '2' : `g${group.length}`},${NOW + 50},1,,,0,0,${replaces}`, `${group}restored`],
  })
const redrive = (queue: ReliableFixture, sender: Sender) => {
  const { keys, dead } = queue
  return run(
    sender,
    scripts.move,
    {
      ...{ messages: dead.messages, deliveries: dead.deliveries, failures: dead.failures, due: dead.due0 },
      ...{ targetMessages: keys.messages, targetDue: keys.due0, config: dead.config, changes: dead.changes },
      ...{
        targetConfig: keys.config,
        targetChanges: keys.changes,
        completed: dead.completed,
        completedAt: dead.completedAt,
      },
      ...groupKeysOf(dead, keys),
    },
    {
      ...{ targetChannel: queue.channel, nowMs: NOW, count: 5, client: 'me', targetName: '"q"', priority: 0 },
      ...{ isRedriven: true, ids: [] },
    },
  )
}
const changeRepeat = (
  queue: ReliableFixture,
  sender: Sender,
  change: { withdrawn: string; id: string; group: string },
) => {
  const size = change.group.length
  return run(sender, scripts.repeat, queue.keys, {
    ...{ channel: queue.channel, nowMs: NOW, computedAt: NOW, name: raw('r'), expected: raw('1 old') },
    ...{ value: raw('2 new'), at: `${NOW + 90}` },
    ...{ priority: size > 0 ? 10 : 0, withdrawn: raw(change.withdrawn), client: 'me' },
    items: [raw(change.id), raw(`${NOW + 60}`), size > 0 ? Buffer.from(`\u0006,,0,g${change.group}`) : record('new')],
  })
}

interface Case {
  readonly what: string
  readonly given: (queue: ReliableFixture, sender: Sender) => Promise<unknown>
  readonly act: (queue: ReliableFixture, sender: Sender) => Promise<unknown>
  /** What must be delivered if the call rejected, or instead what must be if it resolved. */
  readonly before: readonly string[]
  /** What must be delivered if it resolved, unless the same. */
  readonly after?: readonly string[]
  /** The key that another program holds with another type until the end. */
  readonly blocked?: KeyName | 'deadMessages'
}

/** The cases of messages with and without a group. */
function casesOf(group: string): Case[] {
  const kind = group === '' ? 'without a group' : 'with a group'
  const member = group === '' ? '0m' : 'gm'
  const later: Item = { id: 'm', group, at: NOW + 20 }
  const waiting: Item = { id: 'm', group, at: NOW - 20 }
  const resumed = async (queue: ReliableFixture, sender: Sender): Promise<void> => {
    await add(queue, sender, [{ ...waiting, task: 'report' }])
    await pause(queue, sender, true)
    await poll(queue, sender)
    await pause(queue, sender, false)
  }
  const held = async (queue: ReliableFixture, sender: Sender): Promise<void> => {
    await add(queue, sender, [waiting])
    await poll(queue, sender)
  }
  const dead = async (queue: ReliableFixture, sender: Sender): Promise<void> => {
    await held(queue, sender)
    await giveBack(queue, sender, 'rejected', member)
  }
  const tooOften = async (queue: ReliableFixture, sender: Sender): Promise<void> => {
    await add(queue, sender, [{ ...waiting, limit: 1 }])
    await poll(queue, sender)
    await giveBack(queue, sender, 'failed', member) // a dead letter
    await add(queue, sender, [{ ...waiting, limit: 1 }])
    await poll(queue, sender, { count: 0 })
    await sender.call('HSET', [queue.keys.deliveries, 'm', '1'])
  }
  const repeated = async (queue: ReliableFixture, sender: Sender): Promise<void> => {
    await add(queue, sender, [later])
    await sender.call('HSET', [queue.keys.repeats, 'r', '1 old'])
    await sender.call('ZADD', [queue.keys.ticks, `${NOW + 5}`, 'r'])
  }
  const [withdraws, other] = [{ before: ['m'], after: ['n'] }, group === '' ? 'g' : 'h']
  const cases: (Omit<Case, 'before'> & Partial<Case>)[] = [
    {
      what: 'add of a new message',
      given: async () => {},
      act: (q, s) => add(q, s, [later]),
      before: [],
      after: ['m'],
    },
    {
      what: 'add that postpones',
      given: (q, s) => add(q, s, [later]),
      act: (q, s) => add(q, s, [{ ...later, at: NOW + 70 }], 'postpone'),
    },
    {
      what: 'add that replaces',
      given: (q, s) => add(q, s, [later]),
      act: (q, s) => add(q, s, [{ ...later, at: NOW + 70 }], 'replace'),
    },
    {
      what: 'add that replaces in another group',
      given: (q, s) => add(q, s, [later]),
      act: (q, s) => add(q, s, [{ ...later, group: other, at: NOW + 70 }], 'replace'),
    },
    {
      what: 'add that replaces without a group',
      given: (q, s) => add(q, s, [later]),
      act: (q, s) => add(q, s, [{ id: 'm', priority: 3, at: NOW + 70 }], 'replace'),
    },
    { what: 'add that replaces one in flight', given: held, act: (q, s) => add(q, s, [later], 'replace') },
    {
      what: 'reschedule to a later time',
      given: (q, s) => add(q, s, [later]),
      act: (q, s) => reschedule(q, s, 'm', '70'),
    },
    { what: 'reschedule to now', given: (q, s) => add(q, s, [later]), act: (q, s) => reschedule(q, s, 'm', '0', 4) },
    { what: 'negative acknowledgement', given: held, act: (q, s) => giveBack(q, s, 'failed', member) },
    { what: 'release', given: held, act: (q, s) => giveBack(q, s, 'released', member) },
    { what: 'rejection', given: held, act: (q, s) => giveBack(q, s, 'rejected', member) },
    { what: 'redrive', given: dead, act: redrive },
    {
      what: 'restore',
      given: (q, s) => add(q, s, [{ id: 'v' }]),
      act: (q, s) => restore(q, s, 'm', group, ''),
      before: ['v'],
      after: ['v', 'm'],
    },
    {
      what: 'restore in the place of another',
      given: (q, s) => add(q, s, [later]),
      act: (q, s) => restore(q, s, 'm', group, NOW + 20),
    },
    {
      what: 'restore in another place',
      given: (q, s) => add(q, s, [later]),
      act: (q, s) => restore(q, s, 'm', group === '' ? 'g' : '', NOW + 20),
    },
    { what: 'poll', given: (q, s) => add(q, s, [waiting, { ...waiting, id: 'n' }]), act: poll, before: ['m', 'n'] },
    { what: 'poll that brings back', given: held, act: (q, s) => poll(q, s, { nowMs: NOW + 1000, count: 0 }) },
    {
      what: 'poll that sets aside',
      given: async (q, s) => {
        await add(q, s, [{ ...waiting, task: 'report' }])
        await pause(q, s, true)
        await poll(q, s, { count: 0 }) // gives the group its turn
      },
      act: poll,
    },
    { what: 'poll that brings back a task', given: resumed, act: (q, s) => poll(q, s, { count: 0 }) },
    { what: 'poll of one delivered too often', given: tooOften, act: poll },
    {
      what: 'poll of one delivered too often that the dead letters cannot take',
      given: tooOften,
      act: poll,
      blocked: 'deadMessages',
    },
    {
      what: 'change of a repeat',
      given: repeated,
      act: (q, s) => changeRepeat(q, s, { withdrawn: 'm', id: 'n', group }),
      ...withdraws,
    },
    {
      what: 'change of a repeat to the same id',
      given: repeated,
      act: (q, s) => changeRepeat(q, s, { withdrawn: 'm', id: 'm', group }),
    },
  ]
  return cases.map((each) => ({ before: ['m'], ...each, what: `${each.what}, ${kind}` }))
}

const MISPLACED: Case[] = ['', 'h'].map((group) => ({
  what: `poll of one in the order of another group, ${group === '' ? 'without a group' : 'with a group'}`,
  async given(queue, sender) {
    await add(queue, sender, [{ id: 'm', group: 'g', at: NOW - 20 }])
    const meta = group === '' ? '' : `,,0,g${group}`
    await poll(queue, sender, { count: 0 })
    await sender.call('HSET', [
      queue.keys.messages,
      'm',
      Buffer.concat([Buffer.of(meta.length), Buffer.from(`${meta}x`)]),
    ])
  },
  act: poll,
  before: ['m'],
}))

describe('a refused command within a script', function () {
  this.timeout(60_000)
  const rig = useReliable([])
  let refused: Refused

  before(async () => {
    refused = await Refused.open(rig.redis)
  })
  after(() => {
    refused.close()
  })

  /** The ids that polls with all rights hand out in the end, here or as dead letters. */
  async function delivered(queue: ReliableFixture): Promise<string[]> {
    await pause(queue, rig.sender, false)
    const ids = new Set<string>()
    for (const keys of [queue.keys, queue.dead]) {
      for (let empty = 0, at = END; empty < 5; at++) {
        const args = pollArgs(queue, {
          budgetUs: 60_000_000,
          nowMs: at,
          count: 100,
          visibilityMs: 100_000,
          token: `${at}`,
        })
        const { messages } = await run(rig.sender, scripts.poll, keys, args)
        for (const { member } of messages) ids.add(Buffer.from(member).subarray(1).toString())
        empty = messages.length === 0 ? empty + 1 : 0
      }
    }
    return [...ids]
  }

  for (const { what, given, act, before, after = before, blocked } of [...casesOf(''), ...casesOf('g'), ...MISPLACED]) {
    it(`loses no message: ${what}`, async () => {
      const queue = await rig.queue()
      const prepare = async (): Promise<void> => {
        await queue.write({})
        await given(queue, rig.sender)
        if (blocked !== undefined) {
          await rig.redis.unlink(queue.keys[blocked])
          await queue.block(blocked)
        }
      }
      await prepare()
      const commands = await commandsOf(rig.redis, () => act(queue, rig.sender))
      expect(commands).to.include('zadd')
      const lost: string[] = []
      for (const command of commands) {
        await prepare()
        const isDone = await refused.without(command, () => act(queue, refused.sender))
        if (blocked !== undefined) await queue.unblock(blocked)
        const there = await delivered(queue)
        const missingOf = (ids: readonly string[]): string[] => ids.filter((id) => !there.includes(id))
        let missing = missingOf(after)
        if (!isDone && missing.length > 0) missing = missingOf(before)
        if (missing.length > 0) lost.push(`${command} (${isDone ? 'resolved' : 'rejected'}): ${missing.join()}`)
      }
      expect(lost).to.deep.equal([])
    })
  }
})

describe('a refused command within a script of a delayed queue', function () {
  this.timeout(60_000)
  const rig = useRedis([])
  const ids = new EntryIds(1)
  const START = 4_000_000_020_000
  const MINUTE = 60_000
  let refused: Refused

  before(async () => {
    refused = await Refused.open(rig.redis)
  })
  after(() => {
    refused.close()
  })

  interface Delayed {
    readonly what: string
    readonly layout: 'compact' | 'redisson' | 'wheel'
    readonly delayMs: number
    /** The delays of other messages, so that there is a bucket. */
    readonly others?: readonly number[]
    readonly call: number | 'cancel' | 'transfer'
    /** Whether a message may come twice. */
    readonly isTwice?: boolean
  }
  const [NEAR, FAR, FARTHER] = [5000, 5 * MINUTE, 9 * MINUTE]
  const cases: Delayed[] = [
    { what: 'reschedule to sooner', layout: 'compact', delayMs: FAR, call: NEAR, others: [NEAR + 9] },
    { what: 'reschedule of the first to later', layout: 'compact', delayMs: NEAR, call: FAR, others: [NEAR + 9] },
    { what: 'reschedule to sooner', layout: 'redisson', delayMs: FAR, call: NEAR },
    { what: 'cancel', layout: 'compact', delayMs: NEAR, call: 'cancel', others: [FAR] },
    { what: 'cancel', layout: 'redisson', delayMs: NEAR, call: 'cancel', others: [FAR] },
    { what: 'cancel', layout: 'wheel', delayMs: FAR, call: 'cancel', others: [FAR] },
    ...[NEAR, FAR].flatMap((delayMs) =>
      [NEAR + 1, FAR + 1, FARTHER].flatMap((call) =>
        [[], [NEAR, FARTHER + 1]].map((others) => ({
          what: `reschedule from ${delayMs} to ${call} beside ${others.length}`,
          ...{ layout: 'wheel' as const, delayMs, call, others },
        })),
      ),
    ),
    { what: 'transfer', layout: 'redisson', delayMs: NEAR, call: 'transfer', isTwice: true },
    { what: 'transfer', layout: 'compact', delayMs: NEAR, call: 'transfer', isTwice: true },
    { what: 'transfer of a bucket', layout: 'wheel', delayMs: FAR, call: 'transfer', isTwice: true },
  ]
  for (const { what, layout, delayMs, others = [], call, isTwice = false } of cases) {
    it(`neither loses nor doubles a message, and changes nothing if it rejects: ${what}, ${layout}`, async () => {
      const faults: string[] = []
      let commands: string[] | undefined
      for (let n = -1; n < (commands?.length ?? 0); n++) {
        const queue = await rig.queue()
        const { keys } = queue
        const clock = { now: START }
        const settings = resolveSettings({ clock: 'local' }, () => clock.now)
        const storeOf = (sender: Sender) =>
          layout === 'wheel'
            ? new WheelStore(sender, keys, settings)
            : new DelayedStore(sender, keys, { settings, layout })
        const idBytes = layout === 'wheel' ? WHEEL_ID_BYTES : layout === 'redisson' ? 8 : 9
        const offer = async (payload: string, delay: number) => {
          const id = ids.next(idBytes)
          const entry = encodeEntry(id, Buffer.from(payload))
          const due = await storeOf(rig.sender).offer({
            entry,
            due: { delayMs: delay },
            undeliveredUntilMs: FIRST_ATTEMPT,
          })
          return { id, due }
        }
        const transfer = (sender: Sender) =>
          new TransferStore(sender, keys, settings).transfer({
            ...{ limit: 1000, client: 'c', announce: true, renew: false, buckets: layout === 'wheel' },
          })
        const { id, due } = await offer('m', delayMs)
        for (const [at, each] of others.entries()) await offer(`other ${at}`, each)
        const act = async (sender: Sender): Promise<unknown> => {
          if (call === 'transfer') clock.now = due
          if (call === 'transfer') return transfer(sender)
          const store = storeOf(sender)
          if (call === 'cancel') return store.cancel(id, due)
          const newId = ids.next(idBytes)
          return store instanceof WheelStore ? store.reschedule(id, due, call, newId) : store.reschedule(id, due, call)
        }
        if (commands === undefined) {
          commands = await commandsOf(rig.redis, () => act(rig.sender))
          expect(commands).not.to.have.length(0)
          continue
        }
        const command = commands[n]!
        await queue.published()
        const listed = await rig.redis.lrangeBuffer(keys.order, 0, -1)
        const isDone = await refused.without(command, () => act(refused.sender))
        const announced = await queue.published()
        if (!isDone && call !== 'transfer')
          expect(await rig.redis.lrangeBuffer(keys.order, 0, -1), `the order list after ${command}`).to.deep.equal(
            listed,
          )
        if (!isDone && call !== 'transfer' && announced.some((at) => Number(at) > due))
          faults.push(`${command} (rejected): announced ${announced.join()}, but ${due} is first`)
        const arrived = async (): Promise<number> => {
          for (let steps = 0, isMore = true; isMore && steps < 50; steps++) {
            const { next } = await transfer(rig.sender)
            isMore = next !== null && next <= clock.now
          }
          return (await rig.redis.lrange(keys.destination, 0, -1)).filter((payload) => payload === 'm').length
        }
        const newDue = isDone && typeof call === 'number' ? START + call : due
        if (call !== 'transfer') {
          clock.now = newDue - 1
          if ((await arrived()) > 0) faults.push(`${command}: early`)
        }
        clock.now = newDue
        const inTime = await arrived()
        clock.now = START + 20 * MINUTE
        const count = await arrived()
        const wanted = isDone && call === 'cancel' ? 0 : 1
        if (count < wanted) faults.push(`${command} (${isDone ? 'resolved' : 'rejected'}): lost`)
        else if (inTime < wanted) faults.push(`${command}: late`)
        if (count > wanted && !isTwice) faults.push(`${command} (${isDone ? 'resolved' : 'rejected'}): ${count} times`)
      }
      expect(faults).to.deep.equal([])
    })
  }
})
