import { expect } from 'chai'
import type { ClusterStage, ReplicatedStage, Stage, StandaloneStage } from '../bench/stage.js'
import {
  failOver,
  killMaster,
  killMasterOf,
  leaveMaster,
  loseMaster,
  loseMasterOf,
  moveSlot,
  stopMasterOf,
  withoutElections,
} from '../scenarios/failover.js'
import type { AnyScenario } from '../scenarios/scenario.js'
import { VISIBILITY_MS, type ReliableBench, type ReliableParams, type Result } from './bench.js'
import { keysOf } from './contents.js'
import type { Allowance, Limits } from './findings.js'
import { POISON_LIMIT } from './job.js'

export interface ReliableScenario<S extends Stage = Stage> extends AnyScenario<S, ReliableBench, Result, Allowance> {
  /** A fleet of another kind than that of the other faults in its place. */
  readonly bench?: Partial<ReliableParams>
}

const CUTS = 4
/** The first shards are each at another of them. */
const MASTERS = 3
const NEW_SHARDS = { more: 10, fewer: 3 }
/** There and back, and there again. */
const HAND_OVERS = 3
const LONG_MS = 2 * VISIBILITY_MS
/** Longer than a client waits for an answer, and than any visibility. */
const SILENT_MS = 3 * VISIBILITY_MS
const CROWD = 600
const BACKLOG = 300
const BACKLOG_DELAY_MS = 500

/** Consumers that die, or stand still while others get their messages. */
export const consumers: readonly ReliableScenario[] = [
  {
    name: 'SIGKILL of all consumers while they handle, one after the other',
    async fault(bench) {
      const reviving: Promise<void>[] = []
      for (const consumer of [...bench.workers.poller, ...bench.workers.worker]) {
        await bench.inTheMiddle(consumer)
        await consumer.kill()
        await bench.pause(0, 300)
        reviving.push(bench.revive(consumer))
      }
      await Promise.all(reviving)
    },
    also({ abandoned }, { workers }) {
      const killed = workers.poller.length + workers.worker.length
      expect(abandoned, 'in the hands of the killed').to.be.at.least(killed)
    },
  },
  {
    name: 'SIGSTOP of consumers while they handle, for longer than the visibility',
    async fault(bench) {
      const stopped = [bench.one('poller'), bench.one('worker')]
      for (const consumer of stopped) {
        await bench.inTheMiddle(consumer)
        consumer.signal('SIGSTOP')
      }
      await bench.pause(LONG_MS)
      for (const consumer of stopped) consumer.signal('SIGCONT')
    },
    also: outlived,
  },
  {
    name: 'event loops of all consumers blocked for longer than the visibility',
    async fault(bench) {
      const { poller, worker } = bench.workers
      const all = [...poller, ...worker]
      await bench.inTheMiddle(bench.one('poller'))
      await Promise.all(all.map((consumer) => consumer.order({ kind: 'block', ms: LONG_MS })))
    },
    also: outlived,
  },
]

/** The server dies, or stands still, or cannot be reached. */
export const server: readonly ReliableScenario<StandaloneStage>[] = [
  {
    name: 'SIGKILL of Redis under consumers and a restart, appendfsync always',
    async fault(bench, { server }) {
      await server.kill('SIGKILL')
      await bench.pause(300, LONG_MS)
      await server.restart()
    },
    also: sawErrors,
  },
  {
    name: 'SIGSTOP of Redis for longer than the visibility and all timeouts',
    async fault(bench, { server }) {
      await server.kill('SIGSTOP')
      await bench.pause(SILENT_MS)
      await server.kill('SIGCONT')
    },
    also: sawErrors,
  },
  {
    name: 'all connections of the fleet are reset, again and again',
    async fault(bench, { proxy }) {
      for (let i = 0; i < CUTS; i++) {
        proxy.cut()
        await bench.pause(100, 500)
      }
    },
    also: sawErrors,
  },
  {
    name: 'all connections are half-open: silent, and then gone',
    async fault(bench, { proxy }) {
      expect(proxy.halfOpen({ but: [] })).to.be.at.least(2)
      await bench.pause(SILENT_MS)
      proxy.cut()
    },
    also: sawErrors,
  },
  {
    name: 'the server hears all commands and its answers are swallowed',
    async fault(bench, { proxy }) {
      proxy.blackhole('toClient')
      await bench.pause(SILENT_MS)
      proxy.blackhole(false)
    },
    also: sawErrors,
  },
]

