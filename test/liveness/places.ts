/** The places of the cells: servers that many share, and each cell's own proxies in front of them. */
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClientOptions } from '../../src/index.js'
import { writeCertificate } from '../support/certificate.js'
import { eventually } from '../support/events.js'
import { startCluster, startRedis, startSentinel, type RedisServer } from '../support/redis-server.js'
import { StageProxy } from './stage-proxy.js'

/** One client's own way to the servers. */
export interface Way {
  readonly client: ClientOptions
  /** Past all proxies. */
  readonly direct: ClientOptions
  readonly servers: StageProxy
  readonly sentinels: StageProxy
  stop(): Promise<void>
}

export interface Place {
  open(): Promise<Way>
  /** Stops the master of a key with SIGSTOP and waits until a replica is one; what is given back lets it go on. */
  freezeMaster?(key: string): Promise<() => Promise<void>>
  stop(): Promise<void>
}

export const PLACES = [
  'single',
  'TLS',
  'replicated',
  'sentinel',
  'cluster',
  'borrowed',
  'borrowed, no resend',
  'borrowed cluster',
] as const
export type PlaceName = (typeof PLACES)[number]

export async function startPlace(name: PlaceName): Promise<Place> {
  switch (name) {
    case 'single':
      return server(({ port }) => ({ client: { host: '127.0.0.1', port } }))
    case 'TLS':
      return server(({ port, ca }) => ({ client: { host: '127.0.0.1', port, tls: { ca } } }), selfSigned())
    case 'replicated':
      return replicatedNodes()
    case 'borrowed':
      return server(({ port }) => lend(new Redis(port, '127.0.0.1', BORROWED)))
    case 'borrowed, no resend':
      return server(({ port }) =>
        lend(new Redis(port, '127.0.0.1', { ...BORROWED, autoResendUnfulfilledCommands: false })),
      )
    case 'sentinel':
      return sentinel()
    case 'cluster':
      return cluster((options, nodes, natMap) => ({ client: { ...options, cluster: nodes, ioredis: { natMap } } }))
    case 'borrowed cluster':
      return cluster((_, nodes, natMap) => lend(new Cluster(nodes, { natMap })))
  }
}

interface Client {
  readonly client: ClientOptions
  readonly end?: () => void
}

const BORROWED: RedisOptions = {}

/** A client of the user's, as most make it. */
function lend(redis: Redis | Cluster): Client {
  redis.on('error', () => {}) // ioredis prints it otherwise
  return { client: { redis }, end: () => redis.disconnect() }
}

interface Identity {
  readonly key: string
  readonly cert: string
}

function selfSigned(): Identity {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-liveness-'))
  writeCertificate(dir, 'proxy')
  const [key, cert] = ['proxy.key', 'proxy.pem'].map((name) => readFileSync(join(dir, name), 'utf8'))
  rmSync(dir, { recursive: true })
  return { key: key ?? '', cert: cert ?? '' }
}

async function startPair(): Promise<{ master: RedisServer; replica: RedisServer; stop: () => Promise<void> }> {
  const master = await startRedis()
  const replica = await startRedis({
    args: ['--replicaof', '127.0.0.1', `${master.port}`, '--repl-diskless-sync-delay', '0'],
  })
  await replicated(master.port, 1)
  return {
    master,
    replica,
    async stop() {
      await Promise.all([master.stop(), replica.stop()])
    },
  }
}

/** With a replica, for those offers that wait for one. */
async function server(connect: (at: { port: number; ca: string }) => Client, tls?: Identity): Promise<Place> {
  const { master, stop } = await startPair()
  return {
    async open() {
      const servers = new StageProxy(tls)
      const { client, end } = connect({ port: await servers.front(master.port), ca: tls?.cert ?? '' })
      return way({ client, direct: { host: '127.0.0.1', port: master.port }, servers, end })
    },
    stop,
  }
}

