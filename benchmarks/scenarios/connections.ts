import BeeQueue from 'bee-queue'
import { Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { encodeEntry, UNORDERED_ID_BYTES } from '../../dist/codecs/entry.js'
import { codecs, createClient } from '../../dist/index.js'
import { queueKeys } from '../../dist/keys.js'
import { atMost, medianOf, roundsOf, rounds, type Bench, type Scenario } from '../lib/scenario.js'
import { countSent, countWork } from '../lib/server-work.js'
import { onStage } from '../lib/stage.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import { reliable } from '../subjects/reliable.js'
import type { Subject } from '../subjects/subject.js'

const OWN_CONNECTIONS = 1
/** More of them would take the others minutes and gigabytes. */
const RIVALS_QUEUES = 100

/** One consumer on each of so many queues, in one process: how many connections does the server see? */
async function connectionsOf(bench: Bench, subject: Subject, queues: number): Promise<Record<string, number>> {
  return onStage(bench, { args: ['--maxclients', '20000'] }, async (stage) => {
    for (let i = 0; i < queues; i++) {
      const session = await stage.open(subject, { queue: `bench-${i}` }) // not made ready: warming up opens more
      session.take(1, { consumers: 1, batch: 1 }).catch(() => undefined) // nothing comes
    }
    await elapsed(1_000)
    return { connections: (await connected(stage.raw)) - OWN_CONNECTIONS }
  })
}

/** Consumers alone, each as its documentation shows. */
const CONSUMERS: Readonly<Record<string, (url: string, queue: string) => Promise<{ close(): Promise<unknown> }>>> = {
  async BullMQ(url, queue) {
    const { hostname: host, port } = new URL(url)
    const connection = { host, port: Number(port), maxRetriesPerRequest: null }
    const worker = new Worker(queue, () => Promise.resolve(), { connection })
    await worker.waitUntilReady()
    return worker
  },
  async 'bee-queue'(url, queue) {
    const worker = new BeeQueue(queue, { redis: url, activateDelayedJobs: true })
    worker.process(() => Promise.resolve())
    await worker.ready()
    return worker
  },
}

async function consumersOf(bench: Bench, rival: string, queues: number): Promise<Record<string, number>> {
  return onStage(bench, { args: ['--maxclients', '20000'] }, async (stage) => {
    const open = CONSUMERS[rival]
    if (open === undefined) throw new Error(`no consumer of ${rival}`)
    const consumers = []
    for (let i = 0; i < queues; i++) consumers.push(await open(stage.url, `bench-${i}`))
    await elapsed(1_000)
    const connections = (await connected(stage.raw)) - OWN_CONNECTIONS
    await Promise.all(consumers.map((consumer) => consumer.close()))
    return { connections }
  })
}

/** One client of ours that consumes so many queues. */
async function oneClient(bench: Bench, queues: number): Promise<Record<string, number>> {
  return onStage(bench, {}, async (stage) => {
    const heap = process.memoryUsage().rss
    await using client = createClient({ url: stage.url })
    let written = Infinity
    const found: number[] = []
    const takes = Array.from({ length: queues }, (_, i) =>
      client
        .getBlockingQueue(`bench-${i}`)
        .take()
        .then(() => found.push((performance.now() - written) / 1000)),
    )
    let last = -1
    for (let now = await connected(stage.raw); ; now = await connected(stage.raw)) {
      const subscribed = Number((await stage.raw.info('stats')).match(/pubsub_channels:(\d+)/)?.[1])
      if (subscribed >= queues && now === last) break
      last = now
      await elapsed(500)
    }
    const seconds = bench.quick ? 5 : 30
    const connections = (await connected(stage.raw)) - OWN_CONNECTIONS
    const sent = await countSent(stage.raw)
    const worked = await countWork(stage.raw)
    await elapsed(seconds * 1_000)
    const { cpuMs } = await worked()
    const commands = await sent()
    const rss = process.memoryUsage().rss - heap
    written = performance.now()
    await writeUnannounced(stage.raw, queues)
    await Promise.all(takes)
    return {
      connections,
      'commands sent/s': commands / seconds,
      'server CPU %': cpuMs / seconds / 10,
      'client MB more': Math.max(0, rss / 2 ** 20),
      'found after s at most': Math.max(...found),
    }
  })
}

/** One overdue message in each queue, without an announcement, as if all publishes were lost: only a sweep finds it. */
async function writeUnannounced(raw: Redis, queues: number): Promise<void> {
  const entry = encodeEntry(Buffer.alloc(UNORDERED_ID_BYTES, 1), codecs.msgpack().encode('found'))
  const pipeline = raw.pipeline()
  for (let i = 0; i < queues; i++) pipeline.zadd(queueKeys(`bench-${i}`).timeouts, 1, entry)
  await pipeline.exec()
}

async function connected(raw: Redis): Promise<number> {
  return Number(/^connected_clients:(\d+)/m.exec(await raw.info('clients'))?.[1])
}

const elapsed = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const SESSIONS = [redelayed('compact'), redisson, reliable, bullmq, beeQueue]

export const connections: readonly Scenario[] = [
  {
    name: 'connections-1-queue',
    maxRuns: 1,
    description: 'Connections of one process that consumes one queue and offers to it.',
    run: async (bench) => ({ rows: await roundsOf(bench, SESSIONS, (subject) => connectionsOf(bench, subject, 1)) }),
  },
  {
    name: 'connections-100-queues',
    maxRuns: 1,
    description: `Connections of one process with one consumer on each of ${RIVALS_QUEUES} queues, each opened as its documentation shows; of redelayed one client.`,
    async run(bench) {
      const rivals = await rounds(bench, {
        BullMQ: () => consumersOf(bench, 'BullMQ', RIVALS_QUEUES),
        'bee-queue': () => consumersOf(bench, 'bee-queue', RIVALS_QUEUES),
      })
      const ours = await rounds(bench, { redelayed: () => oneClient(bench, RIVALS_QUEUES) })
      return {
        rows: [
          ...ours.map((row) => ({ ...row, promise: 'at most once' as const })),
          ...rivals.map((row) => ({ ...row, promise: 'at least once' as const })),
        ],
      }
    },
  },
  {
    name: 'connections-10000-queues',
    promise: 'at most once',
    maxRuns: 3,
    description:
      'One redelayed client with a consumer on each of 10,000 queues: connections, what it costs while nothing happens, and after how long the last of 10,000 messages without an announcement is found.',
    async run(bench) {
      const queues = bench.quick ? 1_000 : 10_000
      const subject = `redelayed, ${queues.toLocaleString('en-US')} queues`
      const rows = await rounds(bench, { [subject]: () => oneClient(bench, queues) })
      return {
        rows,
        goals: [
          atMost('connections', medianOf(rows, subject, 'connections'), 8, ''),
          atMost('commands a second while idle', medianOf(rows, subject, 'commands sent/s'), 500, ''),
          atMost('an unannounced message is found after', medianOf(rows, subject, 'found after s at most'), 60, 's'),
        ],
      }
    },
  },
]