export const GROUPS = 16
/** Of each group. The messages of one become visible half as often, so some wait for the rate also without a fault. */
export const GROUP_LIMITS = { groupConcurrency: 3, groupRate: { max: 6, perMs: 500 } } satisfies Limits

/** What a fault has left of a group waits for its rate: some 20 messages, at 12 a second. */
const GROUP_RATED: Allowance = { laterMs: 5_000 }

/** The same with limits and turns: they are not exceeded, and each slot comes back. */
export const limited: readonly ReliableScenario<StandaloneStage>[] = [...consumers, ...server.slice(0, 1)].map(
  (scenario) => ({ ...scenario, name: `groups: ${scenario.name}`, allowed: GROUP_RATED }),
)

/** Of the queue, over all processes: fewer messages than the consumers take at once, and fewer deliveries than they can handle. */
export const LIMITS = { concurrency: 8, rate: { max: 12, perMs: 100 } } satisfies Limits

/** What was added before and after the fault waits for the rate: some 700 messages, at 120 a second. */
const RATED: Allowance = { laterMs: 10_000 }

/** The same with limits of the whole queue. Hundreds of messages before and after the fault reach both limits. */
export const overall: readonly ReliableScenario<StandaloneStage>[] = [...consumers, ...server.slice(0, 1)].map(
  (scenario) => reachingLimits({ ...scenario, name: `limits over all processes: ${scenario.name}`, allowed: RATED }),
)

function reachingLimits<S extends Stage>({ fault, ...scenario }: ReliableScenario<S>): ReliableScenario<S> {
  return {
    ...scenario,
    async fault(bench, stage) {
      await pileUp(bench)
      await fault(bench, stage)
      await pileUp(bench)
    },
    also(result, bench, stage) {
      expect(result.fullest, 'deliveries in a period').to.be.at.least(LIMITS.rate.max)
      return scenario.also?.(result, bench, stage)
    },
  }
}

/** The same with batches, each of which ends once, and with waits for the end of messages. */
export const awaited: readonly ReliableScenario<StandaloneStage>[] = [...consumers, ...server.slice(0, 2)].map(
  ({ name, fault }) => ({ name: `batches and waits: ${name}`, fault, also: hadBatches }),
)

/** One group has hundreds of messages, others have one each: none of these waits longer than for a message of each other group. */
export const crowded: readonly ReliableScenario<StandaloneStage>[] = consumers.slice(0, 2).map(({ name, fault }) => ({
  name: `one group has most messages: ${name}`,
  async fault(bench, stage) {
    await bench.one('producer').order({ kind: 'burst', count: CROWD, delay: 0 })
    await fault(bench, stage)
  },
  also: ({ added }) => void expect(added, 'messages').to.be.above(CROWD),
}))

/**
 * An `add` resolves when the replicas have its message, with `durability`: none of those may be lost. Claims and answers wait for no replica: those of the last moment are forgotten, so that
 * others get the message while its consumer works, or has done with it, and its attempts begin where they were. That is nothing after a
 * SIGKILL mostly, and some fifty messages where there are two masters for a moment: what was pending then. A message that fails at once can
 * spend several attempts in that moment, and then all of them again.
 */
const FORGOTTEN: Allowance = { overlapping: 200, late: 200, again: 200, denied: 200, excess: POISON_LIMIT }

/**
 * The new master does not know the claims of the last moment, which no replica had: they count neither for its rate nor as in flight. Their visibility and
 * their period end soon, and what it claims itself until then is within its limits.
 */
function beyondOf({ max, perMs }: { readonly max: number; readonly perMs: number }, times = 1) {
  return { crowded: times * max * Math.ceil(VISIBILITY_MS / perMs), rushed: times * max }
}

const BEYOND_GROUP_LIMITS = beyondOf(GROUP_LIMITS.groupRate, GROUPS)
const BEYOND_LIMITS = beyondOf(LIMITS.rate)

