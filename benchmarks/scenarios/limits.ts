/** Waiting for results, limits over all processes, and fair turns of groups, beside BullMQ where it has them. */
import { Queue, QueueEvents, Worker } from 'bullmq'
import { createClient, type ReliableQueueConfig, type Worker as OurWorker } from '../../dist/index.js'
import {
  atLeast,
  atMost,
  median,
  medianOf,
  rounds,
  type Bench,
  type Goal,
  type Row,
  type Scenario,
} from '../lib/scenario.js'
import { countWork } from '../lib/server-work.js'
import { onStage, PAYLOAD_BYTES, type Stage } from '../lib/stage.js'
import { payloadOf } from '../subjects/subject.js'

const OURS = 'redelayed, reliable queue'
const BULLMQ = 'BullMQ'
const PAYLOAD = payloadOf(0, PAYLOAD_BYTES)
const BULK = 1_000

const bullConnection = (url: string): { host: string; port: number; maxRetriesPerRequest: null } => {
  const { hostname: host, port } = new URL(url)
  return { host, port: Number(port), maxRetriesPerRequest: null }
}

const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? NaN

/** One after the other: a message is added, handled and its result read. */
async function roundTrips(count: number, one: () => Promise<unknown>): Promise<Record<string, number>> {
  for (let n = 0; n < 100; n++) await one()
  const took: number[] = []
  for (let n = 0; n < count; n++) {
    const begin = performance.now()
    await one()
    took.push((performance.now() - begin) * 1_000)
  }
  return { 'p50 us': quantile(took, 0.5), 'p99 us': quantile(took, 0.99) }
}

const waitsOf: Readonly<Record<string, (stage: Stage, count: number) => Promise<Record<string, number>>>> = {
  async [OURS](stage, count) {
    await using client = createClient({ url: stage.url })
    const queue = client.getReliableQueue<number>('bench')
    await queue.setConfig({ keepCompleted: 1_000 })
    client.createWorker(queue, (payload) => payload * 2, { concurrency: 1, keepResults: true })
    return await roundTrips(count, async () => {
      const { id } = await queue.add(21)
      if ((await queue.waitUntilFinished(id)) !== 42) throw new Error('another result')
    })
  },
  async [BULLMQ](stage, count) {
    const connection = bullConnection(stage.url)
    const [queue, events] = [new Queue('bench', { connection }), new QueueEvents('bench', { connection })]
    const worker = new Worker('bench', (job) => Promise.resolve((job.data as number) * 2), { connection })
    await Promise.all([events.waitUntilReady(), worker.waitUntilReady()])
    try {
      return await roundTrips(count, async () => {
        const job = await queue.add('job', 21, { removeOnComplete: 1_000 })
        if ((await job.waitUntilFinished(events)) !== 42) throw new Error('another result')
      })
    } finally {
      await worker.close()
      await events.close()
      await queue.close()
    }
  },
}

const RATE = 500
const SECONDS = 4

/** When messages were handled with a limit of `RATE` a second: how many in the fullest second, and the mean after the first `RATE`, which may come at once. */
function accuracy(at: readonly number[]): Record<string, number> {
  const sorted = [...at].sort((a, b) => a - b)
  let [fullest, from] = [0, 0]
  for (let to = 0; to < sorted.length; to++) {
    while ((sorted[to] ?? 0) - (sorted[from] ?? 0) >= 1_000) from++
    fullest = Math.max(fullest, to - from + 1)
  }
  const seconds = ((sorted.at(-1) ?? 0) - (sorted[0] ?? 0)) / 1_000
  return { 'fullest second, of the limit': fullest / RATE, 'messages a second': (sorted.length - RATE) / seconds }
}

const ratesOf: Readonly<Record<string, (stage: Stage, count: number) => Promise<Record<string, number>>>> = {
  async [OURS](stage, count) {
    await using client = createClient({ url: stage.url })
    const queue = client.getReliableQueue<string>('bench')
    await queue.setConfig({ rateLimit: { max: RATE, perMs: '1s' } })
    await queue.addMany(Array.from({ length: count }, () => ({ payload: PAYLOAD })))
    return accuracy(
      await handledAt(count, (note) => {
        for (let n = 0; n < 2; n++) client.createWorker(queue, note, { concurrency: 50 })
      }),
    )
  },
  async [BULLMQ](stage, count) {
    const connection = bullConnection(stage.url)
    const queue = new Queue('bench', { connection })
    const jobs = Array.from({ length: count }, () => ({ name: 'job', data: PAYLOAD, opts: { removeOnComplete: true } }))
    await queue.addBulk(jobs)
    const workers: Worker[] = []
    const at = await handledAt(count, (note) => {
      const limiter = { max: RATE, duration: 1_000 }
      const handle = (): Promise<void> => Promise.resolve(note())
      for (let n = 0; n < 2; n++) workers.push(new Worker('bench', handle, { connection, concurrency: 50, limiter }))
    })
    await Promise.all(workers.map((worker) => worker.close()))
    await queue.close()
    return accuracy(at)
  },
}

