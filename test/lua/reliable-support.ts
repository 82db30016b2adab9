/**
 * Raw state of one reliable queue and of the queue of its dead letters, written and read without the code under test: keys
 * and records are put together by hand here, and what is in Redis is compared byte for byte.
 */
import type { Redis } from 'ioredis'
import type { Sender } from '../../src/store/run.js'
import type { poll, PolledRecord } from '../../src/store/reliable-scripts.js'
import type { ArgsOf } from '../../src/store/script.js'
import { once } from '../support/events.js'
import { uniqueName } from '../support/redis.js'
import { raw, readable, senderOf, useRedis, type Bytes } from './support.js'

export const NOW = 1_000_000
/** When a poll that finds nothing looks for left records; when any poll does; when it looks for more. */
export const [LOOK, BUSY_LOOK, NEXT_LOOK] = [NOW - 7, NOW - 27, NOW + 300]
export const MAX = Number.MAX_SAFE_INTEGER
/** The longest visibility. */
export const LONGEST = 365 * 86_400_000

type Pairs = readonly (readonly [Bytes, Bytes | number])[]

/** The contents of Redis before a call; keys that are left out are empty. */
export interface QueueState {
  /** id -> record */
  readonly messages?: Pairs
  readonly deliveries?: Pairs
  readonly failures?: Pairs
  readonly config?: Pairs
  readonly once?: Pairs
  /** priority and id -> when its visibility ends */
  readonly inFlight?: Pairs
  /** name -> the last tick, and how it goes on */
  readonly repeats?: Pairs
  /** name -> when its next message has to be prepared */
  readonly ticks?: Pairs
  /** id -> when, attempts, result */
  readonly completed?: Pairs
  /** id -> when */
  readonly completedAt?: Pairs
  /** group, when, id -> 0 */
  readonly groupOrder?: Pairs
  /** group -> its turn */
  readonly groupTurns?: Pairs
  /** group -> from when on it can have a turn */
  readonly groupWakes?: Pairs
  /** group -> its claims, and when they were */
  readonly groups?: Pairs
  /** the groups that are paused -> 0 */
  readonly groupPauses?: Pairs
  /** the tasks that are paused -> the number of each */
  readonly taskPauses?: Pairs
  /** the batch of a message, the counts of a batch, its last message */
  readonly batches?: Pairs
  /** batch -> when it finished */
  readonly batchesAt?: Pairs
  /** the claims of the last stretch of time */
  readonly rate?: string
  /** by priority: id -> when it is visible */
  readonly due?: Readonly<Record<number, Pairs>>
}

/** One queue and its dead letters. */
export interface State extends QueueState {
  readonly dead?: QueueState
}

type RawZset = [member: string, score: string][]
type RawHash = Record<string, string>

/** The same as read back: what is empty is left out, bytes are text that a failed test can print, a wrong type is an error. */
export interface RawQueue {
  messages?: RawHash | string
  deliveries?: RawHash | string
  failures?: RawHash | string
  config?: RawHash | string
  once?: RawZset | string
  inFlight?: RawZset | string
  repeats?: RawHash | string
  ticks?: RawZset | string
  completed?: RawHash | string
  completedAt?: RawZset | string
  rate?: string
  groupOrder?: RawZset | string
  groupTurns?: RawZset | string
  groupWakes?: RawZset | string
  groups?: RawHash | string
  groupPauses?: RawZset | string
  taskPauses?: RawZset | string
  batches?: RawHash | string
  batchesAt?: RawZset | string
  due?: Record<string, RawZset | string>
}

export interface RawState {
  queue: RawQueue
  dead: RawQueue
}

/** The record of a message: a byte with the length of the meta data, these, the headers, the payload. */
export function record(
  payload: Bytes = '',
  { expires, limit, headers = '' }: { expires?: number | undefined; limit?: number | undefined; headers?: Bytes } = {},
): Buffer {
  const size = raw(headers).length
  const nothing = expires === undefined && limit === undefined && size === 0
  const meta = nothing ? '' : `${expires ?? ''},${limit ?? ''},${size}`
  return Buffer.concat([Buffer.of(meta.length), Buffer.from(meta), raw(headers), raw(payload)])
}

