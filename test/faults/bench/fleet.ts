import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { eventually } from '../../support/events.js'
import { randomFrom } from '../../support/random.js'
import type { AnyJob, Order } from './job.js'
import type { Stage } from './stage.js'
import type { WorkerPool } from './worker-pool.js'
import type { WorkerProcess } from './worker-process.js'

/** The memory that a process may hold in addition after its client has ended: loaded and compiled code. */
const HEAP_BYTES = 16 * 1024 * 1024
/** A socket that was closed is gone when the other side has said so, too. */
const CLOSE_MS = 10_000

export interface FleetParams<R extends string, J extends AnyJob> {
  readonly stage: Stage
  readonly seed: number
  readonly queue: string
  readonly pool: WorkerPool<J>
  /** The number of processes of each role. */
  readonly counts: Readonly<Record<R | 'producer', number>>
  /** An order for each process before it has a client, also after a kill. */
  readonly prepare?: Order<J> | undefined
}

/** Processes that work on one queue, and what faults need of them. */
export abstract class Fleet<R extends string, J extends AnyJob> {
  readonly stage: Stage
  readonly queue: string
  readonly random: () => number
  readonly workers: Readonly<Record<R | 'producer', WorkerProcess<J>[]>>
  /** The folder of the ledgers; removed when the workers are stopped. */
  protected readonly dir = mkdtempSync(join(tmpdir(), 'redelayed-faults-'))
  readonly #params: FleetParams<R, J>
  readonly #ended: string[] = []
  #producing = false

  constructor(params: FleetParams<R, J>) {
    this.#params = params
    this.stage = params.stage
    this.queue = params.queue
    this.random = randomFrom(params.seed)
    this.workers = Object.fromEntries(this.#roles.map((role) => [role, []])) as unknown as typeof this.workers
  }

  get all(): WorkerProcess<J>[] {
    return this.#roles.flatMap((role) => this.workers[role])
  }

  raw(): Promise<Redis> {
    return this.stage.raw(this.queue)
  }

  /** One of the workers of a role. */
  one(role: R | 'producer'): WorkerProcess<J> {
    const workers = this.workers[role]
    return workers[Math.floor(this.random() * workers.length)] as WorkerProcess<J>
  }

  /** Between two times in milliseconds: faults come at random moments. */
  pause(min: number, max = min): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, min + (max - min) * this.random()))
  }

  async produce(on: boolean): Promise<void> {
    this.#producing = on
    await Promise.all(this.workers.producer.map((worker) => worker.order({ kind: 'produce', on })))
  }

  async revive(worker: WorkerProcess<J>, change: Partial<J> = {}): Promise<void> {
    await worker.revive(this.#producing, change)
  }

  /** The workers' connections to a server, as the server lists them. */
  async connectionsAt(port: number): Promise<string[]> {
    const redis = await this.stage.to(port)
    const all = String(await redis.client('LIST')).split('\n')
    return all.filter((line) => line.includes(` name=${this.queue}/`))
  }

  /** Gives each process its job. */
  protected async startWorkers(jobOf: (role: R | 'producer', index: number) => J): Promise<void> {
    const { counts, pool, prepare } = this.#params
    const jobs: Promise<void>[] = []
    for (const role of this.#roles) {
      for (let i = 0; i < counts[role]; i++) {
        const worker = pool.take()
        worker.prepare = prepare
        worker.onUnexpectedEnd = (why) => this.#ended.push(why)
        this.workers[role].push(worker)
        jobs.push(worker.start(jobOf(role, i)))
      }
    }
    await Promise.all(jobs)
  }

  /** The number of errors of each code, over all workers. */
  protected async errors(): Promise<Record<string, number>> {
    const errors: Record<string, number> = {}
    for (const worker of this.all) {
      for (const [code, count] of Object.entries((await worker.report()).errors))
        errors[code] = (errors[code] ?? 0) + count
    }
    return errors
  }

  /** Ends all workers' clients and returns what they left behind. */
  protected async stopWorkers(): Promise<string[]> {
    const problems = [...this.#ended]
    for (const worker of this.all) {
      const name = worker.name
      try {
        await worker.stop()
        await eventually(() => assertNothingOpen(worker), CLOSE_MS, 50).catch((error: Error) =>
          problems.push(`${name} ${error.message}`),
        )
        this.#params.pool.giveBack(worker)
      } catch (error) {
        problems.push(String(error))
        await worker.kill()
      }
    }
    await eventually(() => this.#assertNoConnections(), 15_000, 50).catch((error) => problems.push(String(error)))
    rmSync(this.dir, { recursive: true, force: true })
    return problems
  }

  get #roles(): (R | 'producer')[] {
    return Object.keys(this.#params.counts) as (R | 'producer')[]
  }

  async #assertNoConnections(): Promise<void> {
    for (const { port, process } of this.stage.servers) {
      if (process.exitCode !== null || process.signalCode !== null) continue
      const open = await this.connectionsAt(port)
      if (open.length > 0) throw new Error(`${open.length} connections are still open, the first: ${open[0]}`)
    }
  }
}

async function assertNothingOpen<J extends AnyJob>(worker: WorkerProcess<J>): Promise<void> {
  const { resources, heapBytes } = await worker.report()
  const { idle } = worker
  if (resources > idle.resources) throw new Error(`left ${resources - idle.resources} handles open`)
  const growth = heapBytes - idle.heapBytes
  if (growth > HEAP_BYTES) throw new Error(`holds ${Math.round(growth / 1024 / 1024)} MiB more than before it began`)
}
