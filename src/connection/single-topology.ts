import { Redis, type RedisOptions } from 'ioredis'
import type { Emit } from '../events.js'
import type { Settings } from '../options.js'
import { Link } from './link.js'
import type { MasterFinder } from './master-finder.js'
import { OVERRIDES } from './overrides.js'
import { Readiness } from './readiness.js'
import { assertVersion } from './server-version.js'
import { ONE_PLACE, type Place, type Topology } from './topology.js'

/** One server, or the master that sentinels name or a finder finds. */
export class SingleTopology implements Topology {
  readonly resends = false
  readonly #options: RedisOptions
  readonly #link: Link
  readonly #finder: MasterFinder | undefined
  readonly #demoted: () => void

  /** `demoted` is told when another server has to be looked for by all connections. */
  constructor(params: {
    options: RedisOptions
    settings: Settings
    emit: Emit
    demoted: () => void
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
    this.#link = new Link({
      role: 'commands',
      open: async () => new Redis({ ...(await this.#target()), socketTimeout: settings.commandTimeout }),
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

  async dedicated(): Promise<Redis> {
    return new Redis(await this.#target())
  }

  beside(): Promise<Redis> {
    return this.#link.get()
  }

  place(): Place {
    return ONE_PLACE
  }

  async refresh(): Promise<void> {
    const { current } = this.#link
    if (current === undefined) return
    const [role] = (await current.call('ROLE')) as [string]
    if (role !== 'master') this.onDemoted(current)
  }

  onDemoted(client: Redis): boolean {
    if (client === this.#link.current) {
      this.#link.retire(client) // the name may lead to another server by now
      this.#demoted()
    }
    return this.#finder !== undefined || Boolean(this.#options.sentinels)
  }

  close(): Promise<void> {
    this.#finder?.close()
    return this.#link.close(true)
  }

  async #target(): Promise<RedisOptions> {
    return this.#finder === undefined ? this.#options : { ...this.#options, ...(await this.#finder.find()) }
  }
}

/** A single-node client of the user's: its reconnection and its end are the user's. */
export class BorrowedTopology implements Topology {
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

  onDemoted(): boolean {
    return false
  }

  async close(): Promise<void> {}
}
