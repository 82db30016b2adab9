/**
 * Random calls with groups, tasks, limits, pauses and batches, compared with a model after each: who gets what, when those who wait look again, and the
 * counts. The model knows what is promised, not how it is kept: `reliable-model.test.ts` compares every key, for messages without a group.
 */
import { AssertionError, expect } from 'chai'
import fc from 'fast-check'
import * as groupScripts from '../../src/store/reliable-group-scripts.js'
import * as queueScripts from '../../src/store/reliable-scripts.js'
import type { PolledRecord, PollReply } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import type { Script, ScriptSource } from '../../src/store/script.js'
import { isLongForm, rounds } from '../support/long-form.js'
import { plantLua } from '../support/lua-plant.js'
import { NOW, pollArgs, useReliable, type ReliableFixture, type ReliableRig } from './reliable-support.js'
import { raw } from './support.js'

const GROUPS = ['a', 'b', 'cc'] as const
/** The messages without a group have turns as one. */
const PLAIN = ''
const LANES = [PLAIN, ...GROUPS] as const
const TASKS = ['r', 'w'] as const
const NO_TASK = ''
const BATCHES = ['x', 'y', 'z'] as const
const PER_MS = 64
/** A delivery can wait so much longer than its rate says, as the last ones are remembered in parts. */
const PART_MS = PER_MS / 32 + 2
/** A poll that sets messages aside or brings some back may leave the rest to the next ones, which follow at once. */
const MOST_POLLS = 12

interface Item {
  readonly id: string
  readonly lane: string
  readonly task: string
  readonly batch: string
  at: number
  /** Until when a consumer has it. */
  until: number | undefined
  /** The last message of a batch that no poll has seen yet. */
  isNew: boolean
}

interface Batch {
  state: 'open' | 'closed' | 'finished'
  pending: number
  completed: number
  removed: number
  last: string
}

interface Limits {
  groupConcurrency: number
  concurrency: number
  groupRate: number
  rate: number
}

const NO_LIMITS: Limits = { groupConcurrency: Infinity, concurrency: Infinity, groupRate: Infinity, rate: Infinity }

interface World {
  now: number
  readonly items: Map<string, Item>
  readonly leases: { readonly id: string; readonly record: PolledRecord }[]
  readonly batches: Map<string, Batch>
  readonly paused: Set<string>
  readonly pausedTasks: Set<string>
  /** Resumed tasks whose messages are not all back for certain, and after how many polls they are: each brings back those of one task. */
  readonly returning: Map<string, number>
  isPaused: boolean
  limits: Limits
  readonly claims: { readonly lane: string; readonly at: number }[]
  /** How many claims there were when the rate was set. */
  rateFrom: number
  groupRateFrom: number
  hadGroupRate: boolean
  /** When a consumer that waits asks again, as far as it was informed. */
  asksAt: number
  /** For a lane that could have a message: how many each other one got since. */
  readonly passes: Map<string, Map<string, number>>
  /** The stored value of the only repeat. */
  repeat: string
  counter: number
}

function emptyWorld(): World {
  return {
    now: NOW,
    items: new Map(),
    leases: [],
    batches: new Map(),
    paused: new Set(),
    pausedTasks: new Set(),
    returning: new Map(),
    isPaused: false,
    limits: { ...NO_LIMITS },
    claims: [],
    rateFrom: 0,
    groupRateFrom: 0,
    hadGroupRate: false,
    asksAt: Infinity,
    passes: new Map(),
    repeat: '',
    counter: 0,
  }
}

function waitingIn({ items }: World, lane: string): Item[] {
  return [...items.values()]
    .filter((item) => item.lane === lane && item.until === undefined)
    .sort((x, y) => x.at - y.at || (x.id < y.id ? -1 : 1))
}

/** Whether no poll may hand a message out, or none has to yet. */
function isHeldBack({ pausedTasks, returning }: World, { task }: Item): boolean {
  return pausedTasks.has(task) || returning.has(task)
}

/** The first message of a lane that a poll hands out, as far as its task allows that for certain. */
function firstIn(world: World, lane: string): Item | undefined {
  return waitingIn(world, lane).find((item) => !isHeldBack(world, item))
}

/** Whether tasks make several polls necessary, and the turns of groups irregular meanwhile. */
function hasTasks({ pausedTasks, returning }: World): boolean {
  return pausedTasks.size + returning.size > 0
}

function takenIn({ items }: World, lane: string): Item[] {
  return [...items.values()].filter((item) => item.lane === lane && item.until !== undefined)
}

function takenNow({ items, now }: World): number {
  return [...items.values()].filter(({ until }) => until !== undefined && until > now).length
}

/** From when on a rate admits one more for certain: all claims count, each as long as it may. */
function rateOpensAt(times: readonly number[], max: number): number {
  if (times.length < max) return 0
  const ends = times.map((at) => at + PER_MS + PART_MS).sort((x, y) => y - x)
  return ends[max - 1] ?? 0
}