export const limitedSentinels: readonly ReliableScenario<ReplicatedStage>[] = [
  {
    name: 'groups: SIGKILL of the master under consumers: the sentinels choose another',
    allowed: { ...FORGOTTEN, ...GROUP_RATED, ...BEYOND_GROUP_LIMITS },
    fault: (_, stage) => killMaster(stage),
  },
]

export const overallSentinels: readonly ReliableScenario<ReplicatedStage>[] = [
  reachingLimits({
    name: 'limits over all processes: SIGKILL of the master under consumers: the sentinels choose another',
    allowed: { ...FORGOTTEN, ...RATED, ...BEYOND_LIMITS },
    fault: (_, stage) => killMaster(stage),
  }),
]

/**
 * Also lost are the ends of batches, which then end once more, and their closing: the producer closes them again, with another last message. Two producers
 * begin some five batches a second; these are those that end or are closed in the two seconds before the takeover. Waits are in the processes that wait, and their
 * messages are durable: a message whose end is forgotten is delivered again and ends again, so no wait may hang.
 */
const REOPENED: Allowance = { unlike: 11, premature: 11, reopened: 11 }

export const awaitedSentinels: readonly ReliableScenario<ReplicatedStage>[] = [
  {
    name: 'batches and waits: SIGKILL of the master under consumers: the sentinels choose another',
    allowed: { ...FORGOTTEN, ...REOPENED },
    fault: (_, stage) => killMaster(stage),
    also: hadBatches,
  },
]

/** All claims and answers of the time in which no replica heard of them are forgotten. */
const CUT_OFF: Allowance = { ...FORGOTTEN, overlapping: 500, late: 500, again: 500, denied: 500 }

export const sentinels: readonly ReliableScenario<ReplicatedStage>[] = [
  {
    name: 'SIGKILL of the master under consumers: the sentinels choose another',
    allowed: FORGOTTEN,
    fault: (_, stage) => killMaster(stage),
  },
  {
    name: 'SIGKILL of a master under consumers whose replicas have lost it',
    allowed: CUT_OFF,
    fault: loseMaster,
  },
  {
    name: 'SENTINEL FAILOVER under consumers while the old master lives on',
    allowed: FORGOTTEN,
    fault: leaveMaster,
  },
]

export const clusters: readonly ReliableScenario<ClusterStage>[] = [
  {
    name: 'SIGKILL of the master of a reliable queue: its replica takes over',
    allowed: FORGOTTEN,
    fault: (bench, stage) => killMasterOf(stage, keysOf(bench.queue).messages),
  },
  {
    name: 'SIGKILL of the master of a reliable queue, whose replica has lost it',
    allowed: CUT_OFF,
    fault: (bench, stage) => loseMasterOf(bench, stage, keysOf(bench.queue).messages),
  },
  {
    name: 'SIGSTOP of the master of a reliable queue until its replica has taken over',
    // what lay in its sockets is carried out when it goes on, before it learns that it is no master any more
    allowed: FORGOTTEN,
    fault: (bench, stage) => stopMasterOf(stage, keysOf(bench.queue).messages),
  },
  {
    name: 'CLUSTER FAILOVER of the master of a reliable queue',
    fault: (bench, stage) => failOver(stage, keysOf(bench.queue).messages),
  },
  {
    name: 'the slot of a reliable queue moves to another master and back while it is used',
    fault: (bench, stage) => moveSlot(bench, stage, keysOf(bench.queue).messages),
  },
]