async function handledAt(count: number, work: (note: () => void) => void): Promise<number[]> {
  const at: number[] = []
  await new Promise<void>((resolve) => {
    work(() => {
      if (at.push(performance.now()) === count) resolve()
    })
  })
  return at
}

const HANDLER_MS = 20
const SLOTS = 10
const isIdle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, HANDLER_MS))

/** How long a tenant's single message waits behind another's `waiting`, in times of the handler. */
const delaysOf: Readonly<Record<string, (stage: Stage, waiting: number) => Promise<Record<string, number>>>> = {
  async [OURS](stage, waiting) {
    await using client = createClient({ url: stage.url })
    const queue = client.getReliableQueue<string>('bench')
    const large = (length: number): Promise<unknown> =>
      queue.addMany(Array.from({ length }, () => ({ payload: 'large', group: 'large' })))
    for (let added = 0; added < waiting; added += 5_000) await large(Math.min(5_000, waiting - added))
    return await singleAmongMany(
      (handle) => void client.createWorker(queue, handle, { concurrency: SLOTS, prefetch: 0 }),
      (payload) => queue.add(payload, { group: 'small' }),
    )
  },
  async [BULLMQ](stage, waiting) {
    const connection = bullConnection(stage.url)
    const queue = new Queue('bench', { connection })
    const opts = { removeOnComplete: true }
    for (let added = 0; added < waiting; added += BULK) {
      await queue.addBulk(Array.from({ length: BULK }, () => ({ name: 'job', data: 'large', opts })))
    }
    let worker: Worker | undefined
    const figures = await singleAmongMany(
      (handle) => {
        const process = (job: { data: unknown }): Promise<void> => handle(job.data as string)
        worker = new Worker('bench', process, { connection, concurrency: SLOTS })
      },
      (payload) => queue.add('job', payload, opts),
    )
    await worker?.close(true)
    await queue.close()
    return figures
  },
}

async function singleAmongMany(
  work: (handle: (payload: string) => Promise<void>) => void,
  add: (payload: string) => Promise<unknown>,
): Promise<Record<string, number>> {
  const began = new Map<string, () => void>()
  work(async (payload) => {
    began.get(payload)?.()
    await isIdle()
  })
  const delays: number[] = []
  for (let n = 0; n < 20; n++) {
    const begins = new Promise<void>((resolve) => began.set(`small ${n}`, resolve))
    const added = performance.now()
    await add(`small ${n}`)
    await begins
    delays.push((performance.now() - added) / HANDLER_MS)
  }
  return { 'median, in times of the handler': median(delays), 'longest, in times of the handler': Math.max(...delays) }
}

function fairness(waiting: number, subjects: readonly string[], maxRuns: number): Scenario {
  const large = waiting.toLocaleString('en-US')
  return {
    promise: 'at least once',
    name: `fairness-${waiting}-waiting`,
    description: `How long the first message of a tenant waits while ${large} of another wait, with ${SLOTS} handlers of ${HANDLER_MS} ms. BullMQ (open source) has no groups: there it waits for all of them.`,
    maxRuns,
    async run(bench) {
      const count = bench.quick ? Math.min(waiting, 10_000) : waiting
      const of = (name: string) => () =>
        onStage(bench, {}, async (stage) => (await delaysOf[name]?.(stage, count)) ?? {})
      const rows = await rounds(bench, Object.fromEntries(subjects.map((name) => [name, of(name)])))
      const longest = medianOf(rows, OURS, 'longest, in times of the handler')
      return { rows, goals: [atMost('longest wait, in times of the handler', longest, 1.5, '')] }
    },
  }
}

