import { Redis, type RedisOptions } from 'ioredis'
import { Link } from './link.js'
import { OVERRIDES } from './overrides.js'

const CHANNEL = '+switch-master'

export interface SentinelWatchParams {
  /** With the sentinels and the name of the master. */
  readonly options: RedisOptions
  readonly connectTimeout: number
  /** The master is at this address now, says one of the sentinels. */
  readonly onSwitch: (address: string) => void
  /** A sentinel is heard again, which may have spoken meanwhile. */
  readonly onMissed: () => void
}

/**
 * Listens to all sentinels: to them a failover is over some seconds before the old master learns of it, if that one lives on.
 * Until then it takes everything, to lose it. Each sentinel tells when it has learned of the new master itself, so that after
 * the last word no connection is at the old one because it had asked a sentinel that did not know yet.
 */
export class SentinelWatch {
  readonly #links: readonly Link[]
  #started = false

  constructor({ options, connectTimeout, onSwitch, onMissed }: SentinelWatchParams) {
    this.#links = (options.sentinels ?? []).map(
      (sentinel) =>
        new Link({
          role: 'commands',
          open: () => {
            const redis = new Redis({ ...atSentinel(options), ...sentinel, connectTimeout })
            redis.on('message', (_channel: string, message: string) => {
              const [name, , , host = '', port = ''] = message.split(' ')
              if (name === options.name) onSwitch(`${host}:${port}`)
            })
            return redis
          },
          prepare: subscriber(onMissed),
          connectTimeout,
          emit: () => undefined, // a sentinel that is down is for those who run it to know: there are others
        }),
    )
  }

  /** From the first use of the master on. */
  start(): void {
    if (this.#started) return
    this.#started = true
    for (const link of this.#links) link.get().catch(() => undefined) // it goes on trying
  }

  async close(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.close()))
  }
}

function subscriber(onMissed: () => void): (redis: Redis) => Promise<void> {
  let before = false
  return async (redis) => {
    await redis.subscribe(CHANNEL)
    if (before) onMissed()
    before = true
  }
}

/** What of the options is meant for sentinels. */
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
