import { Redis } from 'ioredis'
import {
  bulksOf,
  Collector,
  farAway,
  HOUR_MS,
  IN_FLIGHT,
  paced,
  payloadOf,
  timed,
  timedBulk,
  type AddMode,
  type Bulk,
  type Session,
  type SessionOptions,
  type Subject,
  type TakeOptions,
  type Taken,
} from './subject.js'

const BULK = { size: 250, inFlight: 4 }
/** The size is in the name of one of them. */
const BULKS = bulksOf([BULK.size], [1, 2, 4, 8])

/**
 * The floor: the bare commands, sent by ioredis without any library, without safety and without bookkeeping. One ZADD per
 * message that waits, in pipelines; one LPOP per portion that is taken.
 */
export const plainRedis: Subject = {
  name: 'plain Redis (floor)',
  promise: 'at most once',
  bulks: BULKS,
  open: (options) => Promise.resolve(new PlainSession(options, false)),
}

/** The same with one ZADD for many messages, where many are added at once: what no queue can come near that answers for each. */
export const plainRedisVariadic: Subject = {
  name: 'plain Redis, one ZADD for 250',
  promise: 'at most once',
  bulks: BULKS,
  open: (options) => Promise.resolve(new PlainSession(options, true)),
}

class PlainSession implements Session {
  readonly #options: SessionOptions
  readonly #redis: Redis
  readonly #variadic: boolean
  #added = 0
  #stopped = false

  constructor(options: SessionOptions, variadic: boolean) {
    this.#options = options
    this.#variadic = variadic
    this.#redis = new Redis(options.url, options.ca === undefined ? {} : { tls: { ca: options.ca } })
  }

  async schedule(dues: readonly number[]): Promise<readonly number[]> {
    await this.#zadd(dues.length, (index) => dues[index] ?? 0)
    return dues
  }

  async fill(count: number): Promise<void> {
    const now = Date.now()
    await this.#zadd(count, () => now + farAway())
  }

  async load(count: number, singles?: number): Promise<void> {
    if (singles !== undefined) await timed(count, singles, (index) => this.#push(index))
    else
      await timedBulk(count, this.#bulk, (from, to) =>
        this.#redis.rpush(this.#options.queue, ...Array.from({ length: to - from }, (_, i) => this.#payload(from + i))),
      )
  }

  async add(count: number, mode: AddMode): Promise<number> {
    const due = Date.now() + HOUR_MS
    if (mode === 'bulk') return this.#zadd(count, () => due)
    return timed(count, IN_FLIGHT[mode], () => this.#redis.zadd(this.#key, due, this.#payload(this.#added++)))
  }

  async produce(at: readonly number[]): Promise<void> {
    await paced(at, (index) => this.#push(index))
  }

  async ready(): Promise<void> {
    await this.#redis.ping()
  }

  async take(count: number, { consumers, batch }: TakeOptions): Promise<Taken> {
    const collector = new Collector(count)
    for (let i = 0; i < consumers; i++) void this.#consume(batch, collector)
    return collector.done
  }

  async close(): Promise<void> {
    this.#stopped = true
    this.#redis.disconnect()
    return Promise.resolve()
  }

  /** What all its consumers share is one connection: they do not wait at the server, because the list is full. */
  async #consume(batch: number, collector: Collector): Promise<void> {
    while (!this.#stopped) {
      const values = await this.#redis.lpop(this.#options.queue, batch).catch(() => null)
      if (values === null) return
      for (const value of values) collector.add(value)
    }
  }

  #zadd(count: number, dueOf: (index: number) => number): Promise<number> {
    return timedBulk(count, this.#bulk, (from, to) => {
      const members = Array.from(
        { length: to - from },
        (_, i) => [dueOf(from + i), this.#payload(this.#added++)] as const,
      )
      if (this.#variadic) return this.#redis.zadd(this.#key, ...members.flat())
      const pipeline = this.#redis.pipeline()
      for (const [due, payload] of members) pipeline.zadd(this.#key, due, payload)
      return pipeline.exec()
    })
  }

  get #bulk(): Bulk {
    return this.#options.bulk ?? BULK
  }

  #push(index: number): Promise<number> {
    return this.#redis.rpush(this.#options.queue, this.#payload(index))
  }

  get #key(): string {
    return `${this.#options.queue}:due`
  }

  #payload(index: number): string {
    return payloadOf(index, this.#options.payloadBytes)
  }
}
