import { Redis, type RedisOptions } from 'ioredis'
import type { Emit } from '../events.js'
import type { Settings } from '../options.js'
import { Link } from './link.js'
import type { MasterFinder } from './master-finder.js'
import { OVERRIDES } from './overrides.js'
import { peerOf, type IsStale } from './peer.js'
import { Readiness } from './readiness.js'
import { SentinelWatch } from './sentinel-watch.js'
import { assertVersion, roleIn } from './server-version.js'
import { ONE_PLACE, type Place, type Topology } from './topology.js'

/** One server, or the master that sentinels name or a finder finds. */
export class SingleTopology implements Topology {
  readonly resends = false
  readonly closesAtOnce = true
  readonly moves: boolean
  readonly #options: RedisOptions
  readonly #link: Link
  readonly #finder: MasterFinder | undefined
  readonly #demoted: (isStale: IsStale) => void
  readonly #watch: SentinelWatch | undefined

  /** `demoted` is told when all connections to a server have to look for another one, and which these are. */
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
      sentinelRetryStrategy: () => null,
      connectTimeout: settings.connectTimeout,
    }
    this.moves = this.#finder !== undefined || Boolean(options.sentinels)
    if (options.sentinels) {
      this.#watch = new SentinelWatch({
        options,
        settings,
        onSwitch: (isStale) => this.#leave(isStale),
      })
    }
    this.#link = new Link({
      role: 'commands',
      open: async () => new Redis({ ...(await this.#target()), socketTimeout: settings.commandTimeout }),
      prepare: async (redis) => {
        await assertVersion(redis)
        this.#watch?.start()
      },
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

  async dedicated(): Promise<Redis> {
    this.#watch?.start() // durable offers alone open no other connection
    return new Redis(await this.#target())
  }

  beside(dedicated: Redis): Redis | undefined {
    const { current } = this.#link
    if (current === undefined)
      this.#link.get().catch(() => undefined) // who needs it asks again
    // a name may lead to several servers, and a failover to another one, where the same number is another client's
    else if (peerOf(current) === peerOf(dedicated)) return current
    return undefined
  }

  place(): Place {
    return ONE_PLACE
  }

  async refresh(): Promise<void> {
    const { current } = this.#link
    if (current === undefined) return
    if (roleIn(await current.info('replication')) !== 'master') this.onDemoted(current)
  }

  onDemoted(client: Redis): boolean {
    const demoted = peerOf(client)
    if (client === this.#link.current) this.#leave((peer) => peer === demoted)
    return this.moves
  }

  async close(): Promise<void> {
    this.#finder?.close()
    await Promise.all([this.#watch?.close(), this.#link.close(true)])
  }

  /** The name, the sentinels or the finder lead to another server by now. */
  #leave(isStale: IsStale): void {
    const { current } = this.#link
    if (current === undefined) this.#link.leave(isStale)
    else if (isStale(peerOf(current))) this.#link.retire(current)
    this.#demoted(isStale)
  }

  async #target(): Promise<RedisOptions> {
    return this.#finder === undefined ? this.#options : { ...this.#options, ...(await this.#finder.find()) }
  }
}

/** A single-node client of the user's: its reconnection and its end are the user's. */
export class BorrowedTopology implements Topology {
  readonly resends: boolean
  readonly closesAtOnce = false
  readonly moves = true // where the user's client leads is not known
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

  beside(): Redis | undefined {
    if (this.#ready.now) return this.#client
    this.#ready.wait().catch(() => undefined) // who needs it asks again
    return undefined
  }

  place(): Place {
    return ONE_PLACE
  }

  async refresh(): Promise<void> {}

  onDemoted(): boolean {
    return false
  }

  async close(): Promise<void> {
    this.#ready.close()
  }
}
