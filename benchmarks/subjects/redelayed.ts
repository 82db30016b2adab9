import { createClient, type BlockingQueue, type ClientOptions, type RedelayedClient } from '../../dist/index.js'
import {
  bulksOf,
  Collector,
  farAway,
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

type Layout = 'compact' | 'redisson' | 'wheel'

const BULK = { size: 5_000, inFlight: 1 }
const CONSUMER_CHUNK = 1_000

/** This package, with its default codec. */
export function redelayed(layout: Layout, tuning: Tuning = {}): Subject {
  return {
    name: `redelayed, layout '${layout}'${inName(tuning)}`,
    promise: 'at most once',
    bulks: bulksOf([250, 1_000, 5_000], [1, 2, 4]),
    open: (options) => Promise.resolve(new RedelayedSession(options, layout, tuning)),
  }
}

/** Other options than the defaults. */
export type Tuning = Pick<ClientOptions, 'fineWaits'>

export function inName({ fineWaits = true }: Tuning): string {
  return fineWaits ? '' : ', `fineWaits: false`'
}

export function clientOf({ url, ca }: SessionOptions, tuning: Tuning = {}): RedelayedClient {
  return createClient({ url, ...tuning, ...(ca !== undefined && { tls: { ca } }) })
}

class RedelayedSession implements Session {
  readonly #options: SessionOptions
  readonly #clients: RedelayedClient[]
  readonly #queues: BlockingQueue<string>[]
  readonly #delayed
  readonly #abort = new AbortController()
  #consumers: Promise<unknown> = Promise.resolve()

  constructor(options: SessionOptions, layout: Layout, tuning: Tuning) {
    this.#options = options
    this.#clients = Array.from({ length: options.clients ?? 1 }, () => clientOf(options, tuning))
    this.#queues = this.#clients.map((client) => client.getBlockingQueue<string>(options.queue))
    const [first] = this.#queues
    const [client] = this.#clients
    if (first === undefined || client === undefined) throw new Error('a session needs a client')
    this.#delayed = client.getDelayedQueue(first, { layout })
  }

  async schedule(dues: readonly number[]): Promise<readonly number[]> {
    await timedBulk(dues.length, this.#bulk, (from, to) =>
      this.#delayed.offerAll(
        dues.slice(from, to).map((due, i) => ({ value: this.#payload(from + i), date: new Date(due) })),
      ),
    )
    return dues
  }

  async fill(count: number): Promise<void> {
    await timedBulk(count, this.#bulk, (from, to) =>
      this.#delayed.offerAll(
        Array.from({ length: to - from }, (_, i) => ({ value: this.#payload(from + i), delay: farAway() })),
      ),
    )
  }

  async load(count: number, singles?: number): Promise<void> {
    const [queue] = this.#queues
    if (singles !== undefined) await timed(count, singles, async (index) => queue?.offer(this.#payload(index)))
    else
      await timedBulk(count, this.#bulk, async (from, to) =>
        queue?.addAll(Array.from({ length: to - from }, (_, i) => this.#payload(from + i))),
      )
  }

  async add(count: number, mode: AddMode): Promise<number> {
    const value = this.#payload(0)
    if (mode !== 'bulk') {
      return timed(count, IN_FLIGHT[mode], () => this.#delayed.offer(value, HOUR_MS))
    }
    return timedBulk(count, this.#bulk, (from, to) =>
      this.#delayed.offerAll(Array.from({ length: to - from }, () => ({ value, delay: HOUR_MS }))),
    )
  }

  async produce(at: readonly number[]): Promise<void> {
    const [queue] = this.#queues
    await paced(at, async (index) => queue?.offer(this.#payload(index)))
  }

  async ready(): Promise<void> {
    await Promise.all(this.#queues.map((queue) => queue.poll()))
  }

  async take(count: number, { consumers, batch }: TakeOptions): Promise<Taken> {
    const collector = new Collector(count)
    const each = Math.max(1, Math.floor(consumers / this.#queues.length))
    this.#consumers = Promise.all(
      this.#queues.flatMap((queue) => Array.from({ length: each }, () => this.#consume(queue, batch, collector))),
    )
    return collector.done
  }

  async close(): Promise<void> {
    this.#abort.abort()
    await this.#consumers
    await Promise.all(this.#clients.map((client) => client.shutdown()))
  }

  async #consume(queue: BlockingQueue<string>, batch: number, collector: Collector): Promise<void> {
    const { signal } = this.#abort
    try {
      for (;;) {
        if (batch === 1) collector.add(await queue.take({ signal }))
        else for (const value of await queue.takeMany(Math.min(batch, CONSUMER_CHUNK), { signal })) collector.add(value)
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  get #bulk(): Bulk {
    return this.#options.bulk ?? BULK
  }

  #payload(index: number): string {
    return payloadOf(index, this.#options.payloadBytes)
  }
}
