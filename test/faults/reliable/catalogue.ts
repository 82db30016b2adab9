import { cluster, sentinel, standalone, type Stage } from '../bench/stage.js'
import type { ReliableParams } from './bench.js'
import { GROUP_PLANTS, LIMIT_PLANTS, PLANTS, type Plant } from './plants.js'
import {
  GROUPS,
  GROUP_LIMITS,
  LIMITS,
  awaited,
  awaitedClusters,
  awaitedSentinels,
  clusters,
  consumers,
  crowded,
  limited,
  limitedClusters,
  limitedSentinels,
  overall,
  overallClusters,
  overallSentinels,
  sentinels,
  server,
  sharded,
  togetherClusters,
  type ReliableScenario,
} from './scenarios.js'

/** Faults that happen in one place, which is started for all of them. */
export interface Group<S extends Stage = Stage> {
  readonly title: string
  readonly start: () => Promise<S>
  readonly scenarios: readonly ReliableScenario<S>[]
  readonly bench?: Partial<ReliableParams>
  /** Its faults find these in the library. */
  readonly plants?: readonly Plant[]
}

/**
 * Where replicas take over, a message counts as added when they have it. Cancelling and putting off wait for no replica, so they are left
 * out: to lose them is Redis's right.
 */
const replicated = (replicas: number): Partial<ReliableParams> => ({
  load: { changes: false, durability: { replicas, timeoutMs: 1_000 } },
})

/** Adds less often than the limits allow, so that what a fault has left behind is handled soon. */
function whole({ load }: Partial<ReliableParams>): Partial<ReliableParams> {
  return { limits: LIMITS, load: { ...load, everyMs: 84 } }
}

/** Enough groups that the limits are enough for each group. */
function limits({ load }: Partial<ReliableParams>): Partial<ReliableParams> {
  return { limits: GROUP_LIMITS, load: { ...load, groups: GROUPS } }
}

/** Adds a batch of twelve now and then, therefore half as often, and waits for each message that is in no batch. */
function ends({ load }: Partial<ReliableParams>): Partial<ReliableParams> {
  return { load: { ...load, everyMs: 56, batchOf: 12, waits: true } }
}

/** All of that in one queue. */
function together({ load }: Partial<ReliableParams>): Partial<ReliableParams> {
  const { groupConcurrency } = GROUP_LIMITS
  return {
    limits: { ...LIMITS, groupConcurrency },
    load: { ...ends(whole({ load })).load, everyMs: 84, groups: GROUPS },
  }
}

function group<S extends Stage>(given: Group<S>): Group {
  return given as unknown as Group // what a scenario needs of its stage is known in its group only
}

export const groups: readonly Group[] = [
  group({ title: 'one server, every write on disk', start: standalone, scenarios: [...consumers, ...server] }),
  group({
    title: 'groups with limits, one server, every write on disk',
    start: standalone,
    scenarios: limited,
    bench: limits({}),
    plants: GROUP_PLANTS,
  }),
  group({
    title: 'groups with limits, three sentinels, a master and two replicas',
    start: sentinel,
    scenarios: limitedSentinels,
    bench: limits(replicated(2)),
  }),
  group({
    title: 'limits over all processes, one server, every write on disk',
    start: standalone,
    scenarios: overall,
    bench: whole({}),
    plants: LIMIT_PLANTS,
  }),
  group({
    title: 'limits over all processes, three sentinels, a master and two replicas',
    start: sentinel,
    scenarios: overallSentinels,
    bench: whole(replicated(2)),
  }),
  group({
    title: 'batches and waits, one server, every write on disk',
    start: standalone,
    scenarios: awaited,
    bench: ends({}),
  }),
  group({
    title: 'batches and waits, three sentinels, a master and two replicas',
    start: sentinel,
    scenarios: awaitedSentinels,
    bench: ends(replicated(2)),
  }),
  group({
    title: 'a group with most of the messages, one server, every write on disk',
    start: standalone,
    scenarios: crowded,
    bench: { load: { tenants: true } },
  }),
  group({
    title: 'three sentinels, a master and two replicas',
    start: sentinel,
    scenarios: sentinels,
    bench: replicated(2),
  }),
  group({
    title: 'a cluster of three masters and three replicas',
    start: cluster,
    scenarios: [
      ...clusters,
      ...limitedClusters.map((scenario) => ({ ...scenario, bench: limits(replicated(1)) })),
      ...overallClusters.map((scenario) => ({ ...scenario, bench: whole(replicated(1)) })),
      ...awaitedClusters.map((scenario) => ({ ...scenario, bench: ends(replicated(1)) })),
      ...togetherClusters.map((scenario) => ({ ...scenario, bench: together(replicated(1)) })),
    ],
    bench: replicated(1),
  }),
  group({
    title: 'a sharded queue over a cluster of three masters and three replicas',
    start: cluster,
    scenarios: sharded,
    bench: { shards: 6, load: { ...replicated(1).load, changes: true, asks: true, schedules: 4 } },
    plants: PLANTS,
  }),
]
