import { Redis, type RedisOptions } from 'ioredis'
import type { ClientOptions } from '../../../src/index.js'
import { eventually } from '../../support/events.js'
import { startCluster, startRedis, startSentinel, type RedisServer } from '../../support/redis-server.js'
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js'

/** One of the places where faults happen. */
export interface Stage {
  readonly name: string
  /** The connection settings of the workers. */
  readonly client: ClientOptions
  readonly servers: readonly RedisServer[]
  /** A connection to the server that is now the master of a key, past all proxies. */
  raw(key: string): Promise<Redis>
  /** A connection to one of its servers. */
  to(port: number): Promise<Redis>
  /** Resolves when the servers work. */
  healthy(): Promise<void>
  /** How often another server has become master so far, where sentinels choose it. */
  takeovers?(): number
  stop(): Promise<void>
}

export interface StandaloneStage extends Stage {
  readonly server: RedisServer
  /** All workers come through it. */
  readonly proxy: TcpProxy
}

export interface ReplicatedStage extends Stage {
  masterPort(): Promise<number>
  /** Another server becomes master; gives the port of the old one, which goes on as one for some seconds. */
  promote(): Promise<number>
}

/** Each acknowledged write is on disk: what is lost then was not lost by the server. */
export const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always']

export async function standalone({
  args = DURABLE,
  env = {},
  client = {},
}: { args?: string[]; env?: NodeJS.ProcessEnv; client?: ClientOptions } = {}): Promise<StandaloneStage> {
  const server = await startRedis({ args, env })
  const proxy = await startProxy({ targetPort: server.port })
  const raw = rawConnections()
  const { tls, ...rest } = client
  return {
    name: 'standalone',
    client: tls === undefined ? { host: '127.0.0.1', port: proxy.port, ...rest } : client,
    server,
    servers: [server],
    proxy,
    raw: () => raw.to(server.port),
    to: (port) => raw.to(port),
    async healthy() {
      await eventually(async () => (await raw.to(server.port)).set('redelayed:healthy', '1', 'PX', 1), 20_000, 50)
    },
    async stop() {
      raw.close()
      await proxy.stop()
      await server.stop()
    },
  }
}

/** One master, two replicas, three sentinels. */
export async function sentinel(): Promise<ReplicatedStage> {
  const setup = await startSentinel({ replicas: 2 })
  const raw = rawConnections()
  const seen = await Promise.all(setup.sentinels.map(async ({ port }) => countTakeovers(await raw.to(port))))
  const master = async (): Promise<Redis> => raw.to(await setup.masterPort())
  return {
    name: 'sentinel',
    client: { sentinels: setup.sentinels, name: setup.name },
    servers: setup.servers,
    raw: master,
    to: (port) => raw.to(port),
    masterPort: () => setup.masterPort(),
    promote: () => setup.promote(),
    takeovers: () => Math.max(...seen.map((count) => count())), // a sentinel that is late can learn of several at once
    async healthy() {
      await setup.agreed()
      await eventually(
        async () => {
          const redis = await master()
          const [role, , replicas] = (await redis.role()) as [string, number, unknown[]]
          if (role !== 'master' || replicas.length !== 2) throw new Error(`${role} with ${replicas?.length} replicas`)
          if ((await redis.wait(2, 500)) !== 2) throw new Error('the replicas are behind')
        },
        40_000,
        100,
      )
    },
    async stop() {
      raw.close()
      await setup.stop()
    },
  }
}

export interface ClusterStage extends Stage {
  readonly nodes: readonly { host: string; port: number }[]
  /** The server that serves a key now. */
  masterOf(key: string): Promise<number>
}

/** Three masters, each with a replica. */
export async function cluster(): Promise<ClusterStage> {
  const setup = await startCluster({ replicas: 1 })
  const raw = rawConnections()
  const asking = rawConnections({ commandTimeout: 1_000 }) // one that is stopped must not hold up the question to the others
  const state = async (): Promise<void> => {
    for (const { port } of setup.nodes) {
      const redis = await raw.to(port)
      await asking.to(port) // opened by a scenario, it would look like something left behind
      const info = String(await redis.call('CLUSTER', 'INFO'))
      if (!info.includes('cluster_state:ok')) throw new Error(info)
      const known = String(await redis.call('CLUSTER', 'NODES'))
      if (/fail|noaddr|handshake/.test(known)) throw new Error(known)
      // a replica that is not up to date would not be chosen when its master dies next
      const [role, , replicas, link] = (await redis.role()) as unknown as [string, unknown, unknown[], string]
      if (role === 'master' ? replicas.length !== 1 : link !== 'connected')
        throw new Error(`${port} is a ${role}, alone`)
    }
  }
  const masterOf = async (key: string): Promise<number> => {
    for (const { port } of setup.nodes) {
      const found = await asking
        .to(port)
        .then(async (redis) => ({ slot: await redis.cluster('KEYSLOT', key), ranges: await redis.cluster('SLOTS') }))
        .catch(() => undefined)
      if (found === undefined) continue
      const { slot, ranges } = found
      const owner = ranges.find(([from, to]) => slot >= from && slot <= to)
      if (owner !== undefined) return Number(owner[2]?.[1])
    }
    throw new Error('no node answers')
  }
  return {
    name: 'cluster',
    client: { cluster: setup.nodes.map(({ host, port }) => ({ host, port })) },
    nodes: setup.nodes,
    servers: setup.servers,
    masterOf,
    to: (port) => raw.to(port),
    raw: async (key) => raw.to(await masterOf(key)),
    healthy: () => eventually(state, 40_000, 100),
    async stop() {
      raw.close()
      asking.close()
      await setup.stop()
    },
  }
}

async function countTakeovers(sentinel: Redis): Promise<() => number> {
  let count = 0
  sentinel.on('message', () => count++)
  await sentinel.subscribe('+switch-master')
  return () => count
}

/** The bench's own connections, one per server, which are not part of the test. */
function rawConnections(options: RedisOptions = {}): { to(port: number): Promise<Redis>; close(): void } {
  const known = new Map<number, Redis>()
  return {
    async to(port) {
      const ready = known.get(port)
      if (ready?.status === 'ready') return ready
      if (ready !== undefined && ready.status !== 'end') ready.disconnect()
      const redis = new Redis({
        host: '127.0.0.1',
        port,
        protocol: 2,
        lazyConnect: true,
        retryStrategy: () => null,
        ...options,
      })
      redis.on('error', () => {}) // connect rejects with it
      known.set(port, redis)
      await redis.connect()
      return redis
    },
    close() {
      for (const redis of known.values()) if (redis.status !== 'end') redis.disconnect()
    },
  }
}
