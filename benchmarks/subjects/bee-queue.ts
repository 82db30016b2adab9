import type BeeQueue from 'bee-queue'
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

interface Data {
  readonly text: string
}

/** bee-queue with `delayedDebounce: 1`, its best setting for delays. */
export const beeQueue: Subject = {
  name: 'bee-queue, delayedDebounce 1',
  async open(options) {
    const { default: QueueClass } = await import('bee-queue')
    const newQueue = (isWorker: boolean): BeeQueue<Data> =>
      new QueueClass<Data>(options.queue, {
        redis: options.url,
        activateDelayedJobs: isWorker,
        delayedDebounce: 1,
        removeOnSuccess: true,
        isWorker,
        getEvents: isWorker,
        sendEvents: isWorker,
      })
    return new BeeSession(options, newQueue)
  },
}

class BeeSession implements Session {
  readonly #options: SessionOptions
  readonly #queue: BeeQueue<Data>
  readonly #workers: BeeQueue<Data>[]

  constructor(options: SessionOptions, newQueue: (isWorker: boolean) => BeeQueue<Data>) {
    this.#options = options
    this.#queue = newQueue(false)
    this.#workers = Array.from({ length: options.clients ?? 1 }, () => newQueue(true))
  }

  async schedule(dues: readonly number[]): Promise<readonly number[]> {
    await timedBulk(dues.length, BULK, 2, (from, to) => this.#saveAll(from, to, (index) => dues[index] ?? Date.now()))
    return dues
  }

  async fill(count: number): Promise<void> {
    await timedBulk(count, BULK, 2, (from, to) => this.#saveAll(from, to, () => Date.now() + farAway()))
  }

  async load(count: number): Promise<void> {
    await timedBulk(count, BULK, 2, (from, to) => this.#saveAll(from, to, () => undefined))
  }

  async add(count: number, mode: AddMode): Promise<number> {
    const due = Date.now() + HOUR_MS
    if (mode === 'bulk') return timedBulk(count, BULK, 2, (from, to) => this.#saveAll(from, to, () => due))
    return timed(count, mode === 'one at a time' ? 1 : 64, () => this.#job(0, due).save())
  }

  async ready(): Promise<void> {
    await Promise.all([this.#queue, ...this.#workers].map((queue) => queue.ready()))
  }

  async take(count: number, { consumers }: TakeOptions): Promise<Taken> {
    const collector = new Collector(count)
    const each = Math.max(1, Math.floor(consumers / this.#workers.length))
    for (const worker of this.#workers) {
      worker.process(each, (job) => {
        collector.add(job.data.text)
        return Promise.resolve()
      })
    }
    return collector.done
  }

  async close(): Promise<void> {
    await Promise.all([this.#queue, ...this.#workers].map((queue) => queue.close(1_000)))
  }

  #job(index: number, due: number | undefined): BeeQueue.Job<Data> {
    const job = this.#queue.createJob({ text: payloadOf(index, this.#options.payloadBytes) })
    return due === undefined ? job : job.delayUntil(due)
  }

  #saveAll(from: number, to: number, dueOf: (index: number) => number | undefined): Promise<unknown> {
    return this.#queue.saveAll(Array.from({ length: to - from }, (_, i) => this.#job(from + i, dueOf(from + i))))
  }
}