/** A master of a queue with limits, groups or batches fails over. The short form plays one of these faults, with all of that in one queue. */
function failovers(
  kind: string,
  {
    allowed,
    forgotten,
    also,
    isLong = true,
  }: Pick<ReliableScenario, 'allowed' | 'also' | 'isLong'> & { readonly forgotten: Allowance },
): readonly ReliableScenario<ClusterStage>[] {
  return [
    {
      name: `${kind}: SIGKILL of the master of the queue: its replica takes over`,
      isLong,
      allowed: { ...FORGOTTEN, ...allowed, ...forgotten },
      fault: (bench, stage) => killMasterOf(stage, keysOf(bench.queue).messages),
      also,
    },
    {
      name: `${kind}: SIGKILL of the master of the queue, whose replica has lost it`,
      isLong: true,
      allowed: { ...CUT_OFF, ...allowed, ...forgotten },
      fault: (bench, stage) => loseMasterOf(bench, stage, keysOf(bench.queue).messages),
      also,
    },
    {
      name: `${kind}: SIGSTOP of the master of the queue until its replica has taken over`,
      isLong: true,
      allowed: { ...FORGOTTEN, ...allowed, ...forgotten },
      fault: (bench, stage) => stopMasterOf(stage, keysOf(bench.queue).messages),
      also,
    },
    {
      // the replica takes over when it has everything: nothing is forgotten. One takes a moment, in which few messages come
      name: `${kind}: CLUSTER FAILOVER of the master of the queue`,
      isLong: true,
      ...(allowed !== undefined && { allowed }),
      fault: (bench, stage) =>
        withoutElections(stage, async () => {
          for (let times = 0; times < HAND_OVERS; times++) {
            await failOver(stage, keysOf(bench.queue).messages)
            await stage.healthy()
            await bench.pause(500, 1_000)
          }
        }),
      also,
    },
  ]
}

export const limitedClusters = failovers('groups', { allowed: GROUP_RATED, forgotten: BEYOND_GROUP_LIMITS })

export const overallClusters = failovers('limits over all processes', {
  allowed: RATED,
  forgotten: BEYOND_LIMITS,
}).map(reachingLimits)

export const awaitedClusters = failovers('batches and waits', { forgotten: REOPENED, also: hadBatches })

export const togetherClusters = failovers('limits, groups and batches together', {
  isLong: false,
  allowed: RATED,
  forgotten: { ...BEYOND_LIMITS, ...REOPENED, crowded: BEYOND_LIMITS.crowded + BEYOND_GROUP_LIMITS.crowded },
  also: hadBatches,
}).map(reachingLimits)

/** Processes that come back in the middle of it, and six servers, share the machine. */
const SLOW: Allowance = { laterMs: 10_000 }

/** Until what killed consumers have left is handled, the lowest priorities wait. */
const PILED_UP: Allowance = { laterMs: 30_000 }

/** After a lost reply the client repeats a call, and cannot learn that the first attempt has removed, restored or found the message. */
const REPEATED: Allowance = { unremoved: 40, unrestored: 40, revived: 40 }

/** Cancelling, removing, restoring and postponing wait for no replica: in a failover their last changes are lost, too. */
const CHANGED: Allowance = { ...FORGOTTEN, ...SLOW, ...REPEATED, cancelled: 40, early: 40 }

/** While a schedule moves, ticks of that moment can come from both shards. */
const MOVED: Allowance = { ...SLOW, doubled: 20 }

/** The same while a master is away: its shard catches up with the ticks of up to six seconds before the schedule ends there; four schedules have 10 a second. */
const MOVED_LATE: Allowance = { ...MOVED, doubled: 60 }

/** Redis loses nothing: visible messages come by their priority. */
const IN_ORDER: Allowance = { ...MOVED, disordered: 0 }

