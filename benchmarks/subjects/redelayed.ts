import { createClient, type BlockingQueue, type RedelayedClient } from '../../dist/index.js'
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

const BULK = 5_000
const CONSUMER_CHUNK = 1_000

/** This package, with its default codec. */
export function redelayed(layout: 'compact' | 'redisson'): Subject {
  return {
    name: `redelayed, layout '${layout}'`,
    open: (options) => Promise.resolve(new RedelayedSession(options, layout)),
  }
}

class RedelayedSession implements Session {
  readonly #options: SessionOptions
  readonly #clients: RedelayedClient[]
  readonly #queues: BlockingQueue<string>[]
  readonly #delayed
  readonly #abort = new AbortController()
  #consumers: Promise<unknown> = Promise.resolve()

  constructor(options: SessionOptions, layout: 'compact' | 'redisson') {
    this.#options = options
    this.#clients = Array.from({ length: options.clients ?? 1 }, () => createClient({ url: options.url }))
    this.#queues = this.#clients.map((client) => client.getBlockingQueue<string>(options.queue))
    const [first] = this.#queues
    const [client] = this.#clients
    if (first === undefined || client === undefined) throw new Error('a session needs a client')
    this.#delayed = client.getDelayedQueue(first, { layout })
  }

  async schedule(dues: readonly number[]): Promise<readonly number[]> {
    for (let from = 0; from < dues.length; from += BULK) {
      const part = dues.slice(from, from + BULK)
      await this.#delayed.offerAll(part.map((due, i) => ({ value: this.#payload(from + i), date: new Date(due) })))
    }
    return dues
  }

  async fill(count: number): Promise<void> {
    await timedBulk(count, BULK, 1, (from, to) =>
      this.#delayed.offerAll(
        Array.from({ length: to - from }, (_, i) => ({ value: this.#payload(from + i), delay: farAway() })),
      ),
    )
  }

  async load(count: number): Promise<void> {
    const [queue] = this.#queues
    await timedBulk(count, BULK, 1, async (from, to) =>
      queue?.addAll(Array.from({ length: to - from }, (_, i) => this.#payload(from + i))),
    )
  }

  async add(count: number, mode: AddMode): Promise<number> {
    const value = this.#payload(0)
    if (mode !== 'bulk') {
      return timed(count, mode === 'one at a time' ? 1 : 64, () => this.#delayed.offer(value, HOUR_MS))
    }
    return timedBulk(count, BULK, 1, (from, to) =>
      this.#delayed.offerAll(Array.from({ length: to - from }, () => ({ value, delay: HOUR_MS }))),
    )
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

  #payload(index: number): string {
    return payloadOf(index, this.#options.payloadBytes)
  }
}
