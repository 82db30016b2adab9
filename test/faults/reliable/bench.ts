import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../../support/events.js'
import { allowedFor, Lag } from '../../support/lag.js'
import { uniqueName } from '../../support/redis.js'
import { DRAIN_MS, LEAD_MS, SWEEP_MS, TUNING } from '../bench/bench.js'
import { Fleet } from '../bench/fleet.js'
import { readLedger } from '../bench/ledger.js'
import type { Stage } from '../bench/stage.js'
import { WorkerPool } from '../bench/worker-pool.js'
import type { WorkerProcess } from '../bench/worker-process.js'
import { countOpen, keysOf, readRemains, type Remains } from './contents.js'
import { findingsOf, problemsOf as problemsIn, type Allowance, type Findings, type Limits } from './findings.js'
import { batchesOf, historiesOf, type Delivery, type History } from './history.js'
import { scheduleName, tickOf, type Entry, type Job, type Load, type Role } from './job.js'
import { partsOf } from './queue.js'

/** Limits that are shorter than a fault of seconds. */
export const VISIBILITY_MS = 1_000
/** The time after a fault in which each visible message must be delivered. */
const LATENESS_MS = VISIBILITY_MS + SWEEP_MS + 1_000
const LOAD: Omit<Load, 'from'> = { everyMs: 28, maxDelay: 1_000, farMs: 3_600_000, changes: true }
const FLEET: Readonly<Record<Role, number>> = { producer: 2, worker: 2, poller: 1 }
const CONCURRENCY = 10
/** More completed messages than there are in any round. */
const KEPT = 100_000
/** The number of messages due long after the end that are finally searched by their ids, besides others. */
const SOUGHT = 40
/** Only a schedule that has ended has no tick for so long. */
const TICK_MS = 30_000
/** If a long handling began less than this time ago, much of it is left. */
const MIDDLE_MS = 400

export interface ReliableParams {
  readonly stage: Stage
  readonly seed: number
  readonly load?: Partial<Load> | undefined
  /** The number of shards of a sharded queue. */
  readonly shards?: number | undefined
  readonly limits?: Limits | undefined
  /** The processes, when they are not the usual ones. */
  readonly processes?: WorkerPool<Job> | undefined
  /** A message that is not handled after this time is stuck. */
  readonly drainMs?: number | undefined
}

export interface Result extends Findings {
  /** The number of errors of each code, over all processes. */
  readonly errors: Readonly<Record<string, number>>
  /** The lag of this machine after the healing. */
  readonly lagMs: number
}

const pool = new WorkerPool<Job>(new URL('worker.ts', import.meta.url))

/** A fleet of processes on one reliable queue, and the final record of each message. */
export class ReliableBench extends Fleet<Role, Job> {
  /** The queues that have the messages: one, or the shards of a sharded one. */
  parts: readonly string[]
  readonly #load: Omit<Load, 'from'>
  readonly #shards: number | undefined
  readonly #limits: Limits
  readonly #drainMs: number
  /** The numbers of shards for a process that starts now. */
  #counts: Pick<Job, 'shards' | 'formerShards'>
  /** The largest number of shards so far. */
  #mostShards: number

  constructor({ stage, seed, load, shards, limits = {}, processes = pool, drainMs = DRAIN_MS }: ReliableParams) {
    super({ stage, seed, queue: uniqueName('reliable-fault'), pool: processes, counts: FLEET })
    this.#load = { ...LOAD, ...load }
    this.#shards = shards
    this.#counts = { shards }
    this.#mostShards = shards ?? 0
    this.#limits = limits
    this.#drainMs = drainMs
    this.parts = partsOf(this.queue, shards)
  }

