/**
 * Raw state of one queue, written and read without the code under test: the entries are put together by hand here, from
 * the layout that Redisson writes, and what is in Redis is compared byte for byte.
 */
import { Redis } from 'ioredis'
import { translateError } from '../../src/redis/replies/server-errors.js'
import { queueKeys, type QueueKeys } from '../../src/keys.js'
import type { Sender } from '../../src/store/run.js'
import { once } from '../support/events.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { keysOf, rawClient, redisUrl, uniqueName } from '../support/redis.js'

export type Bytes = Buffer | string

/** The contents of Redis before a call; keys that are left out are empty. */
export interface State {
  readonly timeouts?: readonly (readonly [entry: Bytes, score: number | string])[]
  readonly order?: readonly Bytes[]
  readonly destination?: readonly Bytes[]
  readonly quarantine?: readonly Bytes[]
}

/** The same as read back, always complete, with bytes as text that a failed test can print. */
export interface RawState {
  timeouts: [entry: string, score: string][]
  order: string[]
  destination: string[]
  quarantine: string[]
}

/** An entry of Redisson since 3.21.1: `08`, 8 bytes of id (16 where tickets cannot be guessed), the length as 64-bit little endian, the payload. */
export function ordered(id: string, payload: Bytes, idBytes: 8 | 16 = 8): Buffer {
  return entry(Buffer.of(idBytes), padded(id, idBytes), payload)
}

/** An entry that is in no order list: an id of any length but 8 and 16. */
export function unordered(id: string, payload: Bytes, idBytes = 9): Buffer {
  return entry(Buffer.of(idBytes), padded(id, idBytes), payload)
}

/** An entry of Redisson before 3.21.1: `dLc0`, 8 bytes of a double, the length, the payload. */
export function old(id: string, payload: Bytes): Buffer {
  return entry(Buffer.alloc(0), padded(id, 8), payload)
}

function entry(lead: Buffer, id: Buffer, payload: Bytes): Buffer {
  return Buffer.concat([lead, id, lengthOf(raw(payload)), raw(payload)])
}

export function lengthOf(payload: Buffer): Buffer {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(payload.length))
  return length
}

function padded(id: string, size: number): Buffer {
  const bytes = raw(id)
  if (bytes.length > size) throw new Error(`the id ${readable(bytes)} has more than ${size} bytes`)
  return Buffer.concat([bytes, Buffer.alloc(size - bytes.length, '.')])
}

export const ALL_BYTES = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))

export function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex')
}

/** Text stands for its latin1 bytes, so that `\xff` is one byte. */
export function raw(bytes: Bytes): Buffer {
  return typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
}