/** All masters have shards of it. */
export const sharded: readonly ReliableScenario<ClusterStage>[] = [
  {
    name: 'SIGKILL of each master of a sharded queue, one after the other',
    allowed: CHANGED,
    async fault(bench, stage) {
      for (const part of bench.parts.slice(0, MASTERS)) {
        await killMasterOf(stage, keysOf(part).messages)
        await stage.healthy()
      }
    },
  },
  {
    name: 'SIGSTOP of a master of a sharded queue until its replica has taken over',
    // when it goes on, it answers as it was before it learns that it is no master any more
    allowed: { ...CHANGED, unfound: 200 },
    fault: (bench, stage) => stopMasterOf(stage, keysOf(bench.parts[1] ?? '').messages),
  },
  dying('more'),
  dying('fewer'),
  {
    name: 'SIGKILL of masters of a sharded queue whose processes come back with more shards, and then with fewer',
    allowed: { ...CHANGED, ...MOVED_LATE, doubled: 120 }, // two moves
    async fault(bench, stage) {
      for (const [at, which] of (['more', 'fewer'] as const).entries()) {
        const death = killMasterOf(stage, keysOf(bench.parts[at] ?? '').messages)
        await Promise.all([bench.changeShards(NEW_SHARDS[which]), death])
        await stage.healthy()
      }
    },
  },
  handingOver('more'),
  handingOver('fewer', true),
  {
    name: 'the slot of a shard moves to another master and back while its processes come back with more shards',
    isLong: true,
    allowed: IN_ORDER,
    async fault(bench, stage) {
      await pileUp(bench)
      await withoutElections(stage, async () => {
        const moving = moveSlot(bench, stage, keysOf(bench.parts[1] ?? '').messages)
        await Promise.all([bench.changeShards(NEW_SHARDS.more), moving])
      })
    },
  },
  {
    name: 'SIGKILL of a master of a sharded queue, whose replica has lost it',
    isLong: true,
    allowed: { ...CUT_OFF, ...SLOW, ...REPEATED, cancelled: 80, early: 80, unrestored: 80 },
    fault: (bench, stage) => loseMasterOf(bench, stage, keysOf(bench.parts[1] ?? '').messages),
  },
  ...consumers.slice(0, 2).map(({ name, ...scenario }) => ({
    ...scenario,
    name: `of a sharded queue: ${name}`,
    isLong: true,
    allowed: { ...PILED_UP, disordered: 0 },
  })),
]

/** The same with bugs in the library: each of these scenarios shows one. */
export function scenarioOf<S extends Stage>(
  scenarios: readonly ReliableScenario<S>[],
  start: string,
): ReliableScenario<S> {
  const [found, another] = scenarios.filter(({ name }) => name.startsWith(start))
  if (found === undefined || another !== undefined) throw new Error(`"${start}" is not the start of one scenario`)
  return found
}

function dying(which: keyof typeof NEW_SHARDS): ReliableScenario<ClusterStage> {
  return {
    name: `SIGKILL of all processes of a sharded queue, which come back with ${which} shards while a master dies`,
    isLong: true,
    allowed: { ...CHANGED, ...MOVED_LATE },
    async fault(bench, stage) {
      const death = killMasterOf(stage, keysOf(bench.parts[2] ?? '').messages)
      await Promise.all([bench.changeShards(NEW_SHARDS[which]), death])
    },
  }
}

/** The replica of each master takes over, one after the other, once it has all of its master's data. */
function handingOver(which: keyof typeof NEW_SHARDS, isLong?: true): ReliableScenario<ClusterStage> {
  return {
    name: `CLUSTER FAILOVER of each master of a sharded queue, whose processes come back with ${which} shards`,
    isLong,
    allowed: IN_ORDER,
    async fault(bench, stage) {
      const parts = bench.parts.slice(0, MASTERS)
      const handOver = async (): Promise<void> => {
        for (const part of parts) {
          await failOver(stage, keysOf(part).messages)
          await stage.healthy()
        }
      }
      await pileUp(bench)
      await withoutElections(stage, async () => {
        await Promise.all([bench.changeShards(NEW_SHARDS[which]), handOver()])
      })
    },
  }
}

/** Adds so many messages that become visible at once that they wait for each other. */
async function pileUp(bench: ReliableBench): Promise<void> {
  await bench.one('producer').order({ kind: 'burst', count: BACKLOG, delay: BACKLOG_DELAY_MS })
}

/** Not for failovers: each call may survive such a fault without an error, as the library promises. */
function sawErrors({ errors }: Result): void {
  expect(Object.keys(errors), 'no consumer noticed the fault').not.to.deep.equal([])
}

/**
 * Else nothing was tried. By the clock, which is also that of Redis: a client may find its connection dead when its process goes on, and a worker
 * does not answer for what it knows to be over.
 */
function outlived({ tooLate, abandoned }: Result): void {
  expect(tooLate + abandoned, 'handlings that were longer than their visibility').to.be.at.least(1)
}

/** Checks that batches have finished, and that the ends of messages were waited for. */
function hadBatches({ batches, waited }: Result): void {
  expect(batches, 'batches that have finished').to.be.at.least(1)
  expect(waited, 'messages whose end was waited for').to.be.at.least(1)
}
