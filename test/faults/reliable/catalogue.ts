import { cluster, sentinel, standalone, type Stage } from '../bench/stage.js'
import type { ReliableParams } from './bench.js'
import { clusters, consumers, sentinels, server, sharded, type ReliableScenario } from './scenarios.js'

/** Faults that happen in one place, which is started for all of them. */
export interface Group<S extends Stage = Stage> {
  readonly title: string
  readonly start: () => Promise<S>
  readonly scenarios: readonly ReliableScenario<S>[]
  readonly bench?: Partial<ReliableParams>
}

/**
 * Where replicas take over, a message counts as added when they have it. Cancelling and putting off wait for no replica, so they are left
 * out: to lose them is Redis's right.
 */
const replicated = (replicas: number): Partial<ReliableParams> => ({
  load: { amend: false, durability: { replicas, timeoutMs: 1_000 } },
})

function group<S extends Stage>(given: Group<S>): Group {
  return given as unknown as Group // what a scenario needs of its stage is known in its group only
}

export const groups: readonly Group[] = [
  group({ title: 'one server, every write on disk', start: standalone, scenarios: [...consumers, ...server] }),
  group({
    title: 'three sentinels, a master and two replicas',
    start: sentinel,
    scenarios: sentinels,
    bench: replicated(2),
  }),
  group({
    title: 'a cluster of three masters and three replicas',
    start: cluster,
    scenarios: clusters,
    bench: replicated(1),
  }),
  group({
    title: 'a sharded queue over a cluster of three masters and three replicas',
    start: cluster,
    scenarios: sharded,
    bench: { shards: 6, ...replicated(1) },
  }),
]