/** From when on a lane may have one more for certain; never where it waits for the end of a claim. */
function laneOpensAt(world: World, lane: string): number {
  const { paused, limits, claims } = world
  if (lane === PLAIN) return 0
  if (paused.has(lane) || takenIn(world, lane).length >= limits.groupConcurrency) return Infinity
  const times = claims.filter((claim) => claim.lane === lane).map(({ at }) => at)
  return rateOpensAt(times, limits.groupRate)
}

function canHaveOne(world: World, lane: string): boolean {
  const first = firstIn(world, lane)
  return first !== undefined && first.at <= world.now && laneOpensAt(world, lane) <= world.now
}

/** When a poll would hand out something for certain, or bring something back. With `isBack` as if the messages of all resumed tasks were back. */
function availableAt(world: World, isBack = false): number {
  if (world.isPaused) return Infinity
  const backAt = Math.min(...[...world.items.values()].map(({ until }) => until ?? Infinity))
  if (takenNow(world) >= world.limits.concurrency) return backAt
  const opensAt = rateOpensAt(
    world.claims.map(({ at }) => at),
    world.limits.rate,
  )
  const lanes = LANES.map((lane) => {
    const first = isBack
      ? waitingIn(world, lane).find(({ task }) => !world.pausedTasks.has(task))
      : firstIn(world, lane)
    return first === undefined ? Infinity : Math.max(first.at, laneOpensAt(world, lane), opensAt)
  })
  return Math.min(backAt, ...lanes)
}

/** A message has left the queue; the last one of a batch comes at once, for the next poll. */
function leave(world: World, id: string, how: 'completed' | 'removed'): void {
  const item = world.items.get(id)
  if (item === undefined) throw new Error(`${id} is not there`)
  world.items.delete(id)
  const batch = world.batches.get(item.batch)
  if (batch === undefined) return
  batch.pending--
  batch[how]++
  finish(world, batch)
}

function finish(world: World, batch: Batch): void {
  if (batch.state !== 'closed' || batch.pending > 0) return
  batch.state = 'finished'
  const { last: id } = batch
  world.items.set(id, { id, lane: PLAIN, task: NO_TASK, batch: '', at: world.now, until: undefined, isNew: true })
}

type AllScripts = typeof queueScripts & typeof groupScripts
/** The scripts of each step, of which one may have a planted fault. */
interface Stage {
  /** A poll gives turns to one group, and hands out nothing while more are to have one. */
  readonly isSlow: boolean
  readonly rig: ReliableRig
  readonly queue: ReliableFixture
  readonly scripts: AllScripts
  readonly met: Map<string, number>
}

type Step = (world: World, stage: Stage) => Promise<void>

function meet({ met }: Stage, what: string): void {
  met.set(what, (met.get(what) ?? 0) + 1)
}

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % Math.max(1, list.length)]

