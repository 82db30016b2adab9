import type { Queue, Worker } from 'bullmq'
import {
  Collector,
  farAway,
  HOUR_MS,
  payloadOf,
  timed,
  timedBulk,
  type AddMode,
  type Session,
  type SessionOptions,
  type Subject,
  type TakeOptions,
  type Taken,
} from './subject.js'

const BULK = 500

/** BullMQ with its defaults; finished jobs are removed, so that it has no more to keep than the others. */
export const bullmq: Subject = {
  name: 'BullMQ',
  async open(options) {
    const { Queue: QueueClass, Worker: WorkerClass } = await import('bullmq')
    const { hostname: host, port } = new URL(options.url)
    const connection = { host, port: Number(port), maxRetriesPerRequest: null }
    const queue = new QueueClass(options.queue, { connection })
    const newWorker = (handle: (data: string) => void, concurrency: number): Worker =>
      new WorkerClass(
        options.queue,
        (job) => {
          handle(job.data as string)
          return Promise.resolve()
        },
        { connection, concurrency, autorun: false },
      )
    return new BullSession(options, queue, newWorker)
  },
}

class BullSession implements Session {
  readonly #options: SessionOptions
  readonly #queue: Queue
  readonly #newWorker: (handle: (data: string) => void, concurrency: number) => Worker
  #workers: Worker[] = []

  constructor(
    options: SessionOptions,
    queue: Queue,
    newWorker: (handle: (data: string) => void, concurrency: number) => Worker,
  ) {
    this.#options = options
    this.#queue = queue
    this.#newWorker = newWorker
  }

  async schedule(dues: readonly number[]): Promise<readonly number[]> {
    await timedBulk(dues.length, BULK, 2, (from, to) => {
      const timestamp = Date.now()
      const delayOf = (index: number): number => Math.max(0, (dues[index] ?? 0) - timestamp)
      return this.#addBulk(from, to, (index) => ({ timestamp, delay: delayOf(index) }))
    })
    return dues
  }

  async fill(count: number): Promise<void> {
    await timedBulk(count, BULK, 2, (from, to) => this.#addBulk(from, to, () => ({ delay: farAway() })))
  }

  async load(count: number): Promise<void> {
    await timedBulk(count, BULK, 2, (from, to) => this.#addBulk(from, to, () => ({ delay: 0 })))
  }

  async add(count: number, mode: AddMode): Promise<number> {
    const data = payloadOf(0, this.#options.payloadBytes)
    if (mode === 'bulk') {
      return timedBulk(count, BULK, 2, (from, to) => this.#addBulk(from, to, () => ({ delay: HOUR_MS })))
    }
    const opts = { delay: HOUR_MS, removeOnComplete: true }
    return timed(count, mode === 'one at a time' ? 1 : 64, () => this.#queue.add('job', data, opts))
  }

  async ready(): Promise<void> {
    await this.#queue.waitUntilReady()
  }

  async take(count: number, { consumers }: TakeOptions): Promise<Taken> {
    const collector = new Collector(count)
    const clients = this.#options.clients ?? 1
    const each = Math.max(1, Math.floor(consumers / clients))
    this.#workers = Array.from({ length: clients }, () => this.#newWorker((data) => collector.add(data), each))
    for (const worker of this.#workers) void worker.run()
    return collector.done
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.close(true)))
    await this.#queue.close()
  }

  #addBulk(
    from: number,
    to: number,
    optionsOf: (index: number) => { delay: number; timestamp?: number },
  ): Promise<unknown> {
    const jobs = Array.from({ length: to - from }, (_, i) => ({
      name: 'job',
      data: payloadOf(from + i, this.#options.payloadBytes),
      opts: { ...optionsOf(from + i), removeOnComplete: true },
    }))
    return this.#queue.addBulk(jobs)
  }
}
