import { Cluster, Redis } from 'ioredis'
import type { ServerSettings } from '../config/server-settings.js'
import type { RedisAddress } from '../console/library-command.js'
import type { OwnRedis } from './own-redis.js'

/** For what is no queue: the state of endpoints, the log of their deliveries, and worker numbers. */
export function plainClient({ redis, redisCluster }: ServerSettings, own: OwnRedis | undefined): Redis | Cluster {
  // the commands of one turn of the event loop go in one write
  const enableAutoPipelining = true
  const limits = { connectTimeout: 5_000, commandTimeout: 2_000, socketTimeout: 2_000, protocol: 2 as const }
  // after a failover behind the same name the connection is still to the old master
  const reconnectOnError = ({ message }: Error): boolean => message.startsWith('READONLY')
  const [first] = redisCluster
  if (first === undefined)
    return new Redis(redis ?? own?.url ?? '', {
      ...limits,
      enableAutoPipelining,
      maxRetriesPerRequest: 3,
      reconnectOnError,
    })
  // nodes that the cluster names have the password of those that were given
  const { username, password, protocol } = new URL(first)
  const isTls = protocol === 'rediss:'
  return new Cluster([...redisCluster], {
    ...(isTls && { dnsLookup: (address, callback) => callback(null, address) }), // certificates are of names
    redisOptions: {
      ...limits,
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      ...(isTls && { tls: {} }),
    },
  })
}

/** Where the doctor finds the Redis of the service. */
export function addressOf({ redis, redisCluster }: ServerSettings, own: OwnRedis | undefined): RedisAddress {
  const [node] = redisCluster
  return { url: node ?? redis ?? own?.url ?? '', isCluster: node !== undefined }
}

/** What each master says of itself. */
export async function infoOf(redis: Redis | Cluster): Promise<string[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis]
  return Promise.all(nodes.map(async (node) => (await node.info('server')) + (await node.info('memory'))))
}
