import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { ConnectionError, InternalError, RedelayedError, UnsupportedServerError, copyOf } from '../errors.js'
import type { Emit } from '../events.js'
import type { Settings } from '../options.js'
import { Link } from './link.js'
import type { Target } from './options.js'

const OLDEST_MAJOR = 5
const MAX_KNOWN_SLOTS = 100_000

/** Where commands go, and how further connections to the same place are made. */
export interface Topology {
  /**
   * Whether a command may be sent again by the layer below when its connection breaks, so that nobody can tell whether
   * it was carried out once or twice.
   */
  readonly resends: boolean
  /** Whether commands could be sent now. */
  readonly connected: boolean
  /** The client for commands, when it is connected; waits at most `connectTimeout`. */
  commands(): Redis | Cluster | Promise<Redis | Cluster>
  /** The server that holds a key, and the slot: keys of different slots cannot share a command. */
  place(key: string): Place | Promise<Place>
  /** A new, unconnected client for pub/sub or blocking reads; on the server `node`, or on any. */
  dedicated(node?: string): Redis | Promise<Redis>
  /** Another connection to the server behind a dedicated client. */
  beside(dedicated: Redis): Promise<Redis>
  /** Called when a dedicated client met a server that is not the right one any more. */
  refresh(): Promise<void>
  close(): Promise<void>
}

export interface Place {
  /** `host:port` in a cluster; the same for all keys elsewhere. */
  readonly node: string
  readonly slot: number
}

/** Without a cluster there is one place for everything. */
const ONE_PLACE: Place = Object.freeze({ node: '', slot: 0 })

/** What every client of ours must have, whatever the user's options say. */
const OVERRIDES = {
  lazyConnect: true,
  keyPrefix: '',
  retryStrategy: null,
  replyMapping: 'legacy',
  readOnly: false,
  enableOfflineQueue: false,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: null,
  reconnectOnError: null,
  enableAutoPipelining: false,
} satisfies RedisOptions

export function createTopology(target: Target, settings: Settings, emit: Emit): Topology {
  switch (target.kind) {
    case 'single':
      return new SingleTopology(target.redis, settings, emit)
    case 'cluster': {
      const cluster = new Cluster(target.nodes, {
        lazyConnect: true,
        redisOptions: { ...target.redis, connectTimeout: settings.connectTimeout },
        ...(target.redis.tls === undefined ? {} : { dnsLookup: (address, callback) => callback(null, address) }),
      })
      return new ClusterTopology(cluster, true, settings)
    }
    case 'borrowed':
      if (target.client.isCluster) return new ClusterTopology(target.client as unknown as Cluster, false, settings)
      return new BorrowedTopology(target.client as unknown as Redis, settings)
  }
}

/** One server, or the master that sentinels name. */
class SingleTopology implements Topology {
  readonly resends = false
  readonly #options: RedisOptions
  readonly #link: Link

  constructor(options: RedisOptions, settings: Settings, emit: Emit) {
    this.#options = { ...options, ...OVERRIDES, sentinelRetryStrategy: () => null, connectTimeout: settings.connectTimeout }
    this.#link = new Link({
      role: 'commands',
      open: () => new Redis({ ...this.#options, socketTimeout: settings.commandTimeout }),
      prepare: assertVersion,
      connectTimeout: settings.connectTimeout,
      emit,
    })
  }

  get connected(): boolean {
    return this.#link.current !== undefined
  }

  commands(): Redis | Promise<Redis> {
    return this.#link.current ?? this.#link.get()
  }

  dedicated(): Redis {
    return new Redis(this.#options)
  }

  beside(): Promise<Redis> {
    return this.#link.get()
  }

  place(): Place {
    return ONE_PLACE
  }

  async refresh(): Promise<void> {}

  close(): Promise<void> {
    return this.#link.close(true)
  }
}

/** A single-node client of the user's: its reconnection and its end are the user's. */
class BorrowedTopology implements Topology {
  readonly resends: boolean
  readonly #client: Redis
  readonly #ready: Readiness

  constructor(client: Redis, settings: Settings) {
    this.#client = client
    this.resends = client.options.autoResendUnfulfilledCommands !== false
    this.#ready = new Readiness(client, settings.connectTimeout, () => assertVersion(client))
  }

  get connected(): boolean {
    return this.#ready.now
  }

  commands(): Redis | Promise<Redis> {
    return this.#ready.now ? this.#client : this.#ready.wait().then(() => this.#client)
  }

  dedicated(): Redis {
    return this.#client.duplicate({ ...OVERRIDES, sentinelRetryStrategy: () => null })
  }

  async beside(): Promise<Redis> {
    await this.#ready.wait()
    return this.#client
  }

  place(): Place {
    return ONE_PLACE
  }

  async refresh(): Promise<void> {}

  async close(): Promise<void> {}
}

/** A cluster; ioredis follows its redirections and failovers, also by sending a command twice. */
class ClusterTopology implements Topology {
  readonly resends = true
  readonly #cluster: Cluster
  readonly #owned: boolean
  readonly #ready: Readiness
  readonly #slots = new Map<string, number>()
  readonly #onError = (): void => {}

  constructor(cluster: Cluster, owned: boolean, settings: Settings) {
    this.#cluster = cluster
    this.#owned = owned
    // calls report what fails; without a listener ioredis prints it
    if (owned) cluster.on('error', this.#onError)
    this.#ready = new Readiness(cluster, settings.connectTimeout, async () => {
      const [node] = cluster.nodes('master')
      if (node !== undefined) await assertVersion(node)
    })
  }

