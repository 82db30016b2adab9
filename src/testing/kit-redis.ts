import { Redis } from 'ioredis'
import { ConnectionError } from '../errors.js'
import type { QueueKeys, ReliableKeys } from '../keys.js'
import { resolveSettings } from '../options.js'
import { advised } from '../redis/connections/connect-advice.js'
import { translateError } from '../redis/replies/server-errors.js'
import { ASIDE } from '../store/due-keys.js'
import { ReliableGroupStore } from '../store/reliable-group-store.js'
import type { Sender } from '../store/sender.js'
import { WheelStore } from '../store/wheel-store.js'
import type { DeadLetterKeys, Delivering } from './tracking-client.js'

/** The kit's own connection to Redis, which does not fail on purpose. */
export class KitRedis {
  readonly #raw: Redis
  readonly #sender: Sender

  private constructor(raw: Redis) {
    this.#raw = raw
    this.#sender = senderOf(raw)
  }

  /** @throws ConnectionError there is no server; AuthError it wants another password */
  static async open(url: string): Promise<KitRedis> {
    const raw = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
    let why: unknown
    raw.on('error', (error) => (why = error)) // calls reject
    try {
      await raw.connect()
    } catch (thrown) {
      const { host } = new URL(url)
      const cause = advised(translateError(why ?? thrown), host, false)
      if (!(cause instanceof ConnectionError)) throw cause
      const message = `the test kit found no Redis at ${host}: start one, or give its url or REDIS_URL: ${cause.message}`
      throw new ConnectionError(message, 'not-applied', { cause })
    }
    return new KitRedis(raw)
  }

  /**
   * The first time after `now` at which a message is due in a schedule, a queue's rate admits one, or a dead letter is too old, epoch
   * milliseconds.
   */
  async first(schedules: readonly string[], { worked, aging }: Delivering, now: number): Promise<number | null> {
    const heads = await Promise.all(schedules.map((key) => this.#next(key, now)))
    const ends = aging.map(async (keys) => {
      const age = await this.#keptFor(keys)
      if (age === null) return null
      const oldest = await this.#next(keys.due, now - age - 1)
      return oldest === null ? null : oldest + age + 1 // it is kept for the whole age
    })
    return least([...heads, ...(await this.#openings(worked, now)), ...(await Promise.all(ends))])
  }

  /** The last time that is known now at which a message becomes visible. */
  async last(schedules: readonly string[], rated: readonly ReliableKeys[], now: number): Promise<number | null> {
    const tails = await Promise.all(
      schedules.map((key) => this.#raw.zrevrangebyscore(key, `(${ASIDE}`, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)),
    )
    const scores = [...tails.map(scoreOf), ...(await this.#openings(rated, now))].filter((score) => score !== null)
    return scores.length === 0 ? null : Math.max(...scores)
  }

  /** Makes the waiting clients poll now. */
  async wake(channels: readonly string[]): Promise<void> {
    await Promise.all(channels.map((channel) => this.#raw.publish(channel, '0')))
  }

  /**
   * Whether all messages due at `now` are delivered, no worker has one or is about to get one, and dead letters that are too old are
   * dropped. Messages held back by a pause or a limit count as delivered.
   */
  async isDelivered({ delayed, worked, aging }: Delivering, now: number): Promise<boolean> {
    const schedules = [
      ...delayed.flatMap(({ timeouts, wheel }) => [timeouts, wheel]),
      ...worked.map(({ ticks }) => ticks),
    ]
    const counts = await Promise.all([
      ...schedules.map((key) => this.#raw.zcount(key, '-inf', now)),
      ...worked.map(async (keys) => {
        // at one moment: a message that a worker gives back between two commands would be in neither
        const { visible, paused, limited, inFlight } = await this.#totals(keys, now)
        return visible - paused - limited + inFlight
      }),
      ...aging.map(async (keys) => {
        const age = await this.#keptFor(keys)
        return age === null ? 0 : this.#raw.zcount(keys.due, '-inf', `(${now - age}`)
      }),
    ])
    return counts.every((count) => count === 0)
  }

  /** The first time of a schedule after `now`. */
  async #next(key: string, now: number): Promise<number | null> {
    return scoreOf(await this.#raw.zrangebyscore(key, `(${now}`, `(${ASIDE}`, 'WITHSCORES', 'LIMIT', 0, 1))
  }

  /** How long a queue keeps its dead letters; `null` without an end, or if it has none. */
  async #keptFor({ config }: DeadLetterKeys): Promise<number | null> {
    const [age, deadLetters] = await this.#raw.hmget(config, 'keepDeadLettersFor', 'deadLetters')
    return typeof age !== 'string' || deadLetters === '0' ? null : Number(age)
  }

  #totals(keys: ReliableKeys, now: number) {
    return new ReliableGroupStore(
      this.#sender,
      resolveSettings({ clock: 'local' }, () => now),
      keys,
    ).queueTotals()
  }

  /** When the rates of queues admit the messages that they hold back now. */
  #openings(rated: readonly ReliableKeys[], now: number): Promise<(number | null)[]> {
    return Promise.all(
      rated.map(async (keys) => {
        const { limited, opensAt } = await this.#totals(keys, now)
        return limited > 0 ? opensAt : null
      }),
    )
  }

  /** Removes keys and the buckets of delayed queues, and closes the connection. */
  async close(keys: readonly string[], delayed: readonly QueueKeys[]): Promise<void> {
    try {
      const settings = resolveSettings({}, Date.now)
      await Promise.all(delayed.map((queue) => new WheelStore(this.#sender, queue, settings).clear()))
      if (keys.length > 0) await this.#raw.unlink(...keys)
    } finally {
      this.#raw.disconnect()
    }
  }
}

function senderOf(raw: Redis): Sender {
  return {
    async call(command, args) {
      try {
        return await raw.callBuffer(command, ...args)
      } catch (error) {
        throw translateError(error)
      }
    },
    pipeline: (commands) => Promise.all(commands.map(([command, args]) => raw.callBuffer(command, ...args))),
  }
}

/** The score in a reply with at most one member. */
function scoreOf([, score]: readonly string[]): number | null {
  return score === undefined ? null : Number(score)
}

function least(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null)
  return known.length === 0 ? null : Math.min(...known)
}
