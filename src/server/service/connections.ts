import { Cluster, Redis } from 'ioredis'
import type { ServerSettings } from '../config/server-settings.js'
import type { RedisAddress } from '../console/library-command.js'
import type { OwnRedis } from './own-redis.js'

/** A plain client for data outside of queues: the state of endpoints, the log of their deliveries, and worker numbers. */
export function plainClient({ redis, redisCluster }: ServerSettings, own: OwnRedis | undefined): Redis | Cluster {
  // sends the commands of one turn of the event loop in one write
  const enableAutoPipelining = true
  const limits = { connectTimeout: 5_000, commandTimeout: 2_000, socketTimeout: 2_000, protocol: 2 as const }
  // after a failover behind the same name the connection still leads to the old master
  const reconnectOnError = ({ message }: Error): boolean => message.startsWith('READONLY')
  const [first] = redisCluster
  if (first === undefined)
    return new Redis(redis ?? own?.url ?? '', {
      ...limits,
      enableAutoPipelining,
      maxRetriesPerRequest: 3,
      reconnectOnError,
    })
  // the nodes that the cluster announces have the password of the given nodes
  const { username, password, protocol } = new URL(first)
  const isTls = protocol === 'rediss:'
  return new Cluster([...redisCluster], {
    ...(isTls && { dnsLookup: (address, callback) => callback(null, address) }), // certificates are for names
    redisOptions: {
      ...limits,
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      ...(isTls && { tls: {} }),
    },
  })
}

/** The address of the service's Redis, for the doctor. */
export function addressOf({ redis, redisCluster }: ServerSettings, own: OwnRedis | undefined): RedisAddress {
  const [node] = redisCluster
  return { url: node ?? redis ?? own?.url ?? '', isCluster: node !== undefined }
}

/** The `INFO` of each master. */
export async function infoOf(redis: Redis | Cluster): Promise<string[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis]
  return Promise.all(nodes.map(async (node) => (await node.info('server')) + (await node.info('memory'))))
}
