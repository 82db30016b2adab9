import type { Redis, RedisOptions } from 'ioredis'

type Sentinel = NonNullable<RedisOptions['sentinels']>[number]

/**
 * The order in which all connections of one client ask the sentinels. Each connection is an ioredis client of its own, which would always
 * begin with the first sentinel: if that one names a dead server or a replica, no connection could be opened, whatever the others know.
 */
export class SentinelOrder {
  readonly #sentinels: readonly Sentinel[]
  #first = 0

  constructor(sentinels: readonly Sentinel[]) {
    this.#sentinels = sentinels
  }

  /** All sentinels in the order in which the next connection asks them. */
  get list(): Sentinel[] {
    return [...this.#sentinels.slice(this.#first), ...this.#sentinels.slice(0, this.#first)]
  }

  /** If this client, made with `list`, ends before it was ready, the next client asks the next sentinel first. */
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

  /** Makes the next connections ask this sentinel first. */
  prefer(sentinel: Sentinel): void {
    this.#first = Math.max(0, this.#sentinels.indexOf(sentinel))
  }
}
