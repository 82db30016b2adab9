import type { ClientOptions, RedelayedClient } from '../client.js'
import { InvalidArgumentError, RedelayedError, inWords } from '../errors.js'
import { deadLettersOf, listKeys, queueKeys, reliableKeys } from '../keys.js'
import { nonEmptyString } from '../options.js'
import { hostOf } from '../redis/options.js'
import { ShardedReliableQueue } from '../sharding/sharded-reliable-queue.js'
import { durationMs, type Duration } from '../duration.js'
import { pause } from '../timing/pause.js'
import { flakyServer, type FlakyServer } from './flaky-server.js'
import { KitRedis } from './kit-redis.js'
import { TrackingClient } from './tracking-client.js'

export interface TestKitOptions extends Omit<
  ClientOptions,
  'clock' | 'redis' | 'cluster' | 'sentinels' | 'name' | 'nameMapper'
> {
  /** The URL of a real Redis, but not of production, because the kit writes keys. Default: `REDIS_URL`, else `redis://127.0.0.1:6379`. */
  readonly url?: string | undefined
  /** The start of the virtual clock. Default: now. */
  readonly startAt?: Date | undefined
  /** How long, in real time, handlers may take and `until` waits, in milliseconds. 10 to 600,000; default 5,000. */
  readonly timeout?: Duration | undefined
}

/** The state of a message of a reliable queue. `'gone'`: it was acknowledged, removed or has expired. */
export type KitState = 'delayed' | 'visible' | 'inFlight' | 'dead' | 'gone'

/** A condition that the kit waited for was not met in time. */
export class TestKitError extends RedelayedError {
  constructor(message: string) {
    super('ERR_TEST_KIT', message)
  }
}

/** The time between checks, in real time, because the kit waits for other processes and sockets. */
const CHECK_MS = 2
/** A caller that began to wait after the announcement polls after this time. */
const SWEEP_MS = 100
/** The most due times on the way of one `advance`. */
const MOST_STEPS = 100_000

/** A client whose delays follow a clock that the test moves, on a real Redis that fails on demand. */
export class TestKit {
  readonly client: RedelayedClient
  /** Makes the connection to Redis fail. */
  readonly redis: FlakyServer
  readonly #tracking: TrackingClient
  readonly #raw: KitRedis
  readonly #timeout: number
  readonly #names = new Set<string>()
  #now: number
  #moving: Promise<void> = Promise.resolve()
  #closing: Promise<void> | undefined

  private constructor(params: {
    options: ClientOptions
    redis: FlakyServer
    raw: KitRedis
    startAt: number
    timeout: number
  }) {
    this.#now = params.startAt
    this.#timeout = params.timeout
    this.#raw = params.raw
    this.redis = params.redis
    this.#tracking = new TrackingClient({ sweepInterval: SWEEP_MS, ...params.options, clock: 'local' }, () => this.#now)
    this.client = this.#tracking
  }

