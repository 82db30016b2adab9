/**
 * Private servers for tests that kill, restart, fail over or change the configuration: each on its own port and in its
 * own directory. Tests that only need a Redis use `redisUrl()` of redis.ts.
 */
import { Redis } from 'ioredis'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findServerBin, freePort, isFree, startServer, type RedisServer } from '../../scripts/redis.js'
import { eventually } from './events.js'

export type { RedisServer }
export { freePort }

const bin = findServerBin()
/** Each question has a connection of its own. */
const ASK_EVERY_MS = 25

/** Skips the test or suite where there is no server program to spawn (a given URL or Docker only). */
export function requireServerBin(context: Mocha.Context): void {
  if (bin === undefined) context.skip()
}

/**
 * One server. `args` are redis-server options, for example `['--appendonly', 'yes', '--appendfsync', 'always']`;
 * persistence is off unless they turn it on.
 */
export function startRedis({
  args = [],
  env = {},
  port,
}: { args?: string[]; env?: NodeJS.ProcessEnv; port?: number } = {}): Promise<RedisServer> {
  return startServer({ bin: serverBin(), args, env, ...(port !== undefined && { port }) })
}

/** The PEM files of servers that also listen with TLS, on another port. */
export interface TlsFiles {
  certificate: string
  key: string
  authority: string
}

export interface SentinelSetup {
  /** The name of the group of master and replica. */
  name: string
  /** Where clients ask them: with `tls` the ports with TLS. */
  sentinels: { host: string; port: number }[]
  /** The servers started as master and as (first) replica; after a failover the roles are swapped. */
  master: RedisServer
  replica: RedisServer
  /** The master and all replicas. */
  servers: RedisServer[]
  sentinelServers: RedisServer[]
  /** Who is the master now, in the eyes of the sentinels: its port without TLS. */
  masterPort(): Promise<number>
  /** Resolves when all sentinels name the same master, have no failover under way, and no other server calls itself master. */
  agreed(): Promise<void>
  /** Asks for a failover and waits until another master is there. The old one does not know for some seconds. */
  promote(): Promise<number>
  /** Asks for a failover and waits until the roles are swapped. */
  failover(): Promise<void>
  stop(): Promise<void>
}

/**
 * One master, its replicas and three sentinels that notice a dead master within half a second. With `tls` they connect to each other by TLS, and the
 * sentinels name the servers' ports with TLS; the ports without it are for the questions of tests.
 */
