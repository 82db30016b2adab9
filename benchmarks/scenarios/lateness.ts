import { build, type Histogram } from 'hdr-histogram-js'
import { createClient, dueOf } from '../../dist/index.js'
import { atMost, medianOf, rounds, type Bench, type Goal, type Scenario } from '../lib/scenario.js'

/** When each message is due, in milliseconds after the start of the load. */
type Load = readonly number[]

/** Collects how late messages were; the server runs on this machine, so this process's date is the server's clock. */
class Lateness {
  readonly #histogram: Histogram = build({ lowestDiscernibleValue: 1, highestTrackableValue: 3_600_000 })
  readonly #missing: Set<number>
  #early = 0
  #doubled = 0
  #done: () => void = () => undefined
  readonly done = new Promise<void>((resolve) => (this.#done = resolve))

  constructor(count: number) {
    this.#missing = new Set(Array.from({ length: count }, (_, index) => index))
  }

  add(index: number, due: number, taken: number): void {
    if (!this.#missing.delete(index)) this.#doubled++
    if (taken < due) this.#early++
    this.#histogram.recordValue(Math.max(0, taken - due))
    if (this.#missing.size === 0) this.#done()
  }

  figures(): Record<string, number> {
    const at = (percentile: number): number => this.#histogram.getValueAtPercentile(percentile)
    return {
      'p50 ms': at(50),
      'p95 ms': at(95),
      'p99 ms': at(99),
      'max ms': this.#histogram.maxValue,
      early: this.#early,
      doubled: this.#doubled,
    }
  }
}

/** The first messages are due this long after the offers began, so that adding does not disturb delivering. */
const LEAD_MS = 2_000
const unique = (): string => `bench-${process.pid}-${Math.random().toString(36).slice(2)}`

async function redelayed(bench: Bench, load: Load, order: 'list' | 'none'): Promise<Record<string, number>> {
  await using client = createClient({ url: bench.url })
  const name = unique()
  const queue = client.getBlockingQueue<number>(name)
  const delayed = client.getDelayedQueue(queue, { order })
  const lateness = new Lateness(load.length)
  const dues = new Map<number, number>()
  const start = Date.now() + LEAD_MS
  const tickets = await delayed.offerAll(
    load.map((at, value) => ({ value, delay: Math.max(0, Math.round(start + at - Date.now())) })),
  )
  tickets.forEach((ticket, index) => dues.set(index, dueOf(ticket)))
  const controller = new AbortController()
  const consumer = (async () => {
    for await (const index of queue.elements({ signal: controller.signal })) {
      lateness.add(index, dues.get(index) ?? NaN, Date.now())
    }
  })().catch(() => undefined)
  await lateness.done
  controller.abort()
  await consumer
  await delayed.delete()
  return lateness.figures()
}

async function bullmq(bench: Bench, load: Load): Promise<Record<string, number>> {
  const { Queue, Worker } = await import('bullmq')
  const { hostname: host, port } = new URL(bench.url)
  const connection = { host, port: Number(port), maxRetriesPerRequest: null }
  const name = unique()
  const queue = new Queue(name, { connection })
  const lateness = new Lateness(load.length)
  const worker = new Worker(
    name,
    (job) => {
      lateness.add(job.data as number, job.timestamp + (job.opts.delay ?? 0), Date.now())
      return Promise.resolve()
    },
    { connection, concurrency: 50 },
  )
  await worker.waitUntilReady()
  const start = Date.now() + LEAD_MS
  const jobs = load.map((at, index) => ({
    name: 'job',
    data: index,
    opts: { delay: Math.max(0, Math.round(start + at - Date.now())), removeOnComplete: true },
  }))
  for (let i = 0; i < jobs.length; i += 500) await queue.addBulk(jobs.slice(i, i + 500))
  await lateness.done
  await worker.close()
  await queue.obliterate({ force: true })
  await queue.close()
  return lateness.figures()
}

async function beeQueue(bench: Bench, load: Load): Promise<Record<string, number>> {
  const { default: BeeQueue } = await import('bee-queue')
  const queue = new BeeQueue<{ index: number; due: number }>(unique(), {
    redis: bench.url,
    activateDelayedJobs: true,
    delayedDebounce: 1, // its best setting
    removeOnSuccess: true,
  })
  await queue.ready()
  const lateness = new Lateness(load.length)
  queue.process(50, (job) => {
    lateness.add(job.data.index, job.data.due, Date.now())
    return Promise.resolve()
  })
  const start = Date.now() + LEAD_MS
  const jobs = load.map((at, index) => {
    const due = Math.round(start + at)
    return queue.createJob({ index, due }).delayUntil(due)
  })
  for (let i = 0; i < jobs.length; i += 500) await queue.saveAll(jobs.slice(i, i + 500))
  await lateness.done
  await queue.close(1_000)
  await queue.destroy().catch(() => undefined)
  return lateness.figures()
}

function scenario(name: string, description: string, load: (bench: Bench) => Load): Scenario {
  return {
    name,
    description,
    async run(bench) {
      const messages = load(bench)
      const rows = await rounds(bench, {
        "redelayed, order 'none'": () => redelayed(bench, messages, 'none'),
        "redelayed, order 'list'": () => redelayed(bench, messages, 'list'),
        BullMQ: () => bullmq(bench, messages),
        'bee-queue, delayedDebounce 1': () => beeQueue(bench, messages),
      })
      const goals: Goal[] = ["redelayed, order 'none'", "redelayed, order 'list'"].flatMap((subject) => [
        atMost(`${subject}: p99`, medianOf(rows, subject, 'p99 ms'), 2, 'ms'),
        atMost(`${subject}: early`, medianOf(rows, subject, 'early'), 0, 'messages'),
      ])
      return { rows, goals }
    },
  }
}

const hz = 'The server is untuned (hz 10). Lateness is from the due time to the moment the consumer has the message.'

export const sparse = scenario('lateness-sparse', `One message about every 90 ms. ${hz}`, (bench) =>
  Array.from({ length: bench.quick ? 40 : 200 }, (_, index) => index * 90 + Math.random() * 60),
)

export const uniform = scenario('lateness-uniform', `1,000 messages a second at random moments. ${hz}`, (bench) => {
  const seconds = bench.quick ? 3 : 10
  return Array.from({ length: seconds * 1_000 }, () => Math.random() * seconds * 1_000)
})