const add = fc
  .record({
    batch: fc.constantFrom('', '', ...BATCHES),
    items: fc.array(
      fc.record({
        lane: fc.constantFrom(...LANES, 'a', 'a'),
        task: fc.constantFrom(NO_TASK, NO_TASK, ...TASKS),
        delay: fc.constantFrom(0, 0, 0, 7, 90),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  })
  .map(({ batch, items }): Step => async (world, stage) => {
    const { rig, queue, scripts } = stage
    const { now } = world
    const messages = items.map(({ delay, ...item }) => ({
      ...item,
      id: `m${1_000 + world.counter++}`,
      at: now + delay,
    }))
    const { outcomes } = await run(rig.sender, scripts.add, queue.keys, {
      ...{ channel: queue.channel, nowMs: now, existing: 'keep', sentAgoMs: -1, durable: false, batch, client: 'me' },
      items: messages.flatMap(({ id, lane, task, at }) => {
        const headers = task === NO_TASK ? '' : JSON.stringify({ task })
        return [
          id,
          `${lane === PLAIN ? 0 : `g${lane.length}`},@${at},,,${headers.length},,`,
          `${lane}${headers}payload`,
        ]
      }),
    })
    const counts = batch === '' ? undefined : world.batches.get(batch)
    const isClosed = counts !== undefined && counts.state !== 'open'
    expect(outcomes).to.deep.equal(messages.map(() => (isClosed ? -7 : 1)))
    if (isClosed) return meet(stage, 'a closed batch refuses')
    for (const message of messages) world.items.set(message.id, { ...message, batch, until: undefined, isNew: false })
    if (batch === '') return
    const opened = counts ?? { state: 'open', pending: 0, completed: 0, removed: 0, last: '' }
    world.batches.set(batch, Object.assign(opened, { pending: opened.pending + messages.length }))
  })

const poll = fc
  .record({ count: fc.integer({ min: 1, max: 6 }), visibilityMs: fc.constantFrom(15, 40, 500) })
  .map(({ count, visibilityMs }): Step => async (world, stage) => {
    for (let [polls, left] = [1, count]; ; polls++) {
      const reply = await pollOnce(world, stage, left, visibilityMs)
      left -= reply.messages.length
      if (left === 0 || world.isPaused || availableAt(world) > world.now) return
      const hasReason = hasTasks(world) || (stage.isSlow && reply.messages.length === 0)
      expect(hasReason, 'a reason why there is more than was handed out').to.equal(true)
      expect(reply.next, 'the time of the next poll, which hands out more').to.be.at.most(world.now)
      expect(polls, 'polls').to.be.below(MOST_POLLS)
      meet(stage, hasTasks(world) ? 'the next poll hands out what one of a task kept back' : 'the next poll goes on')
    }
  })

async function pollOnce(world: World, stage: Stage, count: number, visibilityMs: number): Promise<PollReply> {
  const { rig, queue, scripts } = stage
  const { now, limits, returning } = world
  const token = `t${world.counter++}`
  const args = pollArgs(queue, { nowMs: now, count, visibilityMs, token, budgetUs: 60_000_000 })
  const reply = await run(rig.sender, scripts.poll, queue.keys, args)
  expect(reply, 'the poll').to.include({ problem: '', expired: 0, deadLettered: 0 })
  for (const item of world.items.values()) {
    item.isNew = false
    if (item.until === undefined || item.until > now) continue
    Object.assign(item, { at: item.until, until: undefined })
    meet(stage, 'a claim whose consumer is gone comes back')
  }
  for (const [task, polls] of returning) {
    if (polls > 1) returning.set(task, polls - 1)
    else returning.delete(task)
  }
  if (world.isPaused) expect(reply.messages, 'of a paused queue').to.deep.equal([])
  for (const lane of LANES) {
    if (canHaveOne(world, lane)) world.passes.set(lane, world.passes.get(lane) ?? new Map<string, number>())
    else world.passes.delete(lane)
  }
  for (const record of reply.messages) claim(world, stage, record, visibilityMs)
  for (const lane of LANES) if (!canHaveOne(world, lane)) world.passes.delete(lane)
  world.asksAt = reply.next ?? Infinity
  if (reply.messages.length > 0 && takenNow(world) >= limits.concurrency) meet(stage, 'the queue is full')
  return reply
}

function claim(world: World, stage: Stage, record: PolledRecord, visibilityMs: number): void {
  const { now, limits, claims } = world
  const id = raw(record.member).subarray(1).toString()
  const item = world.items.get(id)
  if (item === undefined) throw new Error(`${id} came, and is not there`)
  const { lane, task } = item
  expect(world.pausedTasks.has(task), `${id} is of the paused task ${task}`).to.equal(false)
  expect(world.paused.has(lane), `${id} is of the paused group ${lane}`).to.equal(false)
  const before = waitingIn(world, lane).find((other) => other.task === task || !isHeldBack(world, other))
  expect(before?.id, `the next one of "${lane}"`).to.equal(id)
  expect(item.at, `${id} is early`).to.be.at.most(now)
  expect(record.visibleAt).to.equal(item.at)
  expect(takenNow(world), 'claims of the queue before one more').to.be.lessThan(limits.concurrency)
  if (lane !== PLAIN)
    expect(takenIn(world, lane).length, `claims of ${lane} before one more`).to.be.lessThan(limits.groupConcurrency)
  const recent = (from: number, of: (one: string) => boolean): number =>
    claims.slice(from).filter((one) => of(one.lane) && one.at > now - PER_MS).length
  expect(
    recent(world.rateFrom, () => true),
    'deliveries of the queue before one more',
  ).to.be.lessThan(limits.rate)
  if (lane !== PLAIN)
    expect(
      recent(world.groupRateFrom, (one) => one === lane),
      `deliveries of ${lane} before one more`,
    ).to.be.lessThan(limits.groupRate)
  for (const [other, passed] of world.passes) {
    if (other === lane || hasTasks(world)) continue
    const times = (passed.get(lane) ?? 0) + 1
    passed.set(lane, times)
    expect(times, `messages of "${lane}" while "${other}" waits for its turn`).to.be.at.most(1)
  }
  item.until = now + visibilityMs
  claims.push({ lane, at: now })
  if (canHaveOne(world, lane)) world.passes.set(lane, new Map())
  else world.passes.delete(lane)
  world.leases.push({ id, record })
  meet(stage, lane === PLAIN ? 'a message without a group' : 'a message with a group')
  if (task !== NO_TASK && world.pausedTasks.size > 0) meet(stage, 'a message of another task than the paused one')
}

const answer = fc
  .record({
    how: fc.constantFrom('acknowledge', 'acknowledge', 'failed', 'released'),
    first: fc.nat(),
    many: fc.integer({ min: 1, max: 3 }),
    delayMs: fc.constantFrom(0, 0, 12),
  })
  .map(({ how, first, many, delayMs }): Step => async (world, stage) => {
    const { rig, queue, scripts } = stage
    if (world.leases.length === 0) return
    const from = first % world.leases.length
    const { now } = world
    const isOwn = ({ id, record }: World['leases'][number]): boolean => {
      const until = world.items.get(id)?.until
      return until !== undefined && until > now && !hasNewer(world, record, id)
    }
    const own = world.leases.slice(from, from + many).map(isOwn)
    const leases = world.leases.splice(from, many)
    const common = {
      nowMs: now,
      client: 'me',
      handled: leases.flatMap(({ record }) => [record.member, record.delivery]),
    }
    const answers =
      how === 'acknowledge'
        ? await run(rig.sender, scripts.acknowledge, queue.keys, { ...common, withResults: false })
        : (
            await run(rig.sender, scripts.negativeAcknowledge, queue.keys, {
              ...{ ...common, how, delayMs, reason: '""' },
              ...{ channel: queue.channel, deadChannel: queue.deadChannel },
            })
          ).map((outcome) => outcome === 1)
    expect(answers, how).to.deep.equal(own)
    for (const [n, { id }] of leases.entries()) {
      if (own[n] !== true) continue
      if (how === 'acknowledge') leave(world, id, 'completed')
      else Object.assign(world.items.get(id) as Item, { at: now + delayMs, until: undefined })
      meet(stage, how)
    }
  })

/** Whether another consumer has got it since. */
function hasNewer({ leases }: World, record: PolledRecord, id: string): boolean {
  return leases.some(
    (lease) => lease.id === id && lease.record !== record && attemptOf(lease.record) > attemptOf(record),
  )
}

function attemptOf({ delivery }: PolledRecord): number {
  return Number(/ t(\d+)$/.exec(delivery)?.[1])
}

const remove = fc.nat().map((n): Step => async (world, stage) => {
  const { rig, queue, scripts } = stage
  const item = pick(
    [...world.items.values()].filter(({ isNew }) => !isNew),
    n,
  )
  if (item === undefined) return
  const args = { nowMs: world.now, alsoHeld: true, client: 'me', ids: [item.id] }
  expect(await run(rig.sender, scripts.remove, queue.keys, args)).to.deep.equal([true])
  leave(world, item.id, 'removed')
  world.passes.delete(item.lane)
  meet(stage, 'remove')
})

/** As a schedule does at its ticks, and as one that is changed: what is to come is withdrawn. */
const tick = fc
  .record({
    lane: fc.constantFrom(...LANES),
    delays: fc.array(fc.constantFrom(0, 7, 90), { maxLength: 2 }),
    gone: fc.nat(),
  })
  .map(({ lane, delays, gone }): Step => async (world, stage) => {
    const { rig, queue, scripts } = stage
    const { now } = world
    const items = delays.map((delay) => ({ id: `m${1_000 + world.counter++}`, at: now + delay }))
    const withdrawn = pick(
      [...world.items.values()].filter((item) => !item.isNew),
      gone,
    )
    const head = lane === PLAIN ? '\0' : `\x05,,0,${lane.length}${lane}`
    const value = String(world.counter++)
    const reply = await run(rig.sender, scripts.repeat, queue.keys, {
      ...{
        channel: queue.channel,
        nowMs: now,
        computedAt: now,
        name: raw('r'),
        at: '',
        client: 'me',
        priority: lane === PLAIN ? 0 : 10,
      },
      ...{ expected: raw(world.repeat), value: raw(value), withdrawn: raw(withdrawn?.id ?? '') },
      items: items.flatMap(({ id, at }) => [raw(id), raw(String(at)), raw(`${head}payload`)]),
    })
    expect(reply, 'of a repeat').to.equal(1)
    world.repeat = value
    if (withdrawn !== undefined && withdrawn.until === undefined && withdrawn.at > now) {
      leave(world, withdrawn.id, 'removed')
      meet(stage, 'a tick is withdrawn')
    }
    for (const { id, at } of items)
      world.items.set(id, { id, lane, task: NO_TASK, batch: '', at, until: undefined, isNew: false })
    if (items.length > 0) meet(stage, lane === PLAIN ? 'a tick without a group' : 'a tick with a group')
  })

const pauseGroup = fc
  .record({ group: fc.constantFrom(...GROUPS), pause: fc.boolean() })
  .map(({ group, pause }): Step => async (world, stage) => {
    const { rig, queue, scripts } = stage
    const args = { channel: queue.channel, nowMs: world.now, pause, group: Buffer.from(group) }
    const isChanged = await run(rig.sender, scripts.pauseGroup, queue.keys, args)
    expect(isChanged, 'whether it was not so before').to.equal(world.paused.has(group) !== pause)
    if (pause) world.paused.add(group)
    else world.paused.delete(group)
    if (isChanged) world.passes.delete(group)
    meet(stage, pause ? 'pause' : 'resume')
  })

const pauseTask = fc
  .record({ task: fc.constantFrom('r', ...TASKS), pause: fc.boolean() })
  .map(({ task, pause }): Step => async (world, stage) => {
    const { rig, queue, scripts } = stage
    const { pausedTasks, returning } = world
    const args = { channel: queue.channel, pause, task: Buffer.from(task) }
    const isChanged = await run(rig.sender, scripts.pauseTask, queue.keys, args)
    expect(isChanged, 'whether it was not so before').to.equal(pausedTasks.has(task) === pause ? 0 : 1)
    if (isChanged === 0) return
    returning.delete(task)
    if (pause) pausedTasks.add(task)
    else {
      pausedTasks.delete(task)
      returning.set(task, 1)
      for (const one of returning.keys()) returning.set(one, returning.size)
    }
    world.passes.clear()
    meet(stage, pause ? 'a task is paused' : 'a task is resumed')
  })

/** As `setConfig` and `disableOperation` do. */
async function configure({ rig, queue, scripts }: Stage, nowMs: number, settings: readonly string[]): Promise<void> {
  const args = { channel: queue.channel, ifAbsent: false, epoch: 'e', settings }
  await run(rig.sender, scripts.configure, queue.keys, args)
  if (!settings.some((name) => name.startsWith('group'))) return
  let cursor = '0'
  do cursor = await run(rig.sender, scripts.refreshGroups, queue.keys, { channel: queue.channel, nowMs, cursor })
  while (cursor !== '0')
}

const text = (limit: number): string => (limit === Infinity ? '' : String(limit))
const rateText = (max: number): string => (max === Infinity ? '' : `${max}/${PER_MS}`)

const change = fc
  .oneof(
    fc.constantFrom(1, 2, Infinity).map((groupConcurrency): Partial<Limits> => ({ groupConcurrency })),
    fc.constantFrom(1, 3, Infinity).map((groupRate): Partial<Limits> => ({ groupRate })),
    fc.constantFrom(2, 4, Infinity, Infinity).map((concurrency): Partial<Limits> => ({ concurrency })),
    fc.constantFrom(5, Infinity, Infinity).map((rate): Partial<Limits> => ({ rate })),
  )
  .map((limits): Step => async (world, stage) => {
    const settings = Object.entries(limits).flatMap(([name, value]) =>
      name.endsWith('ate') ? [`${name}Limit`, rateText(value)] : [name, text(value)],
    )
    await configure(stage, world.now, settings)
    world.limits = { ...world.limits, ...limits }
    if ('rate' in limits) world.rateFrom = world.claims.length
    if ('groupRate' in limits) {
      world.groupRateFrom = world.claims.length
      world.hadGroupRate = true
    }
    world.passes.clear()
    meet(stage, 'a changed limit')
  })

const pauseQueue = fc.constantFrom(true, false, false).map((pause): Step => async (world, stage) => {
  await configure(stage, world.now, ['pollPaused', pause ? '1' : ''])
  world.isPaused = pause
  meet(stage, 'the whole queue is paused or resumed')
})

const closeBatch = fc.constantFrom(...BATCHES).map((name): Step => async (world, stage) => {
  const { rig, queue, scripts } = stage
  const id = `z${1_000 + world.counter++}`
  const last = raw(`0,,,0,${id.length}\n${id}last`)
  const args = { nowMs: world.now, client: 'me', name, last, size: 4 }
  const reply = await run(rig.sender, scripts.closeBatch, queue.keys, args)
  const batch = world.batches.get(name) ?? { state: 'open', pending: 0, completed: 0, removed: 0, last: '' }
  world.batches.set(name, batch)
  if (batch.state === 'open') {
    Object.assign(batch, { state: 'closed', last: id })
    finish(world, batch)
  } else meet(stage, 'a batch is closed again')
  const { state, pending, completed, removed } = batch
  expect(reply, `batch ${name}`).to.include({ state, pending, completed, removed })
  if (state === 'finished') meet(stage, 'a batch finishes')
})

const look = fc.constant<Step>((_, stage) => Promise.resolve(meet(stage, 'nothing is done')))

const STEPS = { add, poll, answer, remove, tick, pauseGroup, pauseTask, change, pauseQueue, closeBatch, look }
type Weights = Readonly<Record<keyof typeof STEPS, number>>
const WEIGHTS: Weights = {
  add: 10,
  poll: 14,
  answer: 10,
  remove: 2,
  tick: 3,
  pauseGroup: 4,
  pauseTask: 5,
  change: 3,
  pauseQueue: 1,
  closeBatch: 3,
  look: 1,
}

function stepsOf(weights: Weights) {
  const names = Object.keys(STEPS) as (keyof typeof STEPS)[]
  return fc.oneof(...names.map((name) => ({ weight: weights[name], arbitrary: STEPS[name] })))
}

/** Compares all that can be counted. */
async function compare(world: World, stage: Stage): Promise<void> {
  const { rig, queue, scripts } = stage
  await compareGroups(world, stage)
  const { now, items, paused, limits, batches } = world
  const ids = (await rig.redis.hkeys(queue.keys.messages)).sort()
  expect(ids, 'the messages').to.deep.equal([...items.keys()].sort())
  const visibleIn = (lane: string): number =>
    waitingIn(world, lane).filter((item) => item.at <= now && !item.isNew).length
  const names = GROUPS.map((group) => Buffer.from(group))
  const counts = await run(rig.sender, scripts.countGroups, queue.keys, { nowMs: now, names })
  expect(counts.map(({ visible, delayed, inFlight, paused: isPaused }) => ({ visible, delayed, inFlight, isPaused })))
    // of each group
    .to.deep.equal(
      GROUPS.map((group) => ({
        visible: visibleIn(group),
        delayed: waitingIn(world, group).length - visibleIn(group),
        inFlight: takenIn(world, group).length,
        isPaused: paused.has(group),
      })),
    )
  const totals = await run(rig.sender, scripts.totals, queue.keys, { nowMs: now, most: 500 })
  const all = [...batches.values()]
  expect(totals.groups.paused).to.equal(paused.size)
  expect(totals.pausedTasks).to.equal(world.pausedTasks.size)
  expect(totals.batches).to.deep.equal({
    unfinished: all.filter(({ state }) => state !== 'finished').length,
    finished: all.filter(({ state }) => state === 'finished').length,
  })
  for (const [n, reply] of (await run(rig.sender, scripts.batches, queue.keys, { names: BATCHES })).entries()) {
    const batch = batches.get(BATCHES[n] ?? '')
    const { state, pending, completed, removed } = batch ?? {}
    if (batch === undefined) expect(reply, `batch ${BATCHES[n]}`).to.equal(null)
    else expect(reply, `batch ${BATCHES[n]}`).to.include({ state, pending, completed, removed, dead: 0, expired: 0 })
  }
  const allVisible = [...items.values()].filter((item) => item.until === undefined && item.at <= now && !item.isNew)
  if (hasTasks(world)) {
    // the model does not know which of them the polls have met
    const inPaused = (item: Item): boolean => world.isPaused || paused.has(item.lane)
    const least = allVisible.filter((item) => inPaused(item) && (world.isPaused || item.task === NO_TASK)).length
    const most = allVisible.filter((item) => inPaused(item) || isHeldBack(world, item)).length
    expect(totals.visible, 'visible').to.equal(allVisible.length)
    expect(totals.paused, 'held back by a pause').to.be.within(least, most)
    return
  }
  // of the rates the model knows bounds only; and what the next poll brings back is not held back
  const isLapsed = [...items.values()].some(({ until }) => until !== undefined && until <= now)
  if (isLapsed || limits.rate !== Infinity || limits.groupRate !== Infinity) return
  const visible = LANES.reduce((sum, lane) => sum + visibleIn(lane), 0)
  const byPause = world.isPaused ? visible : [...paused].reduce((sum, group) => sum + visibleIn(group), 0)
  const free = GROUPS.filter((group) => !paused.has(group)).map((group) =>
    Math.min(visibleIn(group), Math.max(0, limits.groupConcurrency - takenIn(world, group).length)),
  )
  const room = Math.max(0, limits.concurrency - takenNow(world))
  const available = world.isPaused
    ? 0
    : Math.min(
        room,
        free.reduce((sum, one) => sum + one, visibleIn(PLAIN)),
      )
  const byLimit = Math.max(0, visible - byPause - available)
  expect({ visible: totals.visible, byPause: totals.paused, byLimit: totals.limited }).to.deep.equal({
    ...{ visible, byPause, byLimit },
  })
}

/** The names of all groups, page by page, and their claims beside those of the queue. */
async function compareGroups(world: World, { rig, queue, scripts }: Stage): Promise<void> {
  const { items, paused, claims, counter } = world
  const waiting = GROUPS.filter((group) => waitingIn(world, group).length > 0)
  const taken = GROUPS.map((group) => takenIn(world, group).length)
  const names: string[] = []
  let cursor = Buffer.alloc(0)
  do {
    const page = await run(rig.sender, scripts.listGroups, queue.keys, { cursor, count: 1 + (counter % 3) })
    names.push(...page.names.map(String))
    cursor = Buffer.from(page.cursor)
    expect(names.length, 'names, without end').to.be.at.most(GROUPS.length)
  } while (cursor.length > 0)
  expect(names.slice(0, waiting.length), 'the groups with waiting messages').to.deep.equal(waiting)
  expect(names, 'each name once').to.have.lengthOf(new Set(names).size)
  const known = GROUPS.filter((group, at) => waiting.includes(group) || (taken[at] ?? 0) > 0 || paused.has(group))
  expect(names, 'the groups').to.include.members(known)
  // without a rate, what has no claim is forgotten with its last one
  const had = world.hadGroupRate ? GROUPS.filter((group) => claims.some(({ lane }) => lane === group)) : []
  expect([...known, ...had], 'the groups').to.include.members(names)
  const held = await run(rig.sender, scripts.lostClaims, queue.keys, { most: GROUPS.length })
  const all = [...items.values()].filter(({ until, isNew }) => until !== undefined || isNew).length
  const most = Math.max(...taken)
  expect(held).to.include({ counted: taken.reduce((sum, one) => sum + one, 0), held: all, most })
  if (held !== null && most > 0) expect(taken[GROUPS.findIndex((group) => group === held.group)]).to.equal(most)
  const withClaims = taken.filter((count) => count > 0).length
  if (withClaims > 0) {
    const few = await run(rig.sender, scripts.lostClaims, queue.keys, { most: withClaims - 1 })
    expect(few, 'with more groups').to.equal(null)
  }
}

/** The cases that the draws must reach, because others are never compared. */
const OUTCOMES = [
  ...['a message with a group', 'a message without a group', 'a claim whose consumer is gone comes back'],
  ...['acknowledge', 'failed', 'released', 'remove', 'pause', 'resume', 'a changed limit', 'the queue is full'],
  ...['a tick without a group', 'a tick with a group', 'a tick is withdrawn'],
  ...['a task is paused', 'a task is resumed', 'a message of another task than the paused one'],
  ...['the whole queue is paused or resumed', 'a batch finishes', 'a batch is closed again', 'a closed batch refuses'],
]

const SLOW_OUTCOMES = [...OUTCOMES, 'the next poll goes on']

describe('groups, tasks, limits, pauses and batches together', () => {
  const rig = useReliable()

  /** `met` gets what has happened. */
  function property(scripts: AllScripts, met: Map<string, number>, { isSlow = false, weights = WEIGHTS } = {}) {
    const turn = fc.record({ step: stepsOf(weights), passed: fc.constantFrom(0, 0, 0, 1, 5, 13, 70) })
    return fc.asyncProperty(fc.array(turn, { maxLength: 60, size: 'max' }), async (turns) => {
      const queue = await rig.queue({ config: [['deliveryLimit', '1000000']] })
      const [world, stage] = [emptyWorld(), { isSlow, rig, queue, scripts, met }]
      for (const { step, passed } of turns) {
        world.now += passed
        await step(world, stage)
        for (const time of await queue.published()) world.asksAt = Math.min(world.asksAt, Number(time))
        expect(world.asksAt, 'when those who wait ask again').to.be.at.most(
          Math.max(world.now, availableAt(world, true)),
        )
        await compare(world, stage)
      }
    })
  }

  const real: AllScripts = { ...queueScripts, ...groupScripts }

  /** Draws again while a case was not met, because a few hundred draws can miss a rare one. */
  async function behavesAsModel(scripts: AllScripts, outcomes: readonly string[], isSlow = false): Promise<void> {
    const met = new Map<string, number>()
    const missing = () => outcomes.filter((outcome) => isLongForm && !met.has(outcome))
    for (let times = 0; times === 0 || (times < 6 && missing().length > 0); times++) {
      await fc.assert(property(scripts, met, { isSlow }), { numRuns: rounds(160) })
    }
    expect(missing(), 'cases that no draw met').to.deep.equal([])
  }

  it('behave as their model', () => behavesAsModel(real, OUTCOMES)).timeout(240_000)

  describe('with polls that give turns to one group each', () => {
    const PAGE = "LATE, TOGETHER = '', 100, 128, 16, 100"
    const END = 'if $looked >= MOST or #$woken == 0 or $areCut or isOver() then break end'
    const source = [
      [PAGE, PAGE.replace(/100$/, '1')],
      [END, 'break'],
    ].reduce((script, [pattern = '', code = '']) => plantLua(script, pattern, code), real.poll.source)
    const slow: AllScripts = { ...real, poll: { ...real.poll, source } }

    it('behave as their model', () => behavesAsModel(slow, SLOW_OUTCOMES, true)).timeout(240_000)

    it('the model finds a poll that hands out messages while groups are to have their turns', async () => {
      const planted = plantLua(
        slow.poll.source,
        'if isFull or $asleep > 0 and not $areCut then return end',
        'if isFull then return end',
      )
      const scripts = { ...slow, poll: { ...slow.poll, source: planted } }
      const found = await fc.check(property(scripts, new Map(), { isSlow: true }), {
        seed: 7,
        numRuns: 3_000,
        endOnFailure: true,
      })
      expect(found.failed, 'found').to.equal(true)
      expect(String(found.errorInstance)).to.match(/while ".*" waits for its turn/)
    }).timeout(240_000)
  })

  describe('the model finds planted faults', () => {
    type Name = keyof AllScripts
    const RARELY = Object.fromEntries(Object.keys(WEIGHTS).map((name) => [name, 1])) as Weights
    /** `weights`: other steps are likely, where those of the property seldom lead to the state that shows the fault. */
    const FAULTS: readonly [what: string, script: Name, pattern: string, code: string, weights?: Weights][] = [
      [
        'the limit of a group is passed over',
        'poll',
        'if $groups.concurrency then $most = isGroupFull($groups, $state) and 0 or math.max(1, $groups.concurrency - $state.claims) end',
        '',
      ],
      ['a paused group goes on', 'poll', 'if $isPaused then $most = 0 end', ''],
      [
        'a group that had its turn stays the first',
        'poll',
        'for _, $name in ipairs($order) do push($places.turns, nextTurn($groups), $name) end',
        '',
      ],
      [
        'the rate of a group is passed over',
        'poll',
        'if $groups.rate then $most = math.min($most, $groups.rate.max - $state.window.sum) end',
        '',
      ],
      [
        'the limit of the queue is passed over',
        'poll',
        '$want = math.min($want, math.max(0, $concurrency - $claims))',
        '',
      ],
      [
        'the rate of the queue is passed over',
        'poll',
        '$want = math.min($want, math.max(0, $rate.max - $window.sum))',
        '',
      ],
      ['the slot of a consumer that is gone stays taken', 'poll', 'refreshGroups($groups, freed, ends)', ''],
      [
        'an acknowledgement frees no slot',
        'acknowledge',
        'local $_, $areCalled = pcall(refreshGroups, $groups, $names, $ended)',
        'local $areCalled = false',
      ],
      ['the end of a claim calls no one', 'acknowledge', 'if $wasAtLimit then publishSlot($messages, $now) end', ''],
      [
        'those who wait hear nothing of a group that is resumed',
        'pauseGroup',
        "if $isPaused then redis.call('PUBLISH', ARGV[1], '0') end",
        '',
        { ...RARELY, add: 10, poll: 14, pauseGroup: 14 },
      ],
      [
        'full groups hear nothing of a limit that was raised',
        'refreshGroups',
        'refreshGroups($groups, $names, {}, true)',
        'nil',
        { ...RARELY, add: 10, poll: 14, change: 14, pauseTask: 0 },
      ],
      [
        'a batch ends one message too early',
        'acknowledge',
        'and $batch.pending == 0 and',
        'and $batch.pending <= 1 and',
      ],
      [
        'a batch keeps counting a message that was removed',
        'remove',
        "log = $log}, $ended, 'removed')",
        "log = $log}, {}, 'removed')",
      ],
      ['the message of a tick has no turn', 'repeat', 'refreshGroups($groups, $touched, {}, true)', 'do end'],
      [
        'a tick that is withdrawn keeps its place',
        'repeat',
        '$settings.grouped and isToCome($groups.schedule)',
        'false',
      ],
      ['a paused task goes on', 'poll', 'asideOf = scoreOf', 'asideOf = nil'],
      ['what is set aside forgets its time', 'poll', '$task * $aside.span + $at', '$task * $aside.span'],
      ['a resumed task stays away', 'poll', '$all, $given = giveBack($aside.range($number))', '$all = true'],
      ['a task is paused only until a poll', 'pauseTask', "redis.call('ZADD', $pauses, $free, $task)", ''],
      [
        'those who wait hear nothing of a task that is resumed',
        'pauseTask',
        "redis.call('PUBLISH', ARGV[1], '0')",
        '',
        { ...RARELY, add: 10, poll: 14, pauseTask: 14 },
      ],
      ['groups that have only claims are not listed', 'listGroups', "or 's0'", "or 'p-'"],
      ['groups that are only paused are not listed', 'listGroups', "and 'p-'", "and ''"],
      [
        'a group with claims and messages is listed twice',
        'listGroups',
        '#$group <= LONGEST and not isWaiting($group) then',
        '#$group <= LONGEST then',
      ],
      [
        'a page of groups ends before its last one',
        'listGroups',
        '$from = behind($prefix)',
        '$from = behind(behind($prefix))',
      ],
      [
        'claims of groups are counted once for each group',
        'lostClaims',
        '$sum + $claims',
        '$sum + math.min(1, $claims)',
      ],
      ['the claims of the queue are those of its groups', 'lostClaims', "redis.call('ZCARD', inFlight)", 'sum'],
      ['the last group is the one with most claims', 'lostClaims', '$claims > highest', '$claims > 0'],
      ['as many groups as may be are too many', 'lostClaims', '> most then', '>= most then'],
      [
        'a batch adds its last message again when it is closed again',
        'closeBatch',
        "local $isNew = $batch.state == 'o'",
        'local $isNew = true',
      ],
      [
        'a batch that has finished counts as unfinished',
        'acknowledge',
        'if $batches.over then countUnfinished($batches, -$batches.over) end',
        '',
      ],
    ]

    for (const [what, name, pattern, code, weights] of FAULTS) {
      it(what, async () => {
        const { source, decode } = real[name] as Script<ScriptSource, unknown>
        const planted = { ...real, [name]: { source: plantLua(source, pattern, code), decode } }
        // always the same draws: some faults need many of them
        const draws = property(planted, new Map(), { ...(weights && { weights }) })
        const found = await fc.check(draws, { seed: 7, numRuns: 3_000, endOnFailure: true })
        expect(found.failed, 'found').to.equal(true)
        expect(found.errorInstance, 'not an error of the script').to.be.instanceOf(AssertionError)
        // the other tests do not play these steps without a fault
        if (weights) await fc.assert(property(real, new Map(), { weights }), { seed: 7, numRuns: found.numRuns })
      }).timeout(240_000)
    }
  })
})
