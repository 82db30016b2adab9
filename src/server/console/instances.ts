import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { valuesOf } from '../records/hash-values.js'
import { recordIn, type Form } from '../records/record-in.js'
import type { ScriptRunner } from '../run-script.js'

/** An instance of the service, as all instances show it. */
export interface Instance {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly version: string
  /** Epoch milliseconds by the clock of Redis, like `seenAt`. */
  readonly startedAt: number
  readonly seenAt: number
  readonly memory: number
  readonly url: string | null
  readonly connections: number
  readonly waiting: number
  readonly eventLoopMs: number
}

/** The measurements of an instance. */
export type Readings = Pick<Instance, 'url' | 'connections' | 'waiting'>

/** The commands of an ioredis client that this class sends. */
interface HashCommands extends ScriptRunner {
  hset(key: string, field: string, value: string): Promise<unknown>
  hdel(key: string, ...fields: string[]): Promise<unknown>
}

const KEY = 'redelayed:service:instances'
const BEAT_MS = 5_000
/** An instance that has not reported for this time has ended. */
const SILENT_MS = 15_000
/** The most characters of a text. */
const MOST_CHARS = 1_000
/** The resolution of the measured timer delay, which each measurement includes. */
const RESOLUTION_MS = 20

/** The running instances: each reports every few seconds. */
export class Instances {
  readonly #redis: HashCommands
  readonly #now: () => number
  readonly #self: Omit<Instance, 'seenAt' | 'memory' | 'eventLoopMs' | keyof Readings>
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  #timer: NodeJS.Timeout | undefined
  #beat: Promise<void> = Promise.resolve()

  constructor(redis: HashCommands, version: string, now: () => number) {
    this.#redis = redis
    this.#now = now
    this.#self = { id: randomUUID(), host: hostname(), pid: process.pid, version, startedAt: now() }
  }

  async start(read: () => Promise<Readings>, onError: (error: unknown) => void): Promise<void> {
    this.#delay.enable()
    const beat = (): void => {
      this.#beat = this.#say(read).catch(onError)
    }
    beat()
    await this.#beat
    this.#timer = setInterval(beat, BEAT_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#delay.disable()
    await this.#beat
    await this.#redis.hdel(KEY, this.#self.id).catch(() => undefined) // otherwise its silence ends it
  }

  async list(): Promise<Instance[]> {
    const all = (await valuesOf(this.#redis, KEY)).flatMap((text) => recordIn(text, FORM) ?? [])
    const silent = all.filter(({ seenAt }) => this.#now() - seenAt > SILENT_MS).map(({ id }) => id)
    if (silent.length > 0) await this.#redis.hdel(KEY, ...silent)
    return all.filter(({ id }) => !silent.includes(id)).sort((a, b) => a.startedAt - b.startedAt)
  }

  async #say(read: () => Promise<Readings>): Promise<void> {
    const late = this.#delay.count === 0 ? 0 : this.#delay.percentile(99) / 1_000_000 - RESOLUTION_MS
    this.#delay.reset()
    const beat: Instance = {
      ...{ ...this.#self, ...(await read()), seenAt: this.#now(), memory: process.memoryUsage.rss() },
      eventLoopMs: Math.max(0, Math.round(late * 10) / 10),
    }
    await this.#redis.hset(KEY, beat.id, JSON.stringify(beat))
  }
}

const FORM: Form<Instance> = {
  ...{ id: isShort, host: isShort, version: isShort, url: (value) => value === null || isShort(value) },
  ...{ pid: 'number', startedAt: 'number', seenAt: 'number', memory: 'number' },
  ...{ connections: 'number', waiting: 'number', eventLoopMs: 'number' },
}

function isShort(value: unknown): boolean {
  return typeof value === 'string' && value.length <= MOST_CHARS
}
