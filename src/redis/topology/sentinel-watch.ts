import { Redis, type RedisOptions } from 'ioredis'
import type { Settings } from '../../options.js'
import { addressOfNodes } from '../connections/address.js'
import { keepPinging } from '../replies/keep-pinging.js'
import { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { OVERRIDES } from '../connections/ioredis-defaults.js'
import { elsewhereThan, type IsStale } from '../connections/remote-address.js'

const SWITCHED = '+switch-master'
/** The event of a new group: an administrator who changes the master removes and creates the group, without a failover. */
const MADE = '+monitor'

type Sentinel = NonNullable<RedisOptions['sentinels']>[number]

export interface SentinelWatchParams {
  /** The connection options, with the sentinels and the name of the master. */
  readonly options: RedisOptions
  readonly settings: Settings
  /** A sentinel has named a master: connections to other servers are stale. */
  readonly onSwitch: (isStale: IsStale) => void
  /** This sentinel knows of a failover of which the others may not know yet. */
  readonly onInformed: (sentinel: Sentinel) => void
}

/**
 * Listens to all sentinels: they complete a failover some seconds before an old master that is still alive learns of it.
 * Until then the old master accepts writes and loses them. Each sentinel publishes when it has learned of the new master itself, so
 * after the last announcement no connection stays at the old master because it asked an outdated sentinel.
 */
export class SentinelWatch {
  readonly #params: SentinelWatchParams
  readonly #connections: readonly ReconnectingConnection[]
  #started = false

  constructor(params: SentinelWatchParams) {
    this.#params = params
    this.#connections = (params.options.sentinels ?? []).map((sentinel) => this.#listenTo(sentinel))
  }

  /** Starts at the first use of the master. */
  start(): void {
    if (this.#started) return
    this.#started = true
    for (const connection of this.#connections) connection.get().catch(() => undefined) // the connection keeps trying
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()))
  }

  #listenTo(sentinel: Sentinel): ReconnectingConnection {
    const { options, settings } = this.#params
    const { connectTimeout, commandTimeout, pingInterval } = settings
    let last: string | undefined
    const connection: ReconnectingConnection = new ReconnectingConnection({
      address: addressOfNodes([sentinel]),
      role: 'commands',
      open: () => {
        const redis = new Redis({ ...atSentinel(options), ...sentinel, connectTimeout, socketTimeout: commandTimeout })
        redis.on('message', (channel: string, message: string) => {
          const words = message.split(' ')
          const [name, host = '', port = ''] = channel === MADE ? words.slice(1) : [words[0], ...words.slice(3)]
          if (name !== options.name) return
          last = `${host}:${port}`
          this.#params.onInformed(sentinel)
          this.#announce(host, port)
        })
        return redis
      },
      prepare: async (redis) => {
        keepPinging(connection, redis, pingInterval)
        // sent together, so that no failover happens between the answer and the subscription
        const [address] = await Promise.all([
          redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', options.name ?? ''),
          redis.subscribe(SWITCHED),
          redis.subscribe(MADE).catch(() => undefined), // the user may not have this right
        ])
        if (!Array.isArray(address)) return
        const [host, port] = address.map(String) as [string, string]
        // a sentinel that was isolated repeats its old answer, which would close connections to the right master
        if (last === `${host}:${port}`) return
        last = `${host}:${port}`
        this.#announce(host, port)
      },
      connectTimeout,
      emit: () => undefined, // no event for a sentinel that is down, because there are others
    })
    return connection
  }

  /** Announces a master, unless its address cannot be mapped. */
  #announce(host: string, port: string): void {
    const { natMap } = this.#params.options
    const address = `${host}:${port}`
    const isStale = async (): Promise<IsStale> => {
      const mapped = typeof natMap === 'function' ? natMap(address) : natMap?.[address]
      return elsewhereThan(mapped ?? { host, port: Number(port) })
    }
    isStale().then(this.#params.onSwitch, () => undefined)
  }
}

/** The options that apply to sentinels. */
function atSentinel(options: RedisOptions): RedisOptions {
  return {
    ...OVERRIDES,
    ...(options.sentinelUsername && { username: options.sentinelUsername }),
    ...(options.sentinelPassword && { password: options.sentinelPassword }),
    ...(options.sentinelTLS && { tls: options.sentinelTLS }),
    ...(options.family && { family: options.family }),
    ...(options.connectionName && { connectionName: options.connectionName }),
    enableReadyCheck: false,
    protocol: 2,
  }
}
