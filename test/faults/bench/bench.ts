import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { ClientOptions } from '../../../src/index.js'
import type { Layout } from '../../../src/store/delayed-store.js'
import { eventually } from '../../support/events.js'
import { allowedFor, Lag } from '../../support/lag.js'
import { uniqueName } from '../../support/redis.js'
import { Books, FAR_AHEAD_MS, numberIn, redisTime, type Allowance, type ClockShift, type Findings } from './books.js'
import { Fleet } from './fleet.js'
import type { Entry, Job, Load, Order, Role } from './job.js'
import type { Stage } from './stage.js'
import { WorkerPool } from './worker-pool.js'

/** Limits that are shorter than a fault of seconds. */
export const SWEEP_MS = 1_000
export const TUNING: ClientOptions = {
  sweepInterval: SWEEP_MS,
  pingInterval: 1_000,
  commandTimeout: 2_000,
  connectTimeout: 5_000,
}
/** The time after a fault in which each overdue message must be delivered. */
export const LATENESS_MS = SWEEP_MS + 1_000
const LOAD: Omit<Load, 'from'> = { everyMs: 9, maxDelay: 1_000, farMs: 3_600_000, changes: true }
const FLEET: Readonly<Record<Role, number>> = { producer: 2, transferrer: 2, consumer: 2 }
/** The takes of one consumer that wait at the server at the same time: as many messages may be in its hands when it is killed. */
export const TAKES = 4
/** The time of load before a fault and after it. */
export const LEAD_MS = 500
/** Only a stuck message takes this long. */
export const DRAIN_MS = 40_000

export interface BenchParams {
  readonly stage: Stage
  readonly seed: number
  readonly layout: Layout
  readonly client?: ClientOptions | undefined
  readonly load?: Partial<Load> | undefined
  readonly fleet?: Partial<Record<Role, number>> | undefined
  readonly queue?: string | undefined
  readonly takes?: number | undefined
  /** An order for each process before it has a client, also after a kill. */
  readonly prepare?: Order | undefined
}

/** A fault that happens to the fleet, and its repair. */
export type Fault = () => Promise<void>

export interface Result extends Findings {
  readonly quarantined: number
  readonly pending: number
  /** The number of errors of each code, over all workers. */
  readonly errors: Readonly<Record<string, number>>
  /** The lag of this machine after the healing. */
  readonly lagMs: number
}

const pool = new WorkerPool<Job>(new URL('worker.ts', import.meta.url))

/** A fleet of processes on one queue, and the books that show whether all went right. */
export class Bench extends Fleet<Role, Job> {
  readonly layout: Layout
  /** The changes of the Redis clock, for the books. */
  readonly clock: ClockShift[] = []
  readonly #params: BenchParams
  /** The facts of this chapter that the next one needs. */
  #kept: Entry[] = []
  #chapter = 0

  constructor(params: BenchParams) {
    const { stage, seed, prepare, queue = uniqueName('fault') } = params
    super({ stage, seed, queue, pool, prepare, counts: { ...FLEET, ...params.fleet } })
    this.#params = params
    this.layout = params.layout
    mkdirSync(this.#chapterDir)
  }

  get keys(): Record<'timeouts' | 'order' | 'destination' | 'quarantine' | 'channel' | 'wheel' | 'horizon', string> {
    const tag = this.#tag
    return {
      timeouts: `redisson_delay_queue_timeout:${tag}`,
      order: `redisson_delay_queue:${tag}`,
      destination: this.queue,
      quarantine: `redelayed:quarantine:${tag}`,
      channel: `redisson_delay_queue_channel:${tag}`,
      wheel: `redelayed:wheel:${tag}`,
      horizon: `redelayed:horizon:${tag}`,
    }
  }

  get #tag(): string {
    return this.queue.includes('{') ? this.queue : `{${this.queue}}`
  }

