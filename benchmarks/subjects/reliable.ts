import type { AddItem, RedelayedClient, ReliableQueue } from '../../dist/index.js'
import { clientOf, inName, type Tuning } from './redelayed.js'
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
  type Session,
  type SessionOptions,
  type Subject,
  type TakeOptions,
  type Taken,
} from './subject.js'

const BULK = { size: 5_000, inFlight: 1 }

/** This package's reliable queue and its worker, which keep a message until it is acknowledged, as BullMQ and bee-queue do. */
export const reliable = reliableWith({})

export function reliableWith(tuning: Tuning): Subject {
  return {
    name: `redelayed, reliable queue${inName(tuning)}`,
    promise: 'at least once',
    bulks: bulksOf([250, 1_000, 5_000], [1, 2, 4]),
    open: (options) => Promise.resolve(new ReliableSession(options, tuning)),
  }
}

class ReliableSession implements Session {
  readonly #options: SessionOptions
  readonly #clients: RedelayedClient[]
  readonly #queue: ReliableQueue<string>

  constructor(options: SessionOptions, tuning: Tuning) {
    this.#options = options
    this.#clients = Array.from({ length: options.clients ?? 1 }, () => clientOf(options, tuning))
    const [client] = this.#clients
    if (client === undefined) throw new Error('a session needs a client')
    this.#queue = client.getReliableQueue<string>(options.queue)
  }

  async schedule(dues: readonly number[]): Promise<readonly number[]> {
    await this.#addMany(dues.length, (index) => ({ payload: this.#payload(index), date: new Date(dues[index] ?? 0) }))
    return dues
  }

  async fill(count: number): Promise<void> {
    await this.#addMany(count, (index) => ({ payload: this.#payload(index), delay: farAway() }))
  }

  async load(count: number, singles?: number): Promise<void> {
    if (singles !== undefined) await timed(count, singles, (index) => this.#queue.add(this.#payload(index)))
    else await this.#addMany(count, (index) => ({ payload: this.#payload(index) }))
  }

  async add(count: number, mode: AddMode): Promise<number> {
    const payload = this.#payload(0)
    if (mode === 'bulk') return this.#addMany(count, () => ({ payload, delay: HOUR_MS }))
    return timed(count, IN_FLIGHT[mode], () => this.#queue.add(payload, { delay: HOUR_MS }))
  }

  async produce(at: readonly number[]): Promise<void> {
    await paced(at, (index) => this.#queue.add(this.#payload(index)))
  }

  /** A wait, because that is what subscribes. */
  async ready(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.getReliableQueue(this.#options.queue).poll({ timeout: 10 })))
  }

  async take(count: number, { consumers, handler }: TakeOptions): Promise<Taken> {
    const collector = new Collector(count)
    const each = Math.max(1, Math.floor(consumers / this.#clients.length))
    for (const client of this.#clients) {
      const queue = client.getReliableQueue<string>(this.#options.queue)
      client.createWorker(queue, handlerOf(collector, handler), { concurrency: each, prefetch: each })
    }
    return collector.done
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.shutdown()))
  }

  #addMany(count: number, itemOf: (index: number) => AddItem<string>): Promise<number> {
    return timedBulk(count, this.#options.bulk ?? BULK, (from, to) =>
      this.#queue.addMany(Array.from({ length: to - from }, (_, i) => itemOf(from + i))),
    )
  }

  #payload(index: number): string {
    return payloadOf(index, this.#options.payloadBytes)
  }
}