/** Without sentinels: another program decides which of the two is the master. */
async function replicatedNodes(): Promise<Place> {
  const { master, replica, stop } = await startPair()
  const ports = [master.port, replica.port]
  return {
    async open() {
      const servers = new StageProxy()
      const nodes: Nodes = []
      for (const port of ports) nodes.push({ host: '127.0.0.1', port: await servers.front(port) })
      const direct: ClientOptions = { replicated: ports.map((port) => ({ host: '127.0.0.1', port })) }
      return way({ client: { replicated: nodes }, direct, servers })
    },
    async freezeMaster() {
      await master.kill('SIGSTOP')
      await ask(replica.port, (redis) => redis.replicaof('NO', 'ONE'))
      return () => master.kill('SIGKILL') // else there would be two
    },
    stop,
  }
}

async function sentinel(): Promise<Place> {
  const setup = await startSentinel({ replicas: 2 })
  await replicated(setup.master.port, 2)
  return {
    async open() {
      const [servers, sentinels] = [new StageProxy(), new StageProxy()]
      for (const { port } of setup.servers) await servers.front(port)
      const addresses = []
      for (const { port } of setup.sentinels) addresses.push({ host: '127.0.0.1', port: await sentinels.front(port) })
      const natMap = { ...servers.natMap, ...sentinels.natMap }
      const { name } = setup
      const client: ClientOptions = { sentinels: addresses, name, ioredis: { natMap } }
      return way({ client, direct: { sentinels: setup.sentinels, name }, servers, sentinels })
    },
    async freezeMaster() {
      const port = await setup.masterPort()
      const master = setup.servers.find((one) => one.port === port)
      await master?.kill('SIGSTOP')
      await eventually(
        async () => {
          if ((await setup.masterPort()) === port) throw new Error('no failover')
        },
        20_000,
        50,
      )
      return async () => master?.kill('SIGCONT')
    },
    stop: () => setup.stop(),
  }
}

type Nodes = { host: string; port: number }[]

async function cluster(
  connect: (options: ClientOptions, nodes: Nodes, natMap: StageProxy['natMap']) => Client,
): Promise<Place> {
  const setup = await startCluster({ replicas: 1 })
  const masterOf = async (key: string): Promise<number> => {
    for (const { port } of setup.nodes) {
      const owner = await ask(port, async (redis) => {
        const slot = await redis.cluster('KEYSLOT', key)
        return (await redis.cluster('SLOTS')).find(([from, to]) => slot >= from && slot <= to)?.[2]?.[1]
      }).catch(() => undefined)
      if (owner !== undefined) return owner
    }
    throw new Error('no node answers')
  }
  return {
    async open() {
      const servers = new StageProxy()
      const nodes: Nodes = []
      for (const { port } of setup.nodes) nodes.push({ host: '127.0.0.1', port: await servers.front(port) })
      const { client, end } = connect({}, nodes, servers.natMap)
      return way({ client, direct: { cluster: setup.nodes }, servers, end })
    },
    async freezeMaster(key) {
      const port = await masterOf(key)
      const master = setup.servers.find((one) => one.port === port)
      await master?.kill('SIGSTOP')
      await eventually(
        async () => {
          if ((await masterOf(key)) === port) throw new Error('no failover')
        },
        20_000,
        100,
      )
      return async () => master?.kill('SIGCONT')
    },
    stop: () => setup.stop(),
  }
}

function way(parts: {
  client: ClientOptions
  direct: ClientOptions
  servers: StageProxy
  sentinels?: StageProxy
  end?: (() => void) | undefined
}): Way {
  const { servers, sentinels = new StageProxy(), end } = parts
  return {
    ...parts,
    sentinels,
    async stop() {
      end?.()
      await Promise.all([servers.stop(), sentinels.stop()])
    },
  }
}

async function replicated(port: number, replicas: number): Promise<void> {
  await eventually(
    async () => {
      if ((await ask(port, (redis) => redis.wait(replicas, 200))) < replicas) throw new Error('a replica is missing')
    },
    15_000,
    50,
  )
}

/** A frozen server does not answer: it must not hold up the question to the others. */
async function ask<T>(port: number, question: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({
    port,
    protocol: 2,
    lazyConnect: true,
    commandTimeout: 500,
    connectTimeout: 500,
    retryStrategy: () => null,
  })
  redis.on('error', () => {}) // the question rejects with it
  try {
    await redis.connect()
    return await question(redis)
  } finally {
    if (redis.status !== 'end') redis.disconnect()
  }
}
