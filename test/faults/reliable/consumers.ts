import { ShutdownError, type RedelayedClient, type ReliableMessage } from '../../../src/index.js'
import { codeOf, type Ledger } from '../bench/ledger.js'
import type { Entry, Job, Payload } from './job.js'
import type { BenchQueue } from './queue.js'
import { nameOf } from './watch.js'

/** Most messages are done in a moment, long ones take so many times their visibility. */
const MOMENT_MS = 20
const LONG = 1.4
/** The share of long messages that are extended by hand; the answers to the others come too late, unless a worker extends them. */
const KEPT_SHARE = 0.5
const BACKOFF_MS = 100
const RETRY_MS = 100
const PREFETCH = 2

export interface Consumer {
  stop(): Promise<void>
}

/** Consumes as an application that leaves everything to the library. */
export function startWorker(job: Job, client: RedelayedClient, queue: BenchQueue, ledger: Ledger<Entry>): Consumer {
  const { concurrency, visibilityTimeout } = job
  const backoff = { type: 'fixed', delay: BACKOFF_MS } as const
  const worker = client.createWorker(queue, (_, { message }) => handle(message, job, ledger), {
    concurrency,
    visibilityTimeout: visibilityTimeout,
    backoff,
    prefetch: PREFETCH,
    keepResults: job.load.waits === true,
  })
  worker.on('error', (error) => ledger.count(codeOf(error)))
  return { stop: () => worker.close() }
}

/** Consumes as an application that polls, extends and answers itself. */
export class Poller implements Consumer {
  readonly #job: Job
  readonly #queue: BenchQueue
  readonly #ledger: Ledger<Entry>
  readonly #ending = new AbortController()
  readonly #loops: Promise<void>[]

  constructor(job: Job, queue: BenchQueue, ledger: Ledger<Entry>) {
    this.#job = job
    this.#queue = queue
    this.#ledger = ledger
    this.#loops = Array.from({ length: job.concurrency }, () => this.#work())
  }

  async stop(): Promise<void> {
    this.#ending.abort(new ShutdownError('the bench stopped the poller'))
    await Promise.all(this.#loops)
  }

  async #work(): Promise<void> {
    const { signal } = this.#ending
    const { visibilityTimeout } = this.#job
    while (!signal.aborted) {
      try {
        for (const message of await this.#queue.pollMany({
          count: 1,
          timeout: Infinity,
          visibilityTimeout: visibilityTimeout,
          signal,
        }))
          await this.#take(message)
      } catch (error) {
        if (signal.aborted && error === signal.reason) return
        this.#ledger.count(codeOf(error))
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }

  async #take(message: ReliableMessage<Payload>): Promise<void> {
    const { visibilityTimeout } = this.#job
    const beat = (): void => void message.extend(visibilityTimeout).catch((error) => this.#ledger.count(codeOf(error)))
    const isKept = message.payload.long && Math.random() < KEPT_SHARE
    const heart = isKept ? setInterval(beat, visibilityTimeout / 3) : undefined
    try {
      await handle(message, this.#job, this.#ledger)
    } catch (error) {
      await message.negativeAcknowledge({ delay: BACKOFF_MS, error })
      return
    } finally {
      clearInterval(heart)
    }
    await message.acknowledge(this.#job.load.waits === true ? { result: resultOf(message.id) } : undefined)
  }
}

/** The kept result of a completed message. */
export function resultOf(id: string): string {
  return `done with ${id}`
}

async function handle(
  message: ReliableMessage<Payload>,
  { visibilityTimeout }: Job,
  ledger: Ledger<Entry>,
): Promise<string> {
  const { poison, long } = message.payload
  ledger.note(['handling', ...nameOf(message), long, Date.now()])
  await new Promise((resolve) => setTimeout(resolve, long ? LONG * visibilityTimeout : Math.random() * MOMENT_MS))
  if (poison) throw new Error('poison')
  return resultOf(message.id)
}