/** A message by what is said of it; without `until` it waits for a consumer. */
export interface Message {
  readonly id: Bytes
  readonly priority?: number
  /** When it is visible. */
  readonly at?: number | string
  /** When its visibility ends: then it is in flight. */
  readonly until?: number | string
  readonly attempts?: number
  readonly token?: string
  readonly failures?: string
  readonly payload?: Bytes
  readonly expires?: number
  readonly limit?: number
  readonly headers?: Bytes
  /** Instead of one that is put together of the others. */
  readonly record?: Bytes
}

/** The state with these messages in it, and what else is given. */
export function having(messages: readonly Message[], more: State = {}): State {
  const due: Record<number, (readonly [Bytes, Bytes | number])[]> = {}
  for (const [priority, pairs] of Object.entries(more.due ?? {})) due[Number(priority)] = [...pairs]
  const inFlight = [...(more.inFlight ?? [])]
  for (const { id, priority = 0, at = NOW, until } of messages) {
    if (until === undefined) (due[priority] ??= []).push([id, at])
    else inFlight.push([memberOf(id, priority), until])
  }
  return {
    ...more,
    messages: [...(more.messages ?? []), ...messages.map((each) => [each.id, recordOf(each)] as const)],
    deliveries: [
      ...messages
        .filter(({ attempts, until }) => attempts !== undefined || until !== undefined)
        .map(
          ({ id, attempts = 1, until, token = 't' }) =>
            [id, until === undefined ? `${attempts}` : `${attempts} ${token}`] as const,
        ),
      ...(more.deliveries ?? []),
    ],
    failures: [
      ...messages.flatMap(({ id, failures }) => (failures === undefined ? [] : [[id, failures] as const])),
      ...(more.failures ?? []),
    ],
    inFlight,
    due,
  }
}

/** The part of `having` that another queue gets as its dead letters. */
export function asDead(messages: readonly Message[]): QueueState {
  return having(messages)
}

export function recordOf({ payload = '', record: given, ...meta }: Message): Buffer {
  return given === undefined ? record(payload, meta) : raw(given)
}

/** The member in `inFlight`: a digit and the id. */
export function memberOf(id: Bytes, priority = 0): Buffer {
  return Buffer.concat([Buffer.from(String(priority)), raw(id)])
}

/** One message in the reply of a poll. */
export function readablePolled({ member, delivery, priority, visibleAt, record }: PolledRecord) {
  const id = raw(member).subarray(1)
  return { priority, id: readable(id), delivery, visibleAt, record: readable(record) }
}

/** Pairs of member and delivery, as the scripts take them. */
export function handled(...pairs: readonly (readonly [id: Bytes, delivery: string, priority?: number])[]): Buffer[] {
  return pairs.flatMap(([id, delivery, priority]) => [memberOf(id, priority), Buffer.from(delivery)])
}

/** The complete state that `state` describes, in the form in which it is read back. */
export function expected(state: State): RawState {
  return { queue: expectedQueue(state), dead: expectedQueue(state.dead ?? {}) }
}

function expectedQueue(state: QueueState): RawQueue {
  const due: Record<string, RawZset> = {}
  for (const [priority, pairs] of Object.entries(state.due ?? {})) if (pairs.length > 0) due[priority] = zset(pairs)
  return withoutEmpty({
    messages: hash(state.messages),
    deliveries: hash(state.deliveries),
    failures: hash(state.failures),
    config: hash(state.config),
    once: zset(state.once),
    inFlight: zset(state.inFlight),
    repeats: hash(state.repeats),
    ticks: zset(state.ticks),
    completed: hash(state.completed),
    completedAt: zset(state.completedAt),
    groupOrder: zset(state.groupOrder),
    groupTurns: zset(state.groupTurns),
    groupWakes: zset(state.groupWakes),
    groups: hash(state.groups),
    groupPauses: zset(state.groupPauses),
    taskPauses: zset(state.taskPauses),
    batches: hash(state.batches),
    batchesAt: zset(state.batchesAt),
    ...(state.rate !== undefined && { rate: state.rate }),
    due,
  })
}

function hash(pairs: Pairs = []): RawHash {
  return Object.fromEntries(pairs.map(([field, value]) => [readable(field), readable(bytesOf(value))]))
}

