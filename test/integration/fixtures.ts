/** Helpers of the integration tests: clients that are shut down after the test, the Redis clock, and Java's bytes. */
import { expect } from 'chai'
import { Redis, type RedisOptions } from 'ioredis'
import { randomBytes } from 'node:crypto'
import {
  codecs,
  createClient,
  type BlockingQueue,
  type BlockingQueueOptions,
  type ClientOptions,
  type DelayedQueue,
  type RedelayedClient,
  type RedelayedError,
} from '../../src/index.js'
import { deadLettersOf, listKeys, reliableKeys } from '../../src/keys.js'
import { eventually } from '../support/events.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'

export const ORDERS = ['redisson', 'compact'] as const
export type Order = (typeof ORDERS)[number]

type Cleanup = () => unknown
const cleanups: Cleanup[] = []

/** Runs after the test, the last registered first. */
export function onCleanup(cleanup: Cleanup): void {
  cleanups.push(cleanup)
}

/** For `afterEach`. */
export async function cleanUp(): Promise<void> {
  for (let next = cleanups.pop(); next !== undefined; next = cleanups.pop()) await next()
}

/** A client of the shared Redis unless the options say where to go; it is shut down after the test. */
export function makeClient(options: ClientOptions = {}): RedelayedClient {
  const hasServer = (['url', 'host', 'sentinels', 'cluster', 'replicated', 'redis'] as const).some(
    (way) => options[way] !== undefined,
  )
  const client = createClient(hasServer ? options : { url: redisUrl(), ...options })
  onCleanup(() => client.shutdown())
  return client
}

export interface Pair {
  readonly client: RedelayedClient
  readonly name: string
  readonly queue: BlockingQueue<string>
  readonly delayed: DelayedQueue<string>
  readonly keys: Keys
}

/** A delayed queue of strings on a fresh name, or on a given one. */
export function makePair(
  order: Order = 'redisson',
  options: ClientOptions & { queueName?: string; queue?: BlockingQueueOptions<string> } = {},
): Pair {
  const { queueName: name = uniqueName(), queue: queueOptions, ...clientOptions } = options
  const client = makeClient(clientOptions)
  const queue = client.getBlockingQueue<string>(name, { codec: codecs.string(), ...queueOptions })
  return { client, name, queue, delayed: client.getDelayedQueue(queue, { layout: order }), keys: rawKeys(name) }
}

export interface Keys {
  readonly destination: string
  readonly order: string
  readonly timeouts: string
  readonly channel: string
  readonly quarantine: string
  readonly leader: string
  readonly wheel: string
}

/** Spelled out once more, so that a wrong name in the source is not asserted with itself. */
export function rawKeys(name: string): Keys {
  return {
    destination: name,
    order: `redisson_delay_queue:{${name}}`,
    timeouts: `redisson_delay_queue_timeout:{${name}}`,
    channel: `redisson_delay_queue_channel:{${name}}`,
    quarantine: `redelayed:quarantine:{${name}}`,
    leader: `redelayed:leader:{${name}}`,
    wheel: `redelayed:wheel:{${name}}`,
  }
}

/** A plain client, closed after the test. */
export function rawTo(port: number, options: RedisOptions = {}): Redis {
  const redis = new Redis({ host: '127.0.0.1', port, protocol: 2, ...options })
  redis.on('error', () => {}) // calls reject with it
  onCleanup(async () => {
    // between two connections disconnect() would leave a timer of two seconds behind
    await eventually(() => expect(redis.status).to.be.oneOf(['ready', 'end']))
    if (redis.status === 'ready') redis.disconnect()
  })
  return redis
}

/** Milliseconds by the Redis clock, with fractions. */
export async function redisNow(redis: Redis = rawClient()): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Number(micros) / 1000
}

/** Resolves when the Redis clock has passed a time. */
export async function untilRedisClock(time: number, redis: Redis = rawClient()): Promise<void> {
  await eventually(async () => expect(await redisNow(redis)).to.be.greaterThan(time), 10_000)
}

/** A pending entry as Redisson packs it since 3.21.1. */
export function javaEntry(payload: string | Buffer): Buffer {
  const bytes = Buffer.from(payload)
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(bytes.length))
  return Buffer.concat([Buffer.from([8]), randomBytes(8), length, bytes])
}

