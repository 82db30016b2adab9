import type { Redis, RedisOptions } from 'ioredis'

type Sentinel = NonNullable<RedisOptions['sentinels']>[number]

/**
 * Which sentinel is asked first, for all connections of one client. Each connection is an ioredis client of its own, which would always begin with
 * the first sentinel given: where that one names a dead server or a replica, none could ever be opened, whatever the others know.
 */
export class SentinelOrder {
  readonly #sentinels: readonly Sentinel[]
  #first = 0

  constructor(sentinels: readonly Sentinel[]) {
    this.#sentinels = sentinels
  }

  /** All of them, in the order in which the next connection asks them. */
  get list(): Sentinel[] {
    return [...this.#sentinels.slice(this.#first), ...this.#sentinels.slice(0, this.#first)]
  }

  /** When this client, made with `list`, ends before it was ready, the next one asks the next sentinel first. */
  observe(redis: Redis): Redis {
    const first = this.#first
    let isReady = false
    redis.once('ready', () => (isReady = true))
    redis.once('end', () => {
      // connections that fail together move on by one sentinel, not by one each
      if (!isReady && this.#first === first) this.#first = (first + 1) % this.#sentinels.length
    })
    return redis
  }

  /** This sentinel is asked first from now on. */
  prefer(sentinel: Sentinel): void {
    this.#first = Math.max(0, this.#sentinels.indexOf(sentinel))
  }
}