/** As Redis sorts them: by score, then by bytes. */
function zset(pairs: Pairs = []): RawZset {
  return pairs
    .map(([member, score]) => ({ member: raw(member), score: String(score) }))
    .sort((x, y) => Number(x.score) - Number(y.score) || Buffer.compare(x.member, y.member))
    .map(({ member, score }) => [readable(member), score])
}

function bytesOf(value: Bytes | number): Bytes {
  return typeof value === 'number' ? String(value) : value
}

function withoutEmpty(queue: RawQueue): RawQueue {
  return Object.fromEntries(
    Object.entries(queue).filter(([, part]) => typeof part === 'string' || Object.keys(part as object).length > 0),
  )
}

const HASHES = ['messages', 'deliveries', 'failures', 'config', 'repeats', 'completed', 'groups', 'batches'] as const
const ZSETS = [
  'once',
  'inFlight',
  'ticks',
  'completedAt',
  'groupOrder',
  'groupTurns',
  'groupWakes',
  'groupPauses',
  'taskPauses',
  'batchesAt',
] as const
/** And 10 for those with a group. */
const PRIORITIES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as const

export type DueName = `due${(typeof PRIORITIES)[number]}`
export type KeyName = (typeof HASHES)[number] | (typeof ZSETS)[number] | DueName | 'changes' | 'rate'
/** Every name that one of the scripts has for a key. */
export type ScriptKeys = Record<KeyName, string> &
  Record<
    | 'deadMessages'
    | 'deadDeliveries'
    | 'deadFailures'
    | 'deadDue'
    | 'deadConfig'
    | 'deadChanges'
    | 'deadBatches'
    | 'deadBatchesAt'
    | 'deadInFlight',
    string
  >

/** The keys of a queue, written by hand. */
export function keysByHand(name: string): Record<KeyName, string> {
  const of = (part: string): string => `redelayed:reliable:${part}:${name.includes('{') ? name : `{${name}}`}`
  const due = Object.fromEntries(PRIORITIES.map((priority) => [`due${priority}`, of(`due-${priority}`)]))
  return {
    messages: of('messages'),
    deliveries: of('deliveries'),
    failures: of('failures'),
    config: of('config'),
    once: of('once'),
    inFlight: of('in-flight'),
    repeats: of('repeats'),
    ticks: of('ticks'),
    changes: of('changes'),
    completed: of('completed'),
    completedAt: of('completed-at'),
    rate: of('rate'),
    groupOrder: of('group-order'),
    groupTurns: of('group-turns'),
    groupWakes: of('group-wakes'),
    groups: of('groups'),
    groupPauses: of('group-pauses'),
    taskPauses: of('task-pauses'),
    batches: of('batches'),
    batchesAt: of('batches-at'),
    ...(due as Record<DueName, string>),
  }
}

/** The keys of groups, batches, deliveries and the other queue's schedules that `reliable-move.lua` has. */
export function groupKeysOf(own: ScriptKeys, target: ScriptKeys) {
  const { due10, groupOrder, groupTurns, groupWakes, groups, inFlight, batches, batchesAt } = own
  return {
    ...{ due10, groupOrder, groupTurns, groupWakes, groups, inFlight, batches, batchesAt },
    ...{ targetDue10: target.due10, targetGroupOrder: target.groupOrder, targetGroupTurns: target.groupTurns },
    ...{ targetGroupWakes: target.groupWakes, targetGroups: target.groups, targetInFlight: target.inFlight },
    ...{ targetDeliveries: target.deliveries, targetFailures: target.failures },
    ...{ targetDue0: target.due0, targetDue1: target.due1, targetDue2: target.due2, targetDue3: target.due3 },
    ...{ targetDue4: target.due4, targetDue5: target.due5, targetDue6: target.due6, targetDue7: target.due7 },
    ...{ targetDue8: target.due8, targetDue9: target.due9 },
  }
}

export function channelByHand(name: string): string {
  return `redelayed:reliable:channel:${name.includes('{') ? name : `{${name}}`}`
}

/** One reliable queue with a name of its own, and the queue of its dead letters; both channels are listened to. */
export class ReliableFixture {
  /** The keys of the queue, with those of its dead letters. */
  readonly keys: ScriptKeys
  /** The keys of the dead-letter queue, whose own dead letters would be those of the queue. */
  readonly dead: ScriptKeys
  readonly channel: string
  readonly deadChannel: string
  readonly #redis: Redis
  readonly #subscriber: Redis
  readonly #heard: string[] = []
  #markers = 0