/** Offers as Redisson does: writes both keys and, for a new head, announces it. */
export async function javaOffer(
  name: string,
  payload: string | Buffer,
  dueMs: number,
  { redis = rawClient(), publish = true }: { redis?: Redis; publish?: boolean } = {},
): Promise<Buffer> {
  const { timeouts, order, channel } = rawKeys(name)
  const entry = javaEntry(payload)
  const due = String(Math.round(dueMs))
  const offer = redis.multi().zadd(timeouts, due, entry).rpush(order, entry)
  await (publish ? offer.publish(channel, due) : offer).exec()
  return entry
}

/** Everything in the keys of a queue, for "nothing has changed". */
export async function rawState(name: string, redis: Redis = rawClient()): Promise<unknown> {
  const { destination, order, timeouts, quarantine } = rawKeys(name)
  const dumps = await Promise.all([destination, order, timeouts, quarantine].map((key) => redis.dumpBuffer(key)))
  return dumps.map((dump) => dump?.toString('hex') ?? null)
}

/** The error with which a promise rejects. */
export async function rejection(promise: Promise<unknown>): Promise<RedelayedError> {
  try {
    await promise
  } catch (error) {
    return error as RedelayedError
  }
  throw new Error('it was expected to reject')
}

interface Details {
  readonly code: string
  readonly queue?: string | undefined
  /** Parts that the message must hold. */
  readonly says?: readonly string[]
}

type ErrorClass<E> = new (...args: never[]) => E
export type Wanted<E extends RedelayedError = RedelayedError> = [type: ErrorClass<E>, details: Details]

/** Class, code, queue and the telling parts of the message, for errors thrown at once and rejections alike. */
export async function expectError<E extends RedelayedError>(
  [type, details]: Wanted<E>,
  action: () => unknown,
): Promise<E> {
  const error = await rejection(Promise.resolve().then(action))
  if (!(error instanceof type)) throw new Error(`expected ${type.name}, got ${String(error)}`)
  expect(error.code).to.equal(details.code)
  expect(error.queue).to.equal(details.queue)
  if (details.queue !== undefined) expect(error.message).to.include(JSON.stringify(details.queue))
  for (const part of details.says ?? []) expect(error.message).to.include(part)
  return error
}

/** A promise and what became of it so far, to see that something still waits. */
export function track<T>(promise: Promise<T>): { promise: Promise<T>; settled: boolean } {
  const tracked = { promise, settled: false }
  const settle = (): void => void (tracked.settled = true)
  promise.then(settle, settle)
  return tracked
}

export function numbers(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, i) => String(from + i))
}

/** Takes exactly so many. */
export async function takeAll(queue: BlockingQueue<string>, count: number): Promise<string[]> {
  const values: string[] = []
  while (values.length < count) {
    const more = await queue.takeMany(Math.min(1000, count - values.length), { timeout: 5000 })
    if (more.length === 0) throw new Error(`only ${values.length} of ${count} came`)
    values.push(...more)
  }
  return values
}

/** The connections with a given name, as the server lists them. */
export async function connectionsNamed(name: string, redis: Redis = rawClient()): Promise<string[]> {
  const list = (await redis.call('CLIENT', 'LIST')) as string
  return list.split('\n').filter((line) => line.includes(` name=${name} `))
}

/** Resolves when so many connections wait in a blocking command; `name` is a connection name. */
export async function untilBlocked(name: string, count = 1, redis: Redis = rawClient()): Promise<void> {
  await eventually(async () => {
    const blocked = (await connectionsNamed(name, redis)).filter((line) => / flags=[^ ]*b/.test(line))
    expect(blocked.length).to.be.at.least(count)
  })
}

/** An offer reaches a take that waits, so all kinds of connections work. */
export async function expectRoundTrip({ delayed, queue }: Pair): Promise<void> {
  const waiting = queue.poll(5_000)
  await delayed.offer('there and back', 20)
  expect(await waiting).to.equal('there and back')
}

/** Deletes the keys of a reliable queue, and those of its dead letters, after the test. */
export function forgetReliable(name: string): void {
  onCleanup(async () => {
    const keys = [reliableKeys(name), reliableKeys(deadLettersOf(name))].flatMap(listKeys)
    await rawClient().unlink(...keys)
  })
}
