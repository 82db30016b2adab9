// A process of the fault bench on a reliable queue: it adds, or consumes, until the bench stops or kills it.
import { createClient, type RedelayedClient } from '../../../src/index.js'
import { Ledger, codeOf } from '../bench/ledger.js'
import { serve, type Program } from '../bench/serve.js'
import { Poller, startWorker, type Consumer } from './consumers.js'
import type { Entry, Job } from './job.js'
import { operate, redrive } from './operator.js'
import { Producer } from './producer.js'
import { queueOf, type BenchQueue } from './queue.js'

class Worker implements Program {
  readonly #ledger: Ledger<Entry>
  readonly #client: RedelayedClient
  readonly #queue: BenchQueue
  readonly #farMs: number
  readonly #producer: Producer | undefined
  readonly #consumer: Consumer | undefined

  constructor(job: Job) {
    const ledger = new Ledger<Entry>(job.ledger)
    this.#ledger = ledger
    this.#client = createClient({ ...job.client, ioredis: { ...job.client.ioredis, connectionName: job.name } })
    this.#client.on('error', (error) => ledger.count(codeOf(error)))
    this.#client.on('reconnecting', ({ error }) => ledger.count(`reconnecting ${codeOf(error)}`))
    const queue = queueOf(job, this.#client, (entry) => ledger.note(entry))
    this.#queue = queue
    this.#farMs = job.load.farMs
    if (job.role === 'producer') this.#producer = new Producer(job, queue, ledger)
    else if (job.role === 'worker') this.#consumer = startWorker(job, this.#client, queue, ledger)
    else this.#consumer = new Poller(job, queue, ledger)
  }

  get errors(): Readonly<Record<string, number>> {
    return this.#ledger.errors
  }

  async produce(on: boolean): Promise<void> {
    await this.#producer?.produce(on)
  }

  async burst(count: number, delay: number): Promise<void> {
    await this.#producer?.burst(count, delay)
  }

  operate(left: readonly string[], dead: readonly string[]): Promise<void> {
    return operate(this.#queue, { left, dead, farMs: this.#farMs })
  }

  redrive(ids: readonly string[]): Promise<void> {
    return redrive(this.#queue, ids)
  }

  turnTo(path: string): void {
    this.#ledger.turnTo(path)
  }

  async stop(): Promise<void> {
    await this.#producer?.stop()
    await this.#consumer?.stop()
    await this.#client.shutdown()
    this.#ledger.close()
  }
}

serve((job: Job) => new Worker(job))
