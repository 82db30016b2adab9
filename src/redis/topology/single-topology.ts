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
import { Predecessors } from '../connections/predecessors.js'
import { warnOfEviction } from '../eviction.js'
import { Readiness } from '../readiness.js'
import { SentinelOrder } from './sentinel-order.js'
import { SentinelWatch } from './sentinel-watch.js'
import { assertVersion, isBefore62, roleIn } from '../connections/server-version.js'
import { SilenceWatch } from '../replies/silence-watch.js'
import { ONE_PLACE, type Place, type Topology } from './topology.js'

/** One server, or the master that sentinels name or a finder finds. */
export class SingleTopology implements Topology {
  readonly resends = false
  readonly closesAtOnce = true
  readonly predecessors = new Predecessors()
  isBefore62 = false
  readonly watch = undefined // a connection of our own has its own limit, and never keeps a command
  readonly moves: boolean
  readonly address: string
  readonly #options: RedisOptions
  readonly #connection: ReconnectingConnection
  readonly #finder: MasterFinder | undefined
  readonly #demoted: (isStale: IsStale) => void
  readonly #sentinels: SentinelOrder | undefined
  readonly #watch: SentinelWatch | undefined

  /** `demoted` is called when all connections to a server must be replaced; its argument decides which these are. */
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
      })
    }
    this.address = this.#finder?.address ?? addressOfOptions(options)
    this.#connection = new ReconnectingConnection({
      role: 'commands',
      address: this.address,
      open: async () => checkOrder(await this.#create({ socketTimeout: settings.commandTimeout })),
      prepare: async (redis) => {
        dropWhenStuck(this.#connection, redis, settings.commandTimeout)
        void warnOfEviction(redis, emit)
        const info = await assertVersion(redis)
        this.isBefore62 = isBefore62(info)
        await this.predecessors.end(redis, info)
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
    this.#watch?.start() // durable offers alone open no other connection
    return this.#create()
  }

  beside(dedicated: Redis): Redis | undefined {
    const { current } = this.#connection
    if (current === undefined)
      this.#connection.get().catch(() => undefined) // the caller that needs it asks again
    // a name may lead to several servers, and a failover to another one, where the same number is the id of another client
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
    return this.predecessors.areOver(since) // the connection was opened after they were ended
  }

  recover(): undefined {}

  onDemoted(client: Redis): boolean {
    const demoted = remoteAddressOf(client)
    if (client === this.#connection.current) this.#leave((peer) => peer === demoted)
    return this.moves
  }

  async close(): Promise<void> {
    this.#finder?.close()
    await Promise.all([this.#watch?.close(), this.#connection.close(true)])
  }

  /** The name, the sentinels or the finder lead to another server now. */
  #leave(isStale: IsStale): void {
    const { current } = this.#connection
    if (current === undefined) this.#connection.leave(isStale)
    else if (isStale(remoteAddressOf(current))) this.#connection.retire(current)
    this.#demoted(isStale)
  }

  async #create(options?: RedisOptions): Promise<Redis> {
    const found = await this.#finder?.find()
    const sentinels = this.#sentinels
    if (sentinels === undefined) return new Redis({ ...this.#options, ...found, ...options })
    return sentinels.observe(new Redis({ ...this.#options, ...options, sentinels: sentinels.list }))
  }
}

/** A single-node client of the user, who decides about its reconnection and its end. */
export class BorrowedTopology implements Topology {
  readonly resends: boolean
  readonly closesAtOnce = false
  readonly predecessors = new Predecessors()
  isBefore62 = false
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
      this.isBefore62 = isBefore62(await assertVersion(client))
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