  /** The keys of the buckets of a wheel, and of what was cancelled in them, by their minutes. */
  async #buckets(): Promise<{ minute: number; bucket: string; gone: string }[]> {
    const minutes = await (await this.raw()).zrange(this.keys.wheel, '0', '-1')
    return minutes.map((minute) => ({
      minute: Number(minute),
      bucket: `redelayed:wheel-${minute}:${this.#tag}`,
      gone: `redelayed:gone-${minute}:${this.#tag}`,
    }))
  }

  /** The entries in buckets of minutes before a time that were not cancelled. */
  async #inBuckets(before = Infinity): Promise<Buffer[]> {
    const redis = await this.raw()
    const entries: Buffer[] = []
    for (const { minute, bucket, gone } of await this.#buckets()) {
      if (minute * 60_000 > before) continue
      const cancelled = new Set((await redis.smembersBuffer(gone)).map((id) => id.toString('hex')))
      for (const element of await redis.lrangeBuffer(bucket, 0, -1)) {
        const entry = element.subarray(2)
        if (!cancelled.has(entry.toString('hex', 0, 1 + (entry[0] ?? 0)))) entries.push(entry)
      }
    }
    return entries
  }

  async start(): Promise<void> {
    await this.startWorkers((role, index) => this.#job(role, index))
    const [producer] = this.workers.producer
    await producer?.order({ kind: 'burst', count: 1, delay: 0 })
    await eventually(() => this.#assertDelivered(1), 10_000, 20)
  }

  /** The present chapter. */
  books(): Books {
    return new Books(readdirSync(this.#chapterDir).map((file) => join(this.#chapterDir, file)))
  }

  /** After a round with which all is well: what comes next is looked at for itself. */
  async turnPage(): Promise<void> {
    const done = this.#chapterDir
    this.#chapter++
    mkdirSync(this.#chapterDir)
    const kept = this.#kept.map((entry) => `${JSON.stringify(entry)}\n`)
    writeFileSync(join(this.#chapterDir, 'kept'), kept.join(''))
    await Promise.all(this.all.map((worker) => worker.turnTo(join(this.#chapterDir, basename(worker.name)))))
    rmSync(done, { recursive: true })
    await (await this.raw()).del(this.keys.quarantine)
  }

  /** Load, the fault, the healing, and everything taken to the end; then the books. */
  async round(fault: Fault): Promise<Result> {
    await this.produce(true)
    await this.pause(LEAD_MS)
    await fault()
    await this.stage.healthy()
    const healedAt = Date.now()
    const lag = new Lag()
    try {
      await this.pause(LEAD_MS)
      await this.produce(false)
      await this.#drained(healedAt)
    } finally {
      lag.stop()
    }
    const redis = await this.raw()
    const quarantined = await redis.llen(this.keys.quarantine)
    const errors = await this.errors()
    const pending = await this.#assertAgreement()
    const books = this.books()
    this.#kept = books.far(healedAt, this.clock).filter(([, n]) => pending.has(n))
    const found = books.check(healedAt, this.clock, pending)
    return { ...found, quarantined, pending: pending.size, errors, lagMs: lag.stop() }
  }

  /** Ends all workers' clients, deletes the queue, and returns what the workers left behind. */
  async stop(): Promise<string[]> {
    const problems = await this.stopWorkers()
    try {
      const buckets = (await this.#buckets()).flatMap(({ bucket, gone }) => [bucket, gone])
      await (await this.raw()).del(...Object.values(this.keys), ...buckets)
    } catch (error) {
      problems.push(String(error))
    }
    return problems
  }

  #job(role: Role, index: number): Job {
    const name = `${role}-${index + 1}`
    const from = index * 10_000_000 + 1
    return {
      role,
      name: `${this.queue}/${name}`,
      ledger: join(this.#chapterDir, name),
      client: { ...TUNING, ...this.stage.client, ...this.#params.client },
      queue: this.queue,
      layout: this.layout,
      load: { ...LOAD, ...this.#params.load, from },
      takes: this.#params.takes ?? TAKES,
    }
  }

  get #chapterDir(): string {
    return join(this.dir, `${this.#chapter}`)
  }

  #assertDelivered(count: number): void {
    const { delivered } = this.books().check(Date.now(), this.clock)
    if (delivered < count) throw new Error(`only ${delivered} of ${count} messages have come`)
  }

  /** Waits until only messages are left that are due long after. */
  async #drained(healedAt: number): Promise<void> {
    const now = redisTime(healedAt, this.clock)
    try {
      await eventually(
        async () => {
          const redis = await this.raw()
          const scheduled = await redis.zcount(this.keys.timeouts, '-inf', now + FAR_AHEAD_MS)
          const due = scheduled + (await this.#inBuckets(now + FAR_AHEAD_MS - 60_000)).length
          const ready = await redis.llen(this.keys.destination)
          if (due + ready > 0) throw new Error(`${due} messages are pending and ${ready} wait to be taken`)
        },
        DRAIN_MS,
        50,
      )
    } catch (error) {
      throw new Error(`stuck ${DRAIN_MS / 1_000} s after the healing: ${String(error)}`, { cause: error })
    }
    // what was taken from the list last may still be on its way into the books
    let delivered = -1
    await eventually(
      () => {
        const before = delivered
        delivered = this.books().check(healedAt, this.clock).delivered
        if (before !== delivered) throw new Error('still coming')
      },
      5_000,
      100,
    )
  }

  /** The schedule and the order list hold the same entries; gives the numbers in them. */
  async #assertAgreement(): Promise<Set<number>> {
    const redis = await this.raw()
    const entries = await redis.zrangeBuffer(this.keys.timeouts, '0', '-1')
    const scheduled = entries.map((entry) => entry.toString('latin1')).sort()
    const ordered = (await redis.lrangeBuffer(this.keys.order, 0, -1)).map((entry) => entry.toString('latin1')).sort()
    const wanted = this.layout === 'redisson' ? scheduled : []
    if (ordered.length !== wanted.length || ordered.some((entry, i) => entry !== wanted[i])) {
      throw new Error(
        `the schedule has ${scheduled.length} entries and the order list ${ordered.length}, not the same ones`,
      )
    }
    return new Set([...entries, ...(await this.#inBuckets())].map(numberIn))
  }
}

/** Ends the processes that wait for work. */
export function endIdleWorkers(): Promise<void> {
  return pool.end()
}

/** The problems in a result. */
export function problemsOf(result: Result, allowed: Allowance): string[] {
  const problems: string[] = []
  const most = (what: 'lost' | 'dropped' | 'duplicated' | 'early' | 'wrong', limit: number): void => {
    if (result[what] > limit) problems.push(`${result[what]} ${what}, at most ${limit} may be`)
  }
  most('lost', allowed.lost ?? 0)
  most('dropped', allowed.dropped ?? 0)
  most('duplicated', allowed.duplicated ?? 0)
  most('early', 0)
  most('wrong', 0)
  if (result.quarantined !== (allowed.quarantined ?? 0)) {
    problems.push(`${result.quarantined} in quarantine, ${allowed.quarantined ?? 0} belong there`)
  }
  const latest = LATENESS_MS + allowedFor(result.lagMs)
  if (result.latestMs > latest) problems.push(`${result.latestMs} ms late after the healing, at most ${latest} may be`)
  if (result.delivered === 0) problems.push('nothing was delivered')
  return problems.length === 0 ? [] : [...problems, ...result.examples]
}

/** One line for people. */
export function lineOf(result: Result): string {
  const {
    acknowledged,
    delivered,
    cancelled,
    pending,
    lost,
    dropped,
    duplicated,
    early,
    quarantined,
    refused,
    unanswered,
  } = result
  const counts = {
    acknowledged,
    delivered,
    cancelled,
    pending,
    lost,
    dropped,
    duplicated,
    early,
    quarantined,
    refused,
    unanswered,
  }
  const text = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  return `${text.join(', ')}; after the healing late by ${result.medianMs} ms (median), ${result.latestMs} ms (at most)`
}
