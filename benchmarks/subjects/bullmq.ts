import type { Queue, Worker } from 'bullmq'
import {
  bulksOf,
  Collector,
  farAway,
  handlerOf,
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

const BULK = { size: 500, inFlight: 2 }

/** BullMQ with its defaults; finished jobs are removed, so that it has no more to keep than the others. */
export const bullmq: Subject = {
  name: 'BullMQ',
  promise: 'at least once',
  bulks: bulksOf([50, 250, 1_000, 5_000], [1, 2, 4, 8]),
  async open(options) {
    const { Queue: QueueClass, Worker: WorkerClass } = await import('bullmq')
    const { hostname: host, port } = new URL(options.url)
    const tls = options.ca === undefined ? {} : { tls: { ca: options.ca } }
    const connection = { host, port: Number(port), maxRetriesPerRequest: null, ...tls }
    const queue = new QueueClass(options.queue, { connection })
    const newWorker: NewWorker = (handle, concurrency) =>
      new WorkerClass(options.queue, async (job) => handle(job.data as string), {
        connection,
        concurrency,
        autorun: false,
      })
    return new BullSession(options, queue, newWorker)
  },
}

type NewWorker = (handle: (data: string) => Promise<void>, concurrency: number) => Worker

class BullSession implements Session {
  readonly #options: SessionOptions
  readonly #queue: Queue
  readonly #newWorker: NewWorker
  #workers: Worker[] = []

  constructor(options: SessionOptions, queue: Queue, newWorker: NewWorker) {
    this.#options = options
    this.#queue = queue
    this.#newWorker = newWorker
  }

  async schedule(dues: readonly number[]): Promise<readonly number[]> {
    await timedBulk(dues.length, this.#bulk, (from, to) => {
      const timestamp = Date.now()
      const delayOf = (index: number): number => Math.max(0, (dues[index] ?? 0) - timestamp)
      return this.#addBulk(from, to, (index) => ({ timestamp, delay: delayOf(index) }))
    })
    return dues
  }

  async fill(count: number): Promise<void> {
    await timedBulk(count, this.#bulk, (from, to) => this.#addBulk(from, to, () => ({ delay: farAway() })))
  }

  async load(count: number, singles?: number): Promise<void> {
    if (singles !== undefined) await timed(count, singles, (index) => this.#add(index))
    else await timedBulk(count, this.#bulk, (from, to) => this.#addBulk(from, to, () => ({ delay: 0 })))
  }

  async add(count: number, mode: AddMode): Promise<number> {
    const data = payloadOf(0, this.#options.payloadBytes)
    if (mode === 'bulk') {
      return timedBulk(count, this.#bulk, (from, to) => this.#addBulk(from, to, () => ({ delay: HOUR_MS })))
    }
    const opts = { delay: HOUR_MS, removeOnComplete: true }
    return timed(count, IN_FLIGHT[mode], () => this.#queue.add('job', data, opts))
  }

  async produce(at: readonly number[]): Promise<void> {
    await paced(at, (index) => this.#add(index))
  }

  async ready(): Promise<void> {
    await this.#queue.waitUntilReady()
  }

  async take(count: number, { consumers, handler }: TakeOptions): Promise<Taken> {
    const collector = new Collector(count)
    const clients = this.#options.clients ?? 1
    const each = Math.max(1, Math.floor(consumers / clients))
    this.#workers = Array.from({ length: clients }, () => this.#newWorker(handlerOf(collector, handler), each))
    for (const worker of this.#workers) void worker.run()
    return collector.done
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.close(true)))
    await this.#queue.close()
  }

  get #bulk(): Bulk {
    return this.#options.bulk ?? BULK
  }

  #add(index: number): Promise<unknown> {
    return this.#queue.add('job', payloadOf(index, this.#options.payloadBytes), { removeOnComplete: true })
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