  async start(): Promise<void> {
    const { concurrency, groupConcurrency, rate, groupRate } = this.#limits
    const settings = {
      ...(concurrency !== undefined && { concurrency }),
      ...(groupConcurrency !== undefined && { groupConcurrency }),
      ...(rate !== undefined && { rateLimit: `${rate.max}/${rate.perMs}` }),
      ...(groupRate !== undefined && { groupRateLimit: `${groupRate.max}/${groupRate.perMs}` }),
      ...(this.#load.waits === true && { keepCompleted: KEPT }),
    }
    if (Object.keys(settings).length > 0)
      for (const part of this.parts) await (await this.stage.raw(part)).hset(keysOf(part).config, settings)
    await this.startWorkers((role, index) => this.#job(role, index))
    const [producer] = this.workers.producer
    await producer?.order({ kind: 'burst', count: 1, delay: 0 })
    await eventually(() => this.#assertAcknowledged(1), 10_000, 20)
    // where the present number of shards places them
    if (this.#load.asks === true) await producer?.order({ kind: 'burst', count: SOUGHT, delay: this.#load.farMs })
  }

  /** Load, the fault, the healing, and everything handled to the end; then what came of each message. */
  async round(fault: () => Promise<void>): Promise<Result> {
    await this.produce(true)
    await this.pause(LEAD_MS)
    await fault()
    const overAt = Date.now()
    await this.stage.healthy()
    const healedAt = Date.now()
    const lag = new Lag()
    try {
      await this.pause(LEAD_MS)
      await this.#ticked(healedAt)
      await this.produce(false)
      await this.#drained()
    } finally {
      lag.stop()
    }
    await this.#assertNoSchedules()
    const remains = await this.#remains()
    const errors = await this.errors()
    const isExact = !Object.keys(errors).some((code) => code.startsWith('reconnecting') || code === 'ERR_CONNECTION')
    const found = findingsOf(this.histories(), healedAt, remains, {
      limits: this.#limits,
      overAt,
      batches: batchesOf(this.#entries()),
      isExact,
    })
    if (this.#load.asks === true) await this.#operate(remains)
    return { ...found, errors, lagMs: lag.stop() }
  }

  /** Each schedule goes on. */
  async #ticked(since: number): Promise<void> {
    const names = Array.from({ length: this.#load.schedules ?? 0 }, (_, index) => scheduleName(index))
    await eventually(
      () => {
        const alive = new Set<string>()
        for (const [id, { deliveries }] of this.histories()) {
          const tick = tickOf(id)
          if (tick !== undefined && tick.at >= since && deliveries.length > 0) alive.add(tick.schedule)
        }
        const dead = names.filter((name) => !alive.has(name))
        if (dead.length > 0) throw new Error(`no tick since the healing of ${dead.join()}`)
      },
      TICK_MS,
      200,
    ).catch(async (error: unknown) => {
      throw new Error(`${String(error)}; ${await this.#whereSchedulesAre()}`, { cause: error })
    })
  }

  async #whereSchedulesAre(): Promise<string> {
    const lines: string[] = []
    for (const part of this.parts) {
      const redis = await this.stage.raw(part)
      const [names, times] = [
        await redis.hkeys(keysOf(part).repeats),
        await redis.zrange(keysOf(part).ticks, '0', '-1', 'WITHSCORES'),
      ]
      const open = await countOpen(redis, part)
      if (names.length > 0 || open > 0)
        lines.push(`${part} has ${names.join()} (${times.join()}), and ${open} messages`)
    }
    return `at ${Date.now()} ${lines.join('; ')}`
  }

  /** The producers have removed theirs, wherever they were. */
  async #assertNoSchedules(): Promise<void> {
    for (const part of this.parts) {
      const left = await (await this.stage.raw(part)).hkeys(keysOf(part).repeats)
      if (left.length > 0) throw new Error(`${part} still has the schedules ${left.join()}`)
    }
  }

  /** One of the processes does it; the dead letters, which begin anew, end as such again. */
  async #operate({ left, dead }: Remains): Promise<void> {
    const letters = dead.map(({ name }) => name)
    await this.workers.producer[0]?.order({ kind: 'operate', left: [...left], dead: letters })
    await this.#assertDeadAgain(dead)
    const delivered = (): Map<string, number> =>
      new Map(Array.from(this.histories(), ([id, { deliveries }]) => [id, deliveries.length]))
    const before = delivered()
    await this.workers.producer[0]?.order({ kind: 'redrive', ids: letters })
    await this.#assertDeadAgain(dead)
    const after = delivered()
    const still = letters.filter((id) => (after.get(id) ?? 0) <= (before.get(id) ?? 0))
    if (still.length > 0) throw new Error(`redriven by their ids and not delivered were ${still.join()}`)
  }

  async #assertDeadAgain(dead: Remains['dead']): Promise<void> {
    await this.#drained()
    const again = (await this.#remains()).dead
    const ids = (all: Remains['dead']): string => JSON.stringify(all.map(({ id }) => id).sort())
    if (ids(again) === ids(dead)) return
    const histories = new Map(this.histories())
    const ended = dead.filter(({ name, id }) => !again.some((letter) => letter.name === name && letter.id === id))
    throw new Error(
      `redriven were the dead letters ${ids(dead)}, and now there are ${ids(again)}; histories: ${JSON.stringify(ended.map(({ name }) => histories.get(name)))}`,
    )
  }

  async stop(): Promise<string[]> {
    const problems = await this.stopWorkers()
    try {
      for (const part of this.parts) {
        const redis = await this.stage.raw(part)
        await redis.unlink(...keysOf(part).all, ...keysOf(part, ':dead').all)
      }
    } catch (error) {
      problems.push(String(error))
    }
    return problems
  }

  histories(): ReadonlyMap<string, History> {
    return historiesOf(this.#entries())
  }

  #entries(): Entry[] {
    return readdirSync(this.dir).flatMap((file) => readLedger<Entry>(join(this.dir, file)))
  }

  /** Resolves when a consumer is in the middle of a long handling. */
  async inTheMiddle(consumer: WorkerProcess<Job>): Promise<void> {
    const isInHand = ({ handled, answers }: Delivery): boolean =>
      handled?.long === true && answers.length === 0 && Date.now() - handled.at < MIDDLE_MS
    await eventually(
      () => {
        const own = historiesOf(readLedger<Entry>(this.#ledgerOf(consumer.name)))
        if (![...own.values()].some(({ deliveries }) => deliveries.some(isInHand)))
          throw new Error(`${consumer.name} has nothing that takes long`)
      },
      20_000,
      10,
    )
  }

  /** The consumers first and then the producers are killed, one after the other, and come back with another number of shards. */
  async changeShards(shards: number): Promise<void> {
    this.#counts = { shards, formerShards: this.#mostShards }
    this.#mostShards = Math.max(this.#mostShards, shards)
    this.parts = partsOf(this.queue, this.#mostShards)
    const { poller, worker, producer } = this.workers
    const reviving: Promise<void>[] = []
    for (const process of [...poller, ...worker, ...producer]) {
      await process.kill()
      reviving.push(this.revive(process, this.#counts))
      await this.pause(200, 500)
    }
    await Promise.all(reviving)
  }

  async #remains(): Promise<Remains> {
    const all = await Promise.all(this.parts.map(async (part) => readRemains(await this.stage.raw(part), part)))
    return { left: new Set(all.flatMap(({ left }) => [...left])), dead: all.flatMap(({ dead }) => dead) }
  }

  #job(role: Role, index: number): Job {
    const name = `${this.queue}/${role}-${index + 1}`
    return {
      role,
      name,
      ledger: this.#ledgerOf(name),
      client: { ...TUNING, ...this.stage.client },
      queue: this.queue,
      shards: this.#shards,
      load: { ...this.#load, from: index * 10_000_000 + 1 },
      visibilityTimeout: VISIBILITY_MS,
      concurrency: CONCURRENCY,
    }
  }

  #ledgerOf(name: string): string {
    return join(this.dir, name.slice(this.queue.length + 1))
  }

  #assertAcknowledged(count: number): void {
    const acknowledged = this.#count(({ said, done }) => said === 'done' && done === true)
    if (acknowledged < count) throw new Error(`only ${acknowledged} of ${count} messages were acknowledged`)
  }

  /** Waits until only dead letters are left, and messages that are due long after. */
  async #drained(): Promise<void> {
    try {
      await eventually(
        async () => {
          let open = 0
          for (const part of this.parts) open += await countOpen(await this.stage.raw(part), part)
          if (open > 0) throw new Error(`${open} messages are neither acknowledged nor dead letters`)
        },
        this.#drainMs,
        50,
      )
    } catch (error) {
      throw new Error(`stuck ${this.#drainMs / 1_000} s after the end: ${String(error)}`, { cause: error })
    }
    // the ledgers may still lack the last answers, and those without effect
    let answers = -1
    await eventually(
      () => {
        const before = answers
        answers = this.#count(() => true)
        if (before !== answers) throw new Error('still coming')
      },
      5_000,
      100,
    )
  }

  #count(which: (answer: Delivery['answers'][number]) => boolean): number {
    const histories = [...this.histories().values()]
    return histories.flatMap(({ deliveries }) => deliveries).flatMap(({ answers }) => answers.filter(which)).length
  }
}

/** Ends the processes that wait for work. */
export function endIdleWorkers(): Promise<void> {
  return pool.end()
}

export function problemsOf(result: Result, allowed: Allowance): string[] {
  return problemsIn(result, allowed, LATENESS_MS + allowedFor(result.lagMs))
}