export async function startSentinel({
  name = 'redelayed-test',
  replicas = 1,
  tls,
}: { name?: string; replicas?: number; tls?: TlsFiles } = {}): Promise<SentinelSetup> {
  const fast = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1']
  const started: RedisServer[] = []
  const stop = () => stopAll(started)
  /** The ports with TLS, by those without it. */
  const encrypted = new Map<number, number>()
  const named = (port: number) => encrypted.get(port) ?? port
  const start = async (run: (options: string[]) => Promise<RedisServer>) => {
    const tlsPort = tls === undefined ? undefined : await freePort()
    const server = await keep(started, run(tls === undefined ? [] : tlsOptions(tls, tlsPort!)))
    if (tlsPort !== undefined) encrypted.set(server.port, tlsPort)
    return server
  }
  try {
    const first = await start((options) => startRedis({ args: [...fast, ...options] }))
    const copies: RedisServer[] = []
    for (let i = 0; i < replicas; i++) {
      const master = ['--replicaof', '127.0.0.1', `${named(first.port)}`]
      copies.push(await start((options) => startRedis({ args: [...fast, ...options, ...master] })))
    }
    for (const { port } of copies) await replicates(port)

    const sentinelServers: RedisServer[] = []
    for (let i = 0; i < 3; i++)
      sentinelServers.push(await start((options) => startOneSentinel(name, named(first.port), options)))
    await eventually(async () => {
      for (const { port } of sentinelServers) {
        const state = pairs(await ask(port, 'SENTINEL', 'MASTER', name))
        if (state['num-other-sentinels'] !== '2' || state['num-slaves'] !== `${replicas}` || state.flags !== 'master')
          throw new Error(`sentinel ${port} does not see all the others yet: ${JSON.stringify(state)}`)
      }
    }, 15_000)

    const masterPort = async () => {
      for (const { port: sentinel, process } of sentinelServers) {
        if (process.exitCode !== null || process.signalCode !== null) continue
        const address = (await ask(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as [string, string]
        const port = Number(address[1])
        return [...encrypted].find(([, tlsPort]) => tlsPort === port)?.[0] ?? port
      }
      throw new Error('no sentinel is left')
    }
    const agreed = () =>
      eventually(
        async () => {
          const master = await masterPort()
          for (const { port } of sentinelServers) {
            const state = pairs(await ask(port, 'SENTINEL', 'MASTER', name))
            if (
              state.flags !== 'master' ||
              Number(state.port) !== named(master) ||
              state['num-slaves'] !== `${replicas}`
            )
              throw new Error(`sentinel ${port} says ${JSON.stringify(state)}`)
          }
          for (const { port } of [first, ...copies]) {
            const [role] = (await ask(port, 'ROLE')) as [string]
            if ((role === 'master') !== (port === master)) throw new Error(`${port} is a ${role}`)
          }
        },
        40_000,
        50,
      )
    const promote = async () => {
      const before = await masterPort()
      await eventually(() => ask(sentinelServers[0]!.port, 'SENTINEL', 'FAILOVER', name), 10_000)
      await eventually(async () => {
        const now = await masterPort()
        if (now === before || !String(await ask(now, 'ROLE')).startsWith('master')) throw new Error('no failover yet')
      }, 15_000)
      return before
    }
    const failover = async () => {
      const before = await promote()
      // A sentinel takes ten seconds to demote a master that came back; until then that master takes writes that it will lose.
      await ask(before, 'REPLICAOF', '127.0.0.1', named(await masterPort()))
      await ask(before, 'CLIENT', 'KILL', 'TYPE', 'normal')
      await ask(before, 'CLIENT', 'KILL', 'TYPE', 'pubsub')
    }
    return {
      name,
      master: first,
      replica: copies[0]!,
      servers: [first, ...copies],
      sentinelServers,
      sentinels: sentinelServers.map(({ port }) => ({ host: '127.0.0.1', port: named(port) })),
      masterPort,
      agreed,
      promote,
      failover,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

export interface ClusterSetup {
  nodes: { host: string; port: number }[]
  servers: RedisServer[]
  stop(): Promise<void>
}

/** After which a master of a cluster counts as dead. */
export const NODE_TIMEOUT_MS = 2_000
const CLUSTERED = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT_MS)]

/** Masters with all slots given out, each with as many replicas; the masters are the first servers. */
export async function startCluster({ masters = 3, replicas = 0 } = {}): Promise<ClusterSetup> {
  const servers: RedisServer[] = []
  const stop = () => stopAll(servers)
  try {
    const firstOf = (master: number) => Math.round((master * 16_384) / masters)
    for (let i = 0; i < masters; i++) {
      const server = await keep(servers, startRedis({ args: CLUSTERED, port: await clusterPort() }))
      const own = Array.from({ length: firstOf(i + 1) - firstOf(i) }, (_, n) => firstOf(i) + n)
      await ask(server.port, 'CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
      await ask(server.port, 'CLUSTER', 'ADDSLOTS', ...own)
    }
    for (const { port } of servers.slice(1)) await ask(servers[0]!.port, 'CLUSTER', 'MEET', '127.0.0.1', port)
    const complete = () =>
      eventually(
        async () => {
          for (const { port } of servers) {
            const info = String(await ask(port, 'CLUSTER', 'INFO'))
            const nodes = `cluster_known_nodes:${servers.length}\r`
            if (!info.includes('cluster_state:ok') || !info.includes(nodes)) throw new Error(info)
            const known = String(await ask(port, 'CLUSTER', 'NODES'))
            if ((known.match(/ connected \d/g) ?? []).length !== masters) throw new Error(known)
          }
        },
        15_000,
        ASK_EVERY_MS,
      )
    await complete()
    for (let i = 0; i < masters * replicas; i++) {
      const args = [...CLUSTERED, '--repl-diskless-sync-delay', '0']
      const server = await keep(servers, startRedis({ args, port: await clusterPort() }))
      const master = servers[i % masters]!
      await ask(servers[0]!.port, 'CLUSTER', 'MEET', '127.0.0.1', server.port)
      const id = await ask(master.port, 'CLUSTER', 'MYID')
      await eventually(() => ask(server.port, 'CLUSTER', 'REPLICATE', String(id)), 10_000, ASK_EVERY_MS)
      await replicates(server.port)
    }
    if (replicas > 0) await complete()
    return { servers, nodes: servers.map(({ port }) => ({ host: '127.0.0.1', port })), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function replicates(port: number): Promise<void> {
  await eventually(
    async () => {
      const info = await ask(port, 'INFO', 'replication')
      if (!String(info).includes('master_link_status:up')) throw new Error('the replica has no link to its master')
    },
    15_000,
    ASK_EVERY_MS,
  )
}

/** The cluster bus listens on port + 10000: both lie beside the ports that other servers get. */
async function clusterPort(): Promise<number> {
  for (;;) {
    const port = await freePort({ from: 20_000, to: 22_500 })
    if (await isFree(port + 10_000)) return port
  }
}

/** A server with them also encrypts its own connections, to its master and to other servers. */
function tlsOptions({ certificate, key, authority }: TlsFiles, port: number): string[] {
  const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', authority]
  return ['--tls-port', `${port}`, ...files, '--tls-auth-clients', 'no', '--tls-replication', 'yes']
}

async function startOneSentinel(name: string, masterPort: number, options: string[]): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-sentinel-'))
  const config = join(dir, 'sentinel.conf')
  const lines = [
    `dir ${dir}`,
    'bind 127.0.0.1',
    `sentinel monitor ${name} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${name} 500`,
    `sentinel failover-timeout ${name} 2000`,
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  const server = await startServer({ bin: serverBin(), args: [config, '--sentinel', ...options], dir })
  const stop = async () => {
    await server.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  return Object.create(server, { stop: { value: stop } }) as RedisServer
}

/** One command over a connection of its own. */
async function ask(port: number, command: string, ...args: (string | number)[]): Promise<unknown> {
  const once = { lazyConnect: true, retryStrategy: () => null, enableReadyCheck: false, disableClientInfo: true }
  const redis = new Redis({ host: '127.0.0.1', port, protocol: 2, ...once })
  redis.on('error', () => {}) // the call below rejects with it
  try {
    await redis.connect()
    return await redis.call(command, ...args)
  } finally {
    if (redis.status !== 'end') redis.disconnect() // an ended one would leave a timer behind
  }
}

function pairs(flat: unknown): Record<string, string | undefined> {
  const list = flat as string[]
  return Object.fromEntries(list.flatMap((key, i) => (i % 2 === 0 ? [[key, list[i + 1]]] : [])))
}

async function keep(list: RedisServer[], starting: Promise<RedisServer>): Promise<RedisServer> {
  const server = await starting
  list.push(server)
  return server
}

async function stopAll(servers: RedisServer[]): Promise<void> {
  await Promise.all(
    servers
      .splice(0)
      .reverse()
      .map((server) => server.stop()),
  )
}

function serverBin(): string {
  if (bin === undefined)
    throw new Error(
      'This test needs a redis-server or valkey-server of its own: put one on PATH or set REDIS_SERVER_BIN',
    )
  return bin
}
