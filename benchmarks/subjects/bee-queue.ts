import type BeeQueue from 'bee-queue'
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

interface Data {
  readonly text: string
}

/**
 * bee-queue with `delayedDebounce: 1`, its best setting for delays, and with all of `sendEvents`, `getEvents` and `storeJobs` off, as its
 * README advises where the program listens to no events.
 */
export const beeQueue: Subject = {
  name: 'bee-queue, delayedDebounce 1',
  promise: 'at least once',
  bulks: bulksOf([50, 250, 1_000, 5_000], [1, 2, 4, 8]),
  async open(options) {
    const { default: QueueClass } = await import('bee-queue')
    const newQueue = (isWorker: boolean): BeeQueue<Data> =>
      new QueueClass<Data>(options.queue, {
        redis: redisOf(options),
        activateDelayedJobs: isWorker,
        delayedDebounce: 1,
        removeOnSuccess: true,
        isWorker,
        getEvents: false,
        sendEvents: false,
        storeJobs: false,
      })
    return new BeeSession(options, newQueue)
  },
}

function redisOf({ url, ca }: SessionOptions): { host: string; port: number; tls?: { ca: string } } {
  const { hostname: host, port } = new URL(url)
  return { host, port: Number(port), ...(ca !== undefined && { tls: { ca } }) }
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
    await timedBulk(dues.length, this.#bulk, (from, to) =>
      this.#saveAll(from, to, (index) => dues[index] ?? Date.now()),
    )
    return dues
  }

  async fill(count: number): Promise<void> {
    await timedBulk(count, this.#bulk, (from, to) => this.#saveAll(from, to, () => Date.now() + farAway()))
  }

  async load(count: number, singles?: number): Promise<void> {
    if (singles !== undefined) await timed(count, singles, (index) => this.#job(index, undefined).save())
    else await timedBulk(count, this.#bulk, (from, to) => this.#saveAll(from, to, () => undefined))
  }

  async add(count: number, mode: AddMode): Promise<number> {
    const due = Date.now() + HOUR_MS
    if (mode === 'bulk') return timedBulk(count, this.#bulk, (from, to) => this.#saveAll(from, to, () => due))
    return timed(count, IN_FLIGHT[mode], () => this.#job(0, due).save())
  }

  async produce(at: readonly number[]): Promise<void> {
    await paced(at, (index) => this.#job(index, undefined).save())
  }

  async ready(): Promise<void> {
    await Promise.all([this.#queue, ...this.#workers].map((queue) => queue.ready()))
  }

  async take(count: number, { consumers, handler }: TakeOptions): Promise<Taken> {
    const collector = new Collector(count)
    const each = Math.max(1, Math.floor(consumers / this.#workers.length))
    const handle = handlerOf(collector, handler)
    for (const worker of this.#workers) worker.process(each, async (job) => handle(job.data.text))
    return collector.done
  }

  async close(): Promise<void> {
    await Promise.all([this.#queue, ...this.#workers].map((queue) => queue.close(1_000)))
  }

  get #bulk(): Bulk {
    return this.#options.bulk ?? BULK
  }

  #job(index: number, due: number | undefined): BeeQueue.Job<Data> {
    const job = this.#queue.createJob({ text: payloadOf(index, this.#options.payloadBytes) })
    return due === undefined ? job : job.delayUntil(due)
  }

  #saveAll(from: number, to: number, dueOf: (index: number) => number | undefined): Promise<unknown> {
    return this.#queue.saveAll(Array.from({ length: to - from }, (_, i) => this.#job(from + i, dueOf(from + i))))
  }
}