/** Printable ASCII as it is, everything else as `\xNN`. */
export function readable(bytes: Bytes): string {
  return raw(bytes)
    .toString('latin1')
    .replace(/[^ -[\]-~]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

/** The complete state that `state` describes, in the form in which it is read back. */
export function expected(state: State): RawState {
  return {
    timeouts: (state.timeouts ?? []).map(([member, score]) => [readable(member), String(score)]),
    order: (state.order ?? []).map(readable),
    destination: (state.destination ?? []).map(readable),
    quarantine: (state.quarantine ?? []).map(readable),
  }
}

/** A plain ioredis client in the form that `run` takes, with the package's own errors. */
export function senderOf(redis: Redis): Sender {
  return {
    async call(command, args) {
      try {
        return await redis.callBuffer(command, ...args)
      } catch (error) {
        throw translateError(error)
      }
    },
    async pipeline(commands) {
      const pipeline = redis.pipeline()
      for (const [command, args] of commands) pipeline.callBuffer(command, ...args)
      const replies = (await pipeline.exec()) ?? []
      return replies.map(([error, reply]) => (error === null ? reply : translateError(error)))
    },
  }
}

/** One queue with a name of its own, whose channel is listened to. */
export class Fixture {
  readonly keys: QueueKeys
  readonly #redis: Redis
  readonly #subscriber: Redis
  readonly #heard: string[] = []
  #markers = 0

  constructor(
    readonly name: string,
    redis: Redis,
    subscriber: Redis,
  ) {
    this.keys = queueKeys(name)
    this.#redis = redis
    this.#subscriber = subscriber
  }

  async listen(): Promise<void> {
    this.#subscriber.on('message', (channel: string, message: string) => {
      if (channel === this.keys.channel) this.#heard.push(message)
    })
    await this.#subscriber.subscribe(this.keys.channel)
  }

  async write(state: State): Promise<void> {
    const { timeouts, order, destination, quarantine, leader } = this.keys
    const pipeline = this.#redis.pipeline().del(timeouts, order, destination, quarantine, leader)
    for (const [member, score] of state.timeouts ?? []) pipeline.zadd(timeouts, String(score), raw(member))
    for (const element of state.order ?? []) pipeline.rpush(order, raw(element))
    for (const element of state.destination ?? []) pipeline.rpush(destination, raw(element))
    for (const element of state.quarantine ?? []) pipeline.rpush(quarantine, raw(element))
    for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
  }

  async read(): Promise<RawState> {
    const { timeouts, order, destination, quarantine } = this.keys
    const flat = await this.#redis.zrangeBuffer(timeouts, '0', '-1', 'WITHSCORES')
    const pairs: [string, string][] = []
    for (let i = 0; i < flat.length; i += 2) pairs.push([readable(flat[i]!), flat[i + 1]!.toString()])
    return {
      timeouts: pairs,
      order: (await this.#redis.lrangeBuffer(order, 0, -1)).map(readable),
      destination: (await this.#redis.lrangeBuffer(destination, 0, -1)).map(readable),
      quarantine: (await this.#redis.lrangeBuffer(quarantine, 0, -1)).map(readable),
    }
  }

  /** The messages published since the last call. They keep their order, so a marker shows that all have arrived. */
  async published(): Promise<string[]> {
    const marker = `marker ${this.#markers++}`
    const arrived = once(this.#subscriber, 'message', () => this.#heard.at(-1) === marker)
    await this.#redis.publish(this.keys.channel, marker)
    await arrived
    return this.#heard.splice(0).filter((message) => message !== marker)
  }
}

export interface Rig {
  readonly redis: Redis
  readonly sender: Sender
  /** A new queue, filled with `state` and listened to. */
  queue(state?: State): Promise<Fixture>
}

/** The shared Redis; with `args`, a private server started with them, for what would disturb others. */
export function useRedis(args?: string[]): Rig {
  let server: RedisServer | undefined
  let redis: Redis | undefined
  let subscriber: Redis | undefined
  const fixtures: Fixture[] = []

  before(async function () {
    if (args !== undefined) {
      requireServerBin(this)
      server = await startRedis({ args })
    }
    const url = server?.url ?? redisUrl()
    redis = server === undefined ? rawClient() : new Redis(url, { protocol: 2 })
    subscriber = new Redis(url, { protocol: 2 }).setMaxListeners(0)
    await Promise.all([redis.ping(), subscriber.ping()])
  })
  afterEach(async () => {
    // the channels first: a listener that stays would hear every later test
    subscriber?.removeAllListeners('message')
    const gone = fixtures.splice(0)
    if (gone.length > 0) await subscriber?.unsubscribe(...gone.map(({ keys }) => keys.channel))
    for (const { name } of gone) await redis?.unlink(...keysOf(name))
  })
  after(async () => {
    await subscriber?.quit()
    if (server !== undefined) {
      await redis?.quit()
      await server.stop()
    }
  })

  const client = (): Redis => {
    if (redis === undefined) throw new Error('only inside tests')
    return redis
  }
  return {
    get redis() {
      return client()
    },
    get sender() {
      return senderOf(client())
    },
    async queue(state = {}) {
      if (subscriber === undefined) throw new Error('only inside tests')
      const fixture = new Fixture(uniqueName('lua'), client(), subscriber)
      fixtures.push(fixture)
      await fixture.listen()
      await fixture.write(state)
      return fixture
    },
  }
}

/** How often each command was called while `action` ran. Only on a private server. */
export async function commandCalls(redis: Redis, action: () => Promise<unknown>): Promise<Record<string, number>> {
  await redis.config('RESETSTAT')
  await action()
  const info = await redis.info('commandstats')
  return Object.fromEntries(
    Array.from(info.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm), ([, command, calls]) => [command!, Number(calls)]),
  )
}

/** The error with which a promise rejects; fails if it resolves. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { code?: string; redisCode?: string }> {
  let result: unknown
  try {
    result = await promise
  } catch (error) {
    return error as Error
  }
  throw new Error(`expected a rejection, got ${JSON.stringify(result)}`)
}
