import { Redis, type RedisOptions } from 'ioredis'
import type { Emit } from '../../events.js'
import type { Settings } from '../../options.js'
import { addressOfClient, addressOfOptions } from '../connections/address.js'
import { dropWhenStuck } from '../replies/drop-when-stuck.js'
import { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { endEachWithFirstError } from '../connections/first-error.js'
import type { MasterFinder } from './master-finder.js'
import { checkOrder } from '../replies/order-check.js'
import { OVERRIDES, sentinelOverrides } from '../connections/ioredis-defaults.js'
import { remoteAddressOf, type IsStale } from '../connections/remote-address.js'
import { OneServer } from '../connections/one-server.js'
import { Predecessors, runIdOf } from '../connections/predecessors.js'
import { warnOfEviction } from '../eviction.js'
import { Readiness } from '../readiness.js'
import { printable } from '../../text.js'
import { SentinelOrder } from './sentinel-order.js'
import { SentinelWatch } from './sentinel-watch.js'
import { assertVersion, roleIn, runIdIn, ServerAge } from '../connections/server-version.js'
import { SilenceWatch } from '../replies/silence-watch.js'
import { ONE_PLACE, type Place, type Topology } from './topology.js'

/** One server, or the master from sentinels or from a finder. */
export class SingleTopology implements Topology {
  readonly resends = false
  readonly closesAtOnce = true
  readonly comparesServers = true
  readonly predecessors = new Predecessors()
  readonly age = new ServerAge(async () => assertVersion(await this.#connection.get()))
  readonly watch = undefined // this package's own connection has a limit, and never keeps a command
  readonly moves: boolean
  readonly address: string
  readonly #options: RedisOptions
  readonly #connection: ReconnectingConnection
  readonly #finder: MasterFinder | undefined
  readonly #demoted: (isStale: IsStale) => void
  readonly #sentinels: SentinelOrder | undefined
  readonly #watch: SentinelWatch | undefined
  readonly #server: OneServer
  /** When, by the monotonic clock, the last connection for commands ended. */
  #endedAt = -Infinity

  /** `demoted` is called when all connections to a server must be replaced; its argument identifies them. */
  constructor(params: {
    options: RedisOptions
    settings: Settings
    emit: Emit
    demoted: (isStale: IsStale) => void
    finder?: MasterFinder
  }) {
    const { options, settings, emit } = params
    this.#finder = params.finder
    this.#demoted = params.demoted
    this.#options = {
      ...options,
      ...OVERRIDES,
      ...sentinelOverrides(options, settings.connectTimeout),
      connectTimeout: settings.connectTimeout,
    }
    this.moves = this.#finder !== undefined || Boolean(options.sentinels)
    if (options.sentinels) {
      const order = (this.#sentinels = new SentinelOrder(options.sentinels))
      this.#watch = new SentinelWatch({
        options,
        settings,
        onSwitch: (isStale) => this.#leave(isStale),
        onInformed: (sentinel) => order.prefer(sentinel),
        onElsewhere: (master) =>
          emit('warning', {
            code: 'REDELAYED_SERVERS',
            message: `${this.address} name ${printable(master)} as the master, but connections lead elsewhere again and again: set natMap if the master has another address here`,
          }),
      })
    }
    this.address = this.#finder?.address ?? addressOfOptions(options)
    this.#server = new OneServer({
      address: this.address,
      onMoved: () => this.#follow(),
      onMixed: (message) => emit('warning', { code: 'REDELAYED_SERVERS', message }),
    })
    this.#connection = new ReconnectingConnection({
      role: 'commands',
      address: this.address,
      open: async () => checkOrder(await this.#create({ socketTimeout: settings.commandTimeout })),
      prepare: async (redis) => {
        dropWhenStuck(this.#connection, redis, settings.commandTimeout)
        void warnOfEviction(redis, emit)
        const info = await assertVersion(redis)
        this.age.learn(info)
        await this.predecessors.end(redis, info)
        this.#server.lead(redis, runIdIn(info))
        redis.once('end', () => (this.#endedAt = performance.now()))
        this.#watch?.start()
      },
      connectTimeout: settings.connectTimeout,
      emit,
    })
  }

  get connected(): boolean {
    return this.#connection.current !== undefined
  }

  get problem(): string | undefined {
    return this.#connection.problem
  }

  inFlight(): readonly object[] {
    return this.#connection.current?.commandQueue.toArray() ?? []
  }

  commands(): Redis | Promise<Redis> {
    return this.#connection.current ?? this.#connection.get()
  }

  async dedicated(): Promise<Redis> {
    this.#watch?.start() // here too, because durable offers alone open no other connection
    return this.#create()
  }

  arrived(redis: Redis, info: string | undefined): void {
    this.#server.join(redis, runIdIn(info))
  }

  beside(dedicated: Redis): Redis | undefined {
    const { current } = this.#connection
    if (current === undefined)
      this.#connection.get().catch(() => undefined) // the caller that needs it asks again
    // a name or a failover may lead to another server, where the same id belongs to another client
    else if (remoteAddressOf(current) === remoteAddressOf(dedicated)) return current
    return undefined
  }

  slotOf(): number {
    return ONE_PLACE.slot
  }

  place(): Place {
    return ONE_PLACE
  }

  async refresh(): Promise<void> {
    const { current } = this.#connection
    if (current === undefined) return
    if (roleIn(await current.info('replication')) !== 'master') this.onDemoted(current)
  }

  async isOver(_key: string, since: number): Promise<boolean> {
    await this.#endRetired()
    return this.predecessors.areOver(since)
  }

  recover(): undefined {}

  onDemoted(client: Redis): boolean {
    const demoted = remoteAddressOf(client)
    if (client === this.#connection.current) this.#leave((peer) => peer === demoted)
    return this.moves
  }

  async close(): Promise<void> {
    this.#finder?.close()
    this.#server.close()
    await Promise.all([this.#watch?.close(), this.#connection.close(true)])
  }

  /** Drops every connection that does not lead to the newest server; where the server is unknown, those opened before the change. */
  #follow(): void {
    const endedAt = this.#endedAt
    this.#leave((_peer, begunAt, other) => {
      const known = runIdOf(other)
      return known === undefined ? begunAt < endedAt : known !== this.#server.runId
    })
  }

  /** The name, the sentinels or the finder lead to another server now. */
  #leave(isStale: IsStale): void {
    const { current } = this.#connection
    if (current === undefined) this.#connection.leave(isStale)
    else if (isStale(remoteAddressOf(current), performance.now(), current)) this.#retire(current)
    this.#demoted(isStale)
  }

  #retire(current: Redis): void {
    this.#endedAt = performance.now()
    this.#connection.retire(current)
    current.once('end', () => void this.#endRetired().catch(() => undefined))
  }

  /** Each connection ends the older ones at the server when it is opened, but for a retired one: that one has time for its last replies. */
  async #endRetired(): Promise<void> {
    const redis = this.#connection.current
    if (redis === undefined || !this.predecessors.hasBroken(runIdOf(redis))) return
    await this.predecessors.end(redis, await assertVersion(redis))
  }

  async #create(options?: RedisOptions): Promise<Redis> {
    const found = await this.#finder?.find()
    const sentinels = this.#sentinels
    if (sentinels === undefined) return new Redis({ ...this.#options, ...found, ...options })
    return sentinels.observe(new Redis({ ...this.#options, ...options, sentinels: sentinels.list }))
  }
}

/** A single-node client of the user, whose options decide about reconnection, and who ends it. */
export class BorrowedTopology implements Topology {
  readonly resends: boolean
  readonly closesAtOnce = false
  readonly comparesServers = false // the user's client decides where it leads
  readonly predecessors = new Predecessors()
  readonly age = new ServerAge(() => assertVersion(this.#client))
  readonly moves = true // the client may reconnect to another server
  readonly address: string
  readonly watch: SilenceWatch
  readonly #client: Redis
  readonly #connectTimeout: number
  readonly #sentinels: SentinelOrder | undefined
  readonly #ready: Readiness
  readonly #leaveSockets: () => void
  /** With `autoResendUnfulfilledCommands: false` ioredis forgets the commands in flight when its socket breaks, and never settles them. */
  readonly #onClose = (): void => {
    if (!this.resends) this.watch.forget()
  }

  constructor(client: Redis, settings: Settings, emit: Emit) {
    this.#client = client
    this.address = addressOfClient(client)
    this.#connectTimeout = settings.connectTimeout
    const { sentinels } = client.options
    this.#sentinels = sentinels ? new SentinelOrder(sentinels) : undefined
    this.resends = client.options.autoResendUnfulfilledCommands !== false
    this.watch = new SilenceWatch({
      nodes: () => [client],
      limitMs: settings.commandTimeout,
      onDropped: (error) => emit('reconnecting', { connection: 'commands', attempt: 1, delayMs: 0, error }),
    })
    const inspect = async (): Promise<void> => {
      void warnOfEviction(client, emit)
      this.age.learn(await assertVersion(client))
    }
    this.#ready = new Readiness(client, settings.connectTimeout, inspect, this.watch)
    client.on('close', this.#onClose)
    this.#leaveSockets = endEachWithFirstError(client)
  }

  get connected(): boolean {
    return this.#ready.now
  }

  get problem(): string | undefined {
    return this.#ready.problem
  }

  inFlight(): readonly object[] {
    return [] // `KeptCommands` limits each
  }

  commands(): Redis | Promise<Redis> {
    return this.#ready.now ? this.#client : this.#ready.wait().then(() => this.#client)
  }

  dedicated(): Redis {
    const order = this.#sentinels
    if (order === undefined) return this.#client.duplicate(OVERRIDES)
    const overrides = sentinelOverrides(this.#client.options, this.#connectTimeout)
    return order.observe(this.#client.duplicate({ ...OVERRIDES, ...overrides, sentinels: order.list }))
  }

  arrived(): void {}

  beside(): Redis | undefined {
    if (this.#ready.now) return this.#client
    this.#ready.wait().catch(() => undefined) // the caller that needs it asks again
    return undefined
  }

  slotOf(): number {
    return ONE_PLACE.slot
  }

  place(): Place {
    return ONE_PLACE
  }

  async refresh(): Promise<void> {}

  async isOver(_key: string, since: number): Promise<boolean> {
    return this.predecessors.areOver(since) // ioredis repeats by itself and at once
  }

  recover(): undefined {}

  onDemoted(): boolean {
    return false
  }

  async close(): Promise<void> {
    this.#ready.close()
    this.watch.stop()
    this.#client.off('close', this.#onClose)
    this.#leaveSockets()
  }
}