  get connected(): boolean {
    return this.#ready.now
  }

  commands(): Cluster | Promise<Cluster> {
    return this.#ready.now ? this.#cluster : this.#ready.wait().then(() => this.#cluster)
  }

  async dedicated(node?: string): Promise<Redis> {
    await this.#ready.wait()
    const masters = this.#cluster.nodes('master')
    const chosen =
      node === undefined
        ? masters[Math.floor(Math.random() * masters.length)]
        : masters.find((master) => addressOf(master) === node)
    if (chosen === undefined) throw new ConnectionError(`no master ${node ?? ''} is known in the cluster`, 'not-applied')
    return chosen.duplicate(OVERRIDES)
  }

  async beside(dedicated: Redis): Promise<Redis> {
    await this.#ready.wait()
    const node = this.#cluster.nodes('all').find((other) => addressOf(other) === addressOf(dedicated))
    if (node === undefined) throw new ConnectionError('the node left the cluster', 'not-applied')
    return node
  }

  async place(key: string): Promise<Place> {
    await this.#ready.wait()
    const slot = await this.#slotOf(key)
    const node = this.#cluster.slots[slot]?.[0]
    if (node === undefined) throw new ConnectionError(`no master serves slot ${slot}`, 'not-applied')
    return { node, slot }
  }

  async #slotOf(key: string): Promise<number> {
    const known = this.#slots.get(key)
    if (known !== undefined) return known
    const slot = await this.#cluster.call('CLUSTER', 'KEYSLOT', key)
    if (typeof slot !== 'number') throw new InternalError('keyslot', 'CLUSTER KEYSLOT gave no number')
    if (this.#slots.size >= MAX_KNOWN_SLOTS) this.#slots.clear()
    this.#slots.set(key, slot)
    return slot
  }

  refresh(): Promise<void> {
    return new Promise((resolve) => this.#cluster.refreshSlotsCache(() => resolve()))
  }

  async close(): Promise<void> {
    if (!this.#owned) return
    await this.#cluster.quit().catch(() => undefined)
    this.#cluster.disconnect()
  }
}

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: RedelayedError) => void
  readonly timer: NodeJS.Timeout
}

/**
 * Waits for a client that connects by itself, for a bounded time, and looks at the server once. However many calls wait,
 * the client gets one listener per event.
 */
class Readiness {
  readonly #client: Redis | Cluster
  readonly #timeout: number
  readonly #inspect: () => Promise<void>
  readonly #waiting = new Set<Waiting>()
  #lastError: Error | undefined
  #inspecting: Promise<void> | undefined
  #inspected = false

  constructor(client: Redis | Cluster, timeout: number, inspect: () => Promise<void>) {
    this.#client = client
    this.#timeout = timeout
    this.#inspect = inspect
  }

  get now(): boolean {
    return this.#inspected && this.#client.status === 'ready'
  }

  async wait(): Promise<void> {
    if (this.#client.status !== 'ready') await this.#connected()
    if (this.#inspected) return
    this.#inspecting ??= this.#inspect().finally(() => (this.#inspecting = undefined))
    try {
      await this.#inspecting
    } catch (error) {
      throw error instanceof RedelayedError ? copyOf(error) : error
    }
    this.#inspected = true
  }

  #connected(): Promise<void> {
    const client = this.#client
    if (client.status === 'wait') client.connect().catch(() => undefined)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#remove(waiting)
        const why = this.#lastError === undefined ? '' : `: ${this.#lastError.message}`
        const message = `no connection to Redis within ${this.#timeout / 1000} s${why}`
        reject(new ConnectionError(message, 'not-applied', { cause: this.#lastError }))
      }, this.#timeout)
      const waiting: Waiting = { resolve, reject, timer }
      if (this.#waiting.size === 0) {
        this.#lastError = undefined
        client.on('ready', this.#onReady)
        client.on('error', this.#onError)
        client.on('end', this.#onEnd)
      }
      this.#waiting.add(waiting)
      if (client.status === 'end') this.#onEnd()
    })
  }

  readonly #onReady = (): void => {
    for (const waiting of this.#waiting) {
      this.#remove(waiting)
      waiting.resolve()
    }
  }

  readonly #onError = (error: Error): void => {
    this.#lastError = error
  }

  readonly #onEnd = (): void => {
    for (const waiting of this.#waiting) {
      this.#remove(waiting)
      waiting.reject(new ConnectionError('the ioredis client has ended', 'not-applied', { cause: this.#lastError }))
    }
  }

  #remove(waiting: Waiting): void {
    clearTimeout(waiting.timer)
    this.#waiting.delete(waiting)
    if (this.#waiting.size > 0) return
    this.#client.off('ready', this.#onReady)
    this.#client.off('error', this.#onError)
    this.#client.off('end', this.#onEnd)
  }
}

function addressOf(redis: Redis): string {
  return `${redis.options.host}:${redis.options.port}`
}

/** Refuses servers older than 5.0. A user who may not call INFO is trusted. */
async function assertVersion(redis: Redis): Promise<void> {
  let info: unknown
  try {
    info = await redis.info('server')
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') return
    throw error
  }
  const version = /^redis_version:(\d+)\.(\S+)/m.exec(String(info))
  if (version !== null && Number(version[1]) < OLDEST_MAJOR) {
    throw new UnsupportedServerError(`Redis ${version[1]}.${version[2]} is too old; 5.0 or later is needed`)
  }
}
