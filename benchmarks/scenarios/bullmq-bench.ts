/**
 * The four scenarios of taskforcesh/bullmq-bench by their names, so that figures stand beside others'. That program counts
 * its warm-up messages too and divides by the time of the others; here only what was measured is counted.
 */
import { randomUUID } from 'node:crypto'
import { Queue, Worker } from 'bullmq'
import { createClient } from '../../dist/index.js'
import { rounds, type Bench, type Scenario } from '../lib/scenario.js'
import { onStage, type Stage } from '../lib/stage.js'

/** An object of `width` members, `depth` levels deep, as its payloads are. */
function payload(width: number, depth: number): unknown {
  if (depth === 0) return randomUUID()
  return Object.fromEntries(Array.from({ length: width }, () => [randomUUID(), payload(width, depth - 1)]))
}

/** 10 members with 10 members each, and one in one. */
const LARGE = payload(10, 2)
const SMALL = payload(1, 1)

interface Side {
  add(value: unknown): Promise<unknown>
  addMany(values: unknown[]): Promise<unknown>
  /** Handles so many, with a concurrency. */
  work(count: number, concurrency: number): Promise<void>
  close(): Promise<void>
}

function ours(url: string): Side {
  const client = createClient({ url })
  const queue = client.getReliableQueue('bench')
  return {
    add: (value) => queue.add(value),
    addMany: (values) => queue.addMany(values.map((payload) => ({ payload }))),
    work: (count, concurrency) =>
      handledAll(count, (handle) => {
        client.createWorker(queue, handle, { concurrency, prefetch: concurrency })
      }),
    close: () => client.shutdown(),
  }
}

/** Resolves when the handler has begun so often. */
function handledAll(count: number, work: (handle: () => Promise<void>) => void): Promise<void> {
  return new Promise((resolve) => {
    let left = count
    work(async () => {
      if (--left === 0) resolve()
      return Promise.resolve()
    })
  })
}

function bull(url: string): Side {
  const { hostname: host, port } = new URL(url)
  const connection = { host, port: Number(port), maxRetriesPerRequest: null }
  const queue = new Queue('bench', { connection })
  let worker: Worker | undefined
  return {
    add: (value) => queue.add('job', value),
    addMany: (values) => queue.addBulk(values.map((data) => ({ name: 'job', data }))),
    work: (count, concurrency) =>
      handledAll(count, (handle) => {
        worker = new Worker('bench', handle, { connection, concurrency })
      }),
    async close() {
      await worker?.close()
      await queue.close()
    },
  }
}

type Measure = (side: Side, bench: Bench) => Promise<number>

async function perSecond(count: number, action: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await action()
  return count / ((performance.now() - begin) / 1000)
}

async function inBulks(side: Side, count: number, size: number): Promise<void> {
  for (let i = 0; i < count; i += size) await side.addMany(Array.from({ length: size }, () => SMALL))
}

const MEASURES: Readonly<Record<string, readonly [string, Measure]>> = {
  'bullmq-bench queue-add': [
    '1,000 messages of 10 x 10 UUIDs added one after the other, after 1,000 to warm up.',
    async (side) => {
      const add = async (): Promise<void> => {
        for (let i = 0; i < 1_000; i++) await side.add(LARGE)
      }
      await add()
      return perSecond(1_000, add)
    },
  ],
  'bullmq-bench queue-add-bulk': [
    '10,000 messages of one UUID added in bulks of 50, after 1,000 to warm up.',
    async (side) => {
      await inBulks(side, 1_000, 50)
      return perSecond(10_000, () => inBulks(side, 10_000, 50))
    },
  ],
  'bullmq-bench worker-generic': [
    '1,000 messages handled one at a time by a handler that does nothing.',
    async (side) => {
      await inBulks(side, 1_000, 50)
      return perSecond(1_000, () => side.work(1_000, 1))
    },
  ],
  'bullmq-bench worker-concurrent': [
    '10,000 messages handled with a concurrency of 100 by a handler that does nothing.',
    async (side) => {
      await inBulks(side, 10_000, 50)
      return perSecond(10_000, () => side.work(10_000, 100))
    },
  ],
}

export const bullmqBench: readonly Scenario[] = Object.entries(MEASURES).map(([name, [description, measure]]) => ({
  name: name.replace(' ', '-'),
  description: `${name}: ${description} Messages a second; redelayed without delay, by \`queue.offer\` and \`take\`, which is at most once; BullMQ locks each job and acknowledges it, which is more.`,
  maxRuns: 3,
  async run(bench) {
    const on = (stage: Stage, open: (url: string) => Side): Promise<Record<string, number>> => {
      const side = open(stage.url)
      return measure(side, bench)
        .then((rate) => ({ 'messages/s': rate }))
        .finally(() => side.close())
    }
    const measureOf = (open: (url: string) => Side) => () => onStage(bench, {}, (stage) => on(stage, open))
    const rows = await rounds(bench, { 'redelayed, reliable queue': measureOf(ours), BullMQ: measureOf(bull) })
    return { rows }
  },
}))
