import { Cluster, Redis, type RedisOptions } from 'ioredis'
import type { ConnectOptions } from 'redelayed'
import type { ServerSettings } from '../config/server-settings.js'
import type { RedisAddress } from '../console/library-command.js'
import { followMaster, masterAddress } from './master-watch.js'
import type { OwnRedis } from './own-redis.js'
import { WaryConnector } from './wary-connector.js'

const LIMITS = { connectTimeout: 5_000, commandTimeout: 2_000, protocol: 2 as const }

/** The settings that lead to Redis. */
export type RedisSettings = Pick<ServerSettings, 'redis' | 'redisCluster' | 'redisSentinels'>

interface Account {
  readonly username?: string
  readonly password?: string
}

/** The user and password of a URL. */
function accountOf({ username, password }: URL): Account {
  return {
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
  }
}

interface ByAccount extends Account {
  readonly sentinels: { readonly host: string; readonly port: number }[]
  readonly name: string
  readonly db: number
  readonly sentinelUsername?: string
  readonly sentinelPassword?: string
  /** What ioredis needs to encrypt the connections to the master, the sentinels, or both. */
  readonly encryption: Pick<RedisOptions, 'tls' | 'enableTLSForSentinelMode' | 'sentinelTLS'>
}

/** The way to a master that sentinels know; the host of `redis` is its name. `undefined` without sentinels. */
function bySentinels({ redis, redisSentinels }: RedisSettings): ByAccount | undefined {
  const [first, ...others] = redisSentinels.map((each) => new URL(each))
  if (first === undefined || redis === undefined) return undefined
  const master = new URL(redis)
  const { username, password } = accountOf(first)
  return {
    ...accountOf(master),
    sentinels: [first, ...others].map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? 26_379 : Number(port),
    })),
    name: decodeURIComponent(master.hostname),
    db: Number(master.pathname.slice(1)),
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    encryption: {
      ...(master.protocol === 'rediss:' && { tls: {}, enableTLSForSentinelMode: true }),
      // given in both cases: the library would take that of the master
      sentinelTLS: first.protocol === 'rediss:' ? {} : undefined,
    },
  }
}

/** The options of the library's client. */
export function connectOptionsOf(settings: RedisSettings, own: OwnRedis | undefined): ConnectOptions {
  const { redis, redisCluster } = settings
  if (redisCluster.length > 0) return { cluster: redisCluster }
  const sentinel = bySentinels(settings)
  if (sentinel !== undefined) {
    const { encryption, ...options } = sentinel
    return { ...options, ioredis: { ...encryption } }
  }
  // the emulator answers some commands differently in RESP3
  return { url: redis ?? own?.url ?? '', ...(own?.isDurable === false && { ioredis: { protocol: 2 } }) }
}

export interface PlainClient {
  readonly redis: Redis | Cluster
  readonly close: () => void
}

/** A plain client for data outside of queues: the state of endpoints, the log of their deliveries, and worker numbers. */
export function plainClient(settings: RedisSettings, own: OwnRedis | undefined): PlainClient {
  const { redis, redisCluster } = settings
  // sends the commands of one turn of the event loop in one write
  const enableAutoPipelining = true
  const limits = { ...LIMITS, socketTimeout: 2_000 }
  // after a failover behind the same name the connection still leads to the old master
  const reconnectOnError = ({ message }: Error): boolean => message.startsWith('READONLY')
  const [first] = redisCluster
  if (first === undefined) {
    const options = { ...limits, enableAutoPipelining, maxRetriesPerRequest: 3, reconnectOnError }
    const sentinel = bySentinels(settings)
    if (sentinel === undefined) return closable(new Redis(redis ?? own?.url ?? '', options))
    const { encryption, ...master } = sentinel
    const client = new Redis({ ...master, ...encryption, ...options, Connector: WaryConnector })
    return closable(client, followMaster(client, master.name, sentinelsOf(sentinel)))
  }
  // the nodes that the cluster announces have the password of the given nodes
  const url = new URL(first)
  const isTls = url.protocol === 'rediss:'
  const cluster = new Cluster([...redisCluster], {
    ...(isTls && { dnsLookup: (address, callback) => callback(null, address) }), // certificates are for names
    redisOptions: { ...limits, ...accountOf(url), ...(isTls && { tls: {} }) },
  })
  return closable(cluster)
}

function closable(redis: Redis | Cluster, stopFollowing?: () => void): PlainClient {
  const close = (): void => {
    redis.disconnect()
    stopFollowing?.()
  }
  return { redis, close }
}

/** How to connect to each sentinel. */
function sentinelsOf({ sentinels, sentinelUsername, sentinelPassword, encryption }: ByAccount): RedisOptions[] {
  const account = {
    ...(sentinelUsername !== undefined && { username: sentinelUsername }),
    ...(sentinelPassword !== undefined && { password: sentinelPassword }),
    ...(encryption.sentinelTLS !== undefined && { tls: encryption.sentinelTLS }),
  }
  return sentinels.map((each) => ({ ...each, ...account, ...LIMITS }))
}

/**
 * The address of the service's Redis for the library's command line. Its commands take no sentinels, so the sentinels are asked for the
 * master before each. Their answer can be a name, for which the master's certificate then is.
 */
export function addressOf(settings: RedisSettings, own: OwnRedis | undefined): () => Promise<RedisAddress> {
  const { redis, redisCluster } = settings
  const [node] = redisCluster
  const url = node ?? redis ?? own?.url ?? ''
  const sentinel = bySentinels(settings)
  if (sentinel === undefined || node !== undefined) return async () => ({ url, isCluster: node !== undefined })
  return async () => {
    const { host, port } = await masterAddress(sentinel.name, sentinelsOf(sentinel))
    const master = new URL(url)
    master.hostname = host.includes(':') ? `[${host}]` : host
    master.port = port
    return { url: master.href, isCluster: false }
  }
}

/** The `INFO` of each master. */
export async function infoOf(redis: Redis | Cluster): Promise<string[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis]
  return Promise.all(nodes.map(async (node) => (await node.info('server')) + (await node.info('memory'))))
}
