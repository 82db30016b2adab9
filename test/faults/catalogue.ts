import type { BenchParams } from './bench/bench.js'
import { withDate } from './bench/clock.js'
import { cluster, sentinel, standalone, type Stage } from './bench/stage.js'
import { acl, dns, tls, withAcl, withName, withTls } from './scenarios/access.js'
import { longDelays, redisJumps } from './scenarios/clocks.js'
import { data } from './scenarios/data.js'
import { clusters, sentinels } from './scenarios/failover.js'
import { network } from './scenarios/network.js'
import { processes } from './scenarios/processes.js'
import type { Scenario } from './scenarios/scenario.js'
import { refusals, server } from './scenarios/server.js'

/** Faults that happen in one place, which is started for all of them. */
export interface Group<S extends Stage = Stage> {
  readonly title: string
  readonly start: () => Promise<S>
  readonly scenarios: readonly Scenario<S>[]
  readonly bench?: Partial<BenchParams>
  /** The share of a soak that is spent there. */
  readonly soak: number
}

/**
 * Where replicas take over, an offer counts when they have it. What Redis does not wait for there, cancelling and putting
 * off, is left out: losing it is its right.
 */
const replicated = (replicas: number): Partial<BenchParams> => ({
  load: { changes: false, durability: { replicas, timeoutMs: 1_000 } },
})

function group<S extends Stage>(given: Group<S>): Group {
  return given as unknown as Group // what a scenario needs of its stage is known in its group only
}

export const groups: readonly Group[] = [
  group({
    title: 'one server, every write on disk',
    start: standalone,
    scenarios: [...processes, ...server, ...refusals, ...network, ...data],
    soak: 6,
  }),
  group({ title: 'a user with few rights', start: withAcl, scenarios: acl, soak: 0 }),
  group({ title: 'TLS', start: withTls, scenarios: tls, soak: 0 }),
  group({ title: 'a host name', start: withName, scenarios: dns, soak: 0 }),
  group({ title: 'the date of Redis', start: withDate, scenarios: [redisJumps], soak: 0 }),
  group({ title: 'months', start: withDate, scenarios: [longDelays], soak: 0 }),
  group({
    title: 'three sentinels, a master and two replicas',
    start: sentinel,
    scenarios: sentinels,
    bench: replicated(2),
    soak: 1,
  }),
  group({
    title: 'a cluster of three masters and three replicas',
    start: cluster,
    scenarios: clusters,
    bench: replicated(1),
    soak: 2,
  }),
]