  constructor(
    readonly name: string,
    redis: Redis,
    subscriber: Redis,
  ) {
    const deadName = `{${name}}:dead`
    const [own, dead] = [keysByHand(name), keysByHand(deadName)]
    const asDeadKeys = (keys: typeof own) => ({
      deadMessages: keys.messages,
      deadDeliveries: keys.deliveries,
      deadFailures: keys.failures,
      deadDue: keys.due0,
      deadConfig: keys.config,
      deadChanges: keys.changes,
      deadBatches: keys.batches,
      deadBatchesAt: keys.batchesAt,
      deadInFlight: keys.inFlight,
    })
    this.keys = { ...own, ...asDeadKeys(dead) }
    this.dead = { ...dead, ...asDeadKeys(own) }
    this.channel = channelByHand(name)
    this.deadChannel = channelByHand(deadName)
    this.#redis = redis
    this.#subscriber = subscriber
  }

  /** Every key that this queue can leave behind. */
  get all(): string[] {
    return [...new Set([...Object.values(this.keys), ...Object.values(this.dead)])]
  }

  async listen(): Promise<void> {
    this.#subscriber.on('message', (channel: string, message: string) => {
      if (channel === this.channel) this.#heard.push(message)
      if (channel === this.deadChannel) this.#heard.push(`dead ${message}`)
    })
    await this.#subscriber.subscribe(this.channel, this.deadChannel)
  }

  /** Replaces everything by `state`. */
  async write(state: State): Promise<void> {
    const pipeline = this.#redis.pipeline().unlink(...this.all)
    for (const [keys, queue] of [
      [this.keys, state],
      [this.dead, state.dead ?? {}],
    ] as const) {
      for (const name of HASHES) {
        for (const [field, value] of queue[name] ?? []) pipeline.hset(keys[name], raw(field), raw(bytesOf(value)))
      }
      const zsets: [key: string, pairs: Pairs | undefined][] = ZSETS.map((name) => [keys[name], queue[name]])
      for (const priority of PRIORITIES) zsets.push([keys[`due${priority}`], queue.due?.[priority]])
      if (queue.config?.some(([field]) => field === 'changes') === true) {
        pipeline.xgroup('CREATE', keys.changes, 'none', '$', 'MKSTREAM').xgroup('DESTROY', keys.changes, 'none')
      }
      if (queue.rate !== undefined) pipeline.set(keys.rate, queue.rate)
      for (const [key, pairs] of zsets) {
        for (const [member, score] of pairs ?? []) pipeline.zadd(key, String(score), raw(member))
      }
    }
    for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
  }

  async read(): Promise<RawState> {
    return { queue: await this.#readQueue(this.keys), dead: await this.#readQueue(this.dead) }
  }

  async #readQueue(keys: ScriptKeys): Promise<RawQueue> {
    const pipeline = this.#redis.pipeline()
    for (const name of HASHES) pipeline.callBuffer('HGETALL', keys[name])
    for (const name of [...ZSETS, ...PRIORITIES.map((priority) => `due${priority}` as const)]) {
      pipeline.callBuffer('ZRANGE', keys[name], '0', '-1', 'WITHSCORES')
    }
    const replies = ((await pipeline.exec()) ?? []).map(([error, reply]) =>
      error ? error.message.replace(/^(\w+).*/s, '$1') : pairsOf(reply as Buffer[]),
    )
    const next = (): RawZset | string => replies.shift() ?? []
    const nextHash = (): RawHash | string => {
      const pairs = next()
      return typeof pairs === 'string' ? pairs : Object.fromEntries(pairs)
    }
    const queue: RawQueue = {}
    for (const name of HASHES) queue[name] = nextHash()
    for (const name of ZSETS) queue[name] = next()
    const due: Record<string, RawZset | string> = {}
    for (const priority of PRIORITIES) {
      const pairs = next()
      if (pairs.length > 0) due[priority] = pairs
    }
    queue.due = due
    const rate = await this.#redis.get(keys.rate).catch((error: Error) => error.message.replace(/^(\w+).*/s, '$1'))
    if (rate !== null) queue.rate = rate
    return withoutEmpty(queue)
  }

  /** The entries of a change stream, as text with one character for each byte. */
  async changes(keys: ScriptKeys = this.keys): Promise<string[]> {
    const entries = (await this.#redis.callBuffer('XRANGE', keys.changes, '-', '+')) as [Buffer, Buffer[]][]
    return entries.map(([, fields]) => {
      const [field, value, ...more] = fields
      if (field?.toString() !== 'changes' || more.length > 0) throw new Error('an entry of another kind')
      return value!.toString('latin1')
    })
  }

  /** The messages published on both channels since the last call. They keep their order, so a marker shows that all have arrived. */
  async published(): Promise<string[]> {
    const marker = `marker ${this.#markers++}`
    const arrived = once(this.#subscriber, 'message', () => this.#heard.at(-1) === marker)
    await this.#redis.publish(this.channel, marker)
    await arrived
    return this.#heard.splice(0).filter((message) => message !== marker)
  }

  /** Puts a text in the place of a key. */
  async block(name: keyof ScriptKeys): Promise<void> {
    await this.#redis.set(this.keys[name], 'in the way')
  }

  async unblock(name: keyof ScriptKeys): Promise<void> {
    await this.#redis.unlink(this.keys[name])
  }
}

function pairsOf(flat: readonly Buffer[]): RawZset {
  const pairs: RawZset = []
  for (let i = 0; i < flat.length; i += 2) pairs.push([readable(flat[i]!), readable(flat[i + 1]!)])
  return pairs
}

export type PollArgs = ArgsOf<(typeof poll)['source']>

export const IDLE = 60_000

/** The default arguments of a poll. */
export function pollArgs({ channel, deadChannel }: ReliableFixture, args: Partial<PollArgs> = {}): PollArgs {
  return {
    ...{
      channel,
      deadChannel,
      client: 'me',
      nowMs: NOW,
      budgetUs: 1_000_000,
      count: 10,
      visibilityMs: 500,
      token: 't',
    },
    ...{ idleMs: IDLE, announce: false, beforehand: false, repeatBytes: 1_000_000 },
    ...args,
  }
}

export interface ReliableRig {
  readonly redis: Redis
  readonly sender: Sender
  /** A new queue, filled with `state` and listened to. */
  queue(state?: State): Promise<ReliableFixture>
  /** Runs `action` as a user who may do everything, but publish in these channels only. */
  muted<T>(channels: readonly string[], action: (sender: Sender) => Promise<T>): Promise<T>
  /** Runs `action` as a user with these rights, on all keys. */
  limited<T>(rules: readonly string[], action: (sender: Sender) => Promise<T>): Promise<T>
}

/** The shared Redis, with a subscriber of its own; with `args`, a private server started with them. */
export function useReliable(args?: string[]): ReliableRig {
  let subscriber: Redis | undefined
  let users = 0
  const fixtures: ReliableFixture[] = []
  // before the server ends
  after(async () => {
    await subscriber?.quit()
  })
  const rig = useRedis(args)

  before(async () => {
    subscriber = rig.redis.duplicate().setMaxListeners(0)
    await subscriber.ping()
  })
  afterEach(async () => {
    subscriber?.removeAllListeners('message')
    const gone = fixtures.splice(0)
    if (gone.length > 0) await subscriber?.unsubscribe(...gone.flatMap((each) => [each.channel, each.deadChannel]))
    for (const fixture of gone) await rig.redis.unlink(...fixture.all)
  })

  return {
    get redis() {
      return rig.redis
    },
    get sender() {
      return rig.sender
    },
    async queue(state = {}) {
      if (subscriber === undefined) throw new Error('only inside tests')
      const fixture = new ReliableFixture(uniqueName('reliable'), rig.redis, subscriber)
      fixtures.push(fixture)
      await fixture.listen()
      await fixture.write(state)
      return fixture
    },
    muted(channels, action) {
      return this.limited(['resetchannels', ...channels.map((channel) => `&${channel}`), '+@all'], action)
    },
    async limited(rules, action) {
      const user = `limited-${process.pid}-${Date.now()}-${users++}`
      await rig.redis.call('ACL', 'SETUSER', user, 'on', 'nopass', '~*', ...rules)
      const own = rig.redis.duplicate({ username: user, password: 'any' })
      try {
        return await action(senderOf(own))
      } finally {
        own.disconnect()
        await rig.redis.call('ACL', 'DELUSER', user)
      }
    },
  }
}