const COSTS: Readonly<Record<string, { config: ReliableQueueConfig; groups: number }>> = {
  'without limits': { config: {}, groups: 0 },
  'with a concurrency': { config: { concurrency: 10_000 }, groups: 0 },
  'with a rate': { config: { rateLimit: { max: 1_000_000, perMs: '1s' } }, groups: 0 },
  'in 100 groups': { config: {}, groups: 100 },
  'in 100 groups with a concurrency each': { config: { groupConcurrency: 1_000 }, groups: 100 },
}

async function workerRate(bench: Bench, name: string): Promise<Record<string, number>> {
  const { config, groups } = COSTS[name] ?? { config: {}, groups: 0 }
  return onStage(bench, {}, async (stage) => {
    const count = bench.quick ? 10_000 : 100_000
    await using client = createClient({ url: stage.url })
    const queue = client.getReliableQueue<string>('bench')
    await queue.setConfig(config)
    const item = (n: number) => ({ payload: PAYLOAD, ...(groups > 0 && { group: `tenant-${n % groups}` }) })
    const handle = async (many: number): Promise<number[]> => {
      for (let n = 0; n < many; n += BULK) await queue.addMany(Array.from({ length: BULK }, (_, i) => item(n + i)))
      let worker: OurWorker | undefined
      worked = await countWork(stage.raw)
      const at = await handledAt(many, (note) => {
        worker = client.createWorker(queue, note, { concurrency: 100, prefetch: 100 })
      })
      await worker?.close()
      return at
    }
    let worked = await countWork(stage.raw)
    await handle(10_000) // until the handlers are compiled
    const at = await handle(count)
    const { cpuMs } = await worked()
    const seconds = ((at.at(-1) ?? 0) - (at[0] ?? 0)) / 1_000
    return { 'messages a second': count / seconds, 'server CPU us': (cpuMs / count) * 1_000 }
  })
}

const share = (rows: readonly Row[], name: string): number =>
  medianOf(rows, name, 'messages a second') / medianOf(rows, 'without limits', 'messages a second')

export const limits: readonly Scenario[] = [
  {
    name: 'wait-until-finished',
    promise: 'at least once',
    description:
      'From adding a message until its result is there, one at a time: `waitUntilFinished` of both, at least once, results kept.',
    maxRuns: 3,
    async run(bench) {
      const count = bench.quick ? 300 : 3_000
      const of = (name: string) => () =>
        onStage(bench, {}, async (stage) => (await waitsOf[name]?.(stage, count)) ?? {})
      const rows = await rounds(bench, { [OURS]: of(OURS), [BULLMQ]: of(BULLMQ) })
      const times = (figure: string): number => medianOf(rows, BULLMQ, figure) / medianOf(rows, OURS, figure)
      return {
        rows,
        goals: ['p50 us', 'p99 us'].map((figure): Goal => atLeast(`BullMQ's ${figure} to ours`, times(figure), 1, '')),
      }
    },
  },
  {
    name: 'rate-limit',
    promise: 'at least once',
    description: `${RATE * SECONDS} messages with a limit of ${RATE} a second over two workers: how full the fullest second was, and the mean rate. At least once.`,
    maxRuns: 3,
    async run(bench) {
      const of = (name: string) => () =>
        onStage(bench, {}, async (stage) => (await ratesOf[name]?.(stage, RATE * SECONDS)) ?? {})
      const rows = await rounds(bench, { [OURS]: of(OURS), [BULLMQ]: of(BULLMQ) })
      const fullest = Math.max(
        ...(rows.find(({ subject }) => subject === OURS)?.figures['fullest second, of the limit'] ?? [NaN]),
      )
      return { rows, goals: [atMost('the fullest second of any round, of the limit', fullest, 1.05, '')] }
    },
  },
  fairness(5_000, [OURS, BULLMQ], 1),
  fairness(1_000_000, [OURS], 3),
  {
    name: 'limits',
    promise: 'at least once',
    description: 'What limits and groups cost a worker with a concurrency of 100 whose handler only notes the message.',
    maxRuns: 5,
    async run(bench) {
      const subjects = Object.keys(COSTS).map((name) => [name, () => workerRate(bench, name)] as const)
      const rows = await rounds(bench, Object.fromEntries(subjects))
      return {
        rows,
        goals: ['with a concurrency', 'with a rate'].map((name) =>
          atLeast(`rate ${name} to that without limits`, share(rows, name), 0.8, ''),
        ),
      }
    },
  },
]