  /** @internal use `createTestKit` */
  static async open({ url, startAt = new Date(), timeout = 5_000, ...options }: TestKitOptions): Promise<TestKit> {
    const at = startAt instanceof Date ? startAt.getTime() : NaN
    if (!Number.isSafeInteger(at) || at < 0) throw new InvalidArgumentError('startAt', 'a date after 1970', startAt)
    const timeoutMs = durationMs('timeout', timeout, 10, 600_000)
    const given = nonEmptyString('url', url ?? process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')
    const target = URL.canParse(given) ? new URL(given) : undefined
    if (target?.protocol !== 'redis:')
      throw new InvalidArgumentError('url', 'the URL of one Redis without TLS', inWords('another'))
    const raw = await KitRedis.open(given)
    let redis: FlakyServer | undefined
    try {
      redis = await flakyServer({ host: hostOf(target), port: Number(target.port || 6379) })
      const through = new URL(given)
      through.hostname = '127.0.0.1'
      through.port = String(redis.port)
      return new TestKit({ options: { ...options, url: through.href }, redis, raw, startAt: at, timeout: timeoutMs })
    } catch (error) {
      await Promise.all([raw.close([], []), redis?.close()])
      throw error
    }
  }

  /** The virtual time. */
  get now(): Date {
    return new Date(this.#now)
  }

  /**
   * A queue name that no other test has; `close` removes all keys of it.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the prefix is empty
   * @example
   * ```ts
   * const orders = kit.client.getBlockingQueue<Order>(kit.uniqueName('orders'))
   * ```
   */
  uniqueName(prefix = 'test'): string {
    const name = `${nonEmptyString('prefix', prefix)}-${crypto.randomUUID()}`
    this.#names.add(name)
    return name
  }

  /**
   * Moves the clock, by milliseconds or a text such as `'30m'`, from one due time of the client's queues
   * to the next, and at each waits until all due messages are delivered and the client's workers have handled them.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: it is not a duration
   * @throws TestKitError `ERR_TEST_KIT`: a handler took longer than `timeout`, or there are more than 100,000 due times
   * @example
   * ```ts
   * await delayed.offer('to ada', 30, 'minutes')
   * await kit.advance('30m')
   * console.log(await delayed.destination.size())
   * ```
   */
  advance(by: Duration): Promise<void> {
    const target = this.#now + durationMs('by', by)
    if (!Number.isSafeInteger(target)) throw new InvalidArgumentError('by', 'a time of at most 2^53-1 ms', by)
    return this.#move(target)
  }

  /**
   * Delivers due messages without moving the clock: for messages without a delay, and after a failure.
   *
   * @throws TestKitError `ERR_TEST_KIT`: a handler took longer than `timeout`
   * @example
   * ```ts
   * await mails.add({ to: 'ada@example.org' })
   * await kit.settle()
   * ```
   */
  settle(): Promise<void> {
    return this.#move(this.#now)
  }

  /**
   * Moves the clock to the last due time that is known now, and delivers all messages on the way.
   *
   * @throws TestKitError `ERR_TEST_KIT`: as `advance`
   * @example
   * ```ts
   * await delayed.offer('to ada', 30, 'days')
   * await kit.runAll()
   * ```
   */
  async runAll(): Promise<void> {
    const promoted = await this.#raw.last(this.#tracking.wheels(), [], this.#now) // until then the last due time is unknown
    if (promoted !== null) await this.#move(Math.max(this.#now, promoted))
    const last = await this.#raw.last(this.#tracking.schedules(), this.#tracking.delivering().worked, this.#now)
    await this.#move(Math.max(this.#now, last ?? 0))
  }

  /**
   * Waits, in real time, until a message of a reliable queue is in a state.
   *
   * @throws TestKitError `ERR_TEST_KIT`: it was not in that state within `timeout`
   * @example
   * ```ts
   * const { id } = await mails.add({ to: 'ada' })
   * await kit.until(mails, id, 'dead')
   * ```
   */
  async until(queue: { readonly name: string }, id: string, state: KitState): Promise<void> {
    const reliable = queue instanceof ShardedReliableQueue ? queue : this.client.getReliableQueue(queue.name)
    await this.eventually(
      async () => {
        if (state === 'dead') return reliable.deadLetters.contains(id)
        const found = await reliable.get(id)
        return state === 'gone' ? found === null : found?.state === state
      },
      `the message ${JSON.stringify(id)} of ${JSON.stringify(queue.name)} is ${state}`,
    )
  }

  /**
   * Waits, in real time, until a condition holds.
   *
   * @throws TestKitError `ERR_TEST_KIT`: it did not hold within `timeout`
   * @example
   * ```ts
   * await kit.eventually(async () => (await queue.size()) === 3, 'three mails are there')
   * ```
   */
  async eventually(condition: () => boolean | Promise<boolean>, what = 'the condition holds'): Promise<void> {
    const deadline = performance.now() + this.#timeout
    for (;;) {
      if (await condition()) return
      if (performance.now() > deadline) throw new TestKitError(`waited ${this.#timeout} ms until ${what}`)
      await pause(CHECK_MS)
    }
  }

  /**
   * Shuts the client down and removes the keys of the names that the kit gave. May be called more than once.
   *
   * @throws Error of ioredis: the keys could not be removed
   *
   * @example
   * ```ts
   * await kit.close()
   * ```
   */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  /**
   * The same as `close`, at the end of a block.
   *
   * @throws as `close`
   *
   * @example
   * ```ts
   * import { createTestKit } from 'redelayed/testing'
   *
   * await using kit = await createTestKit()
   * await kit.settle()
   * ```
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Moves the clock, one call after the other, even if no caller waits for the last one. */
  #move(target: number): Promise<void> {
    this.#moving = this.#moving.catch(() => undefined).then(() => this.#step(target))
    return this.#moving
  }

  async #step(target: number): Promise<void> {
    for (let steps = 0; ; steps++) {
      await this.#deliver()
      const next = await this.#raw.first(this.#tracking.schedules(), this.#tracking.delivering(), this.#now)
      if (next === null || next > target) break
      if (steps >= MOST_STEPS) throw new TestKitError(`something is due at more than ${MOST_STEPS} moments`)
      this.#now = next
    }
    if (target > this.#now) {
      this.#now = target
      await this.#deliver()
    }
  }

  /** Waits until all due messages are delivered, and no handler works on one any more. */
  async #deliver(): Promise<void> {
    const delivering = this.#tracking.delivering()
    await this.#raw.wake(this.#tracking.channels()) // also for waits of the test that the kit does not know
    await this.eventually(async () => {
      const isDone =
        (await this.#raw.isDelivered(delivering, this.#now)) && this.#tracking.workers.every((worker) => worker.isIdle)
      // again and again: a client that was not subscribed yet, or has just received a later time, would not run its script
      if (!isDone) await this.#raw.wake(this.#tracking.channels())
      return isDone
    }, 'everything due was delivered and handled')
  }

  async #end(): Promise<void> {
    this.redis.start()
    await this.client.shutdown()
    const shards = this.#tracking.shardsOf([...this.#names])
    const names = [...this.#names, ...shards]
    const keys = names.flatMap((name) =>
      [queueKeys(name), reliableKeys(name), reliableKeys(deadLettersOf(name))].flatMap(listKeys),
    )
    try {
      await this.#raw.close(keys, names.map(queueKeys))
    } finally {
      await this.redis.close()
    }
  }
}

/**
 * Opens a kit; close it at the end of the test.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option is unknown or wrong
 * @throws ConnectionError `ERR_CONNECTION`: there is no Redis at the URL
 * @throws AuthError `ERR_AUTH`: Redis wants another user or password
 * @example
 * ```ts
 * import { createTestKit } from 'redelayed/testing'
 *
 * await using kit = await createTestKit({ startAt: new Date('2026-01-01') })
 * ```
 */
export function createTestKit(options: TestKitOptions = {}): Promise<TestKit> {
  return TestKit.open(options)
}
