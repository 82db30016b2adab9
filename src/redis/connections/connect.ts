import { Cluster, type Redis } from 'ioredis'
import type { Emit } from '../../events.js'
import type { Settings } from '../../options.js'
import { clusterRetryStrategy } from '../topology/cluster-retries.js'
import { ClusterTopology } from '../topology/cluster-topology.js'
import { MasterFinder } from '../topology/master-finder.js'
import { slotsTimeout } from '../topology/slot-requests.js'
import type { Target } from '../options.js'
import { LIMITS } from './ioredis-defaults.js'
import { BorrowedTopology, SingleTopology } from '../topology/single-topology.js'
import type { IsStale } from './remote-address.js'
import type { Topology } from '../topology/topology.js'

/** Creates the topology. `demoted` is called for servers that are not the right ones any more, where ioredis does not handle that. */
export function createTopology(
  target: Target,
  settings: Settings,
  emit: Emit,
  demoted: (isStale: IsStale) => void,
): Topology {
  const common = { settings, emit, demoted }
  switch (target.kind) {
    case 'single':
      return new SingleTopology({ ...common, options: target.redis })
    case 'replicated': {
      const finder = new MasterFinder(target.nodes, target.redis, settings)
      return new SingleTopology({ ...common, options: target.redis, finder })
    }
    case 'cluster': {
      const cluster = new Cluster(target.nodes, {
        lazyConnect: true,
        // otherwise ioredis would resend commands that may have been carried out when a connection breaks; it still follows redirections
        retryDelayOnFailover: 0,
        slotsRefreshTimeout: slotsTimeout(settings.connectTimeout),
        clusterRetryStrategy: clusterRetryStrategy(() => performance.now(), Math.random),
        redisOptions: { ...target.redis, ...LIMITS, connectTimeout: settings.connectTimeout },
        // an option of the cluster, which users give among those of its nodes
        ...(target.redis.natMap === undefined ? {} : { natMap: target.redis.natMap }),
        ...(target.redis.tls === undefined ? {} : { dnsLookup: (address, callback) => callback(null, address) }),
      })
      return new ClusterTopology({ cluster, owned: true, settings, emit, onStale: demoted })
    }
    case 'borrowed':
      if (target.client.isCluster) {
        const cluster = target.client as unknown as Cluster
        return new ClusterTopology({ cluster, owned: false, settings, emit, onStale: demoted })
      }
      return new BorrowedTopology(target.client as unknown as Redis, settings, emit)
  }
}
