/** The work of one message at every place, and what follows from it for a large installation: computed from the run, not by hand. */
import { countWork } from '../lib/server-work.js'
import { medianOf, rounds, type Bench, type Figures, type Promised, type Row, type Scenario } from '../lib/scenario.js'
import { onStage, type Stage } from '../lib/stage.js'
import { redelayed } from '../subjects/redelayed.js'
import { reliable } from '../subjects/reliable.js'
import type { Subject } from '../subjects/subject.js'
import { consumersOf } from './burst.js'
import { bytesPerMessage } from './memory.js'

const none = redelayed('compact')
const SERVER = 'server CPU us'
const CLIENT = 'client CPU us'
const WIRE = 'bytes on the wire'
const BYTES = 'bytes per message'

/** What an action costs, by message. */
async function workOf(stage: Stage, count: number, action: () => Promise<unknown>): Promise<Figures> {
  const worked = await countWork(stage.raw)
  const cpu = process.cpuUsage()
  await action()
  const { user, system } = process.cpuUsage(cpu)
  const { cpuMs, bytes } = await worked()
  return { [SERVER]: (cpuMs * 1_000) / count, [CLIENT]: (user + system) / count, [WIRE]: bytes / count }
}

const countOf = (bench: Bench): number => (bench.quick ? 20_000 : 200_000)

function added(bench: Bench, subject: Subject): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const count = countOf(bench)
    const session = await stage.open(subject)
    await session.ready()
    await session.add(count / 10, 'bulk')
    return workOf(stage, count, () => session.add(count, 'bulk'))
  })
}

/** From the due time until all are in the destination, without a consumer. The client only starts the scripts. */
function transferred(bench: Bench): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const count = countOf(bench)
    const session = await stage.open(none)
    await session.ready()
    await session.fill(count) // moving is not cheaper because the rest is nothing
    const due = Date.now() + 2_000 + count / 20
    await session.schedule(Array.from({ length: count }, () => due))
    await new Promise((resolve) => setTimeout(resolve, due - 50 - Date.now()))
    return workOf(stage, count, async () => {
      while ((await stage.raw.llen('bench')) < count) await new Promise((resolve) => setTimeout(resolve, 10))
    })
  })
}

function taken(bench: Bench, subject: Subject): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const count = countOf(bench)
    const session = await stage.open(subject)
    await session.ready()
    await session.load(count)
    return workOf(stage, count, () => session.take(count, consumersOf(subject)))
  })
}

const steps = {
  added: "'compact': added in bulk",
  transferred: "'compact': moved when it is due",
  taken: "'compact': taken in batches",
  pending: "'compact': pending",
  reliableAdded: 'reliable queue: added in bulk',
  reliableTaken: 'reliable queue: polled, handled and acknowledged',
  reliablePending: 'reliable queue: pending',
} as const

const PENDING = 100e6
const PER_SECOND = 1e6
/** A core that is busier has no room for a peak. */
const BUSY = 0.6

function large(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(2)))
}

interface Work {
  readonly promise: Promised
  readonly what: string
  readonly bytes: number
  /** By step. */
  readonly server: readonly number[]
  readonly wire: readonly number[]
  readonly producer: number
  readonly consumer: number
}

function planOf({ what, promise, bytes, server, wire, producer, consumer }: Work): string[] {
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)
  const gigabytes = (bytes * PENDING) / 1e9
  const cores = (sum(server) * PER_SECOND) / 1e6
  const masters = Math.ceil(cores / BUSY)
  const network = (sum(wire) * PER_SECOND) / 1e6
  const processes = (micros: number): string => large(Math.ceil((micros * PER_SECOND) / 1e6 / BUSY))
  let shards = 3
  while (shards < 2 * masters) shards *= 2
  return [
    `**${what}** (${promise}), for 100,000,000 pending and 1,000,000 a second:`,
    '',
    '| | per message | together |',
    '|---|---:|---|',
    `| memory | ${large(bytes)} bytes on a master, the same on each replica | ${large(gigabytes)} GB on masters and ${large(gigabytes)} GB per set of replicas; as much again for a snapshot's copies |`,
    `| a master's CPU | ${server.map(large).join(' + ')} = ${large(sum(server))} us | ${large(cores)} cores at work; at ${BUSY * 100} % of one core each, ${masters} masters |`,
    `| network | ${wire.map(large).join(' + ')} bytes, replicas once more | ${large(network)} MB/s over all masters, ${large(network / masters)} MB/s each, and the same to its replica |`,
    `| producers' CPU | ${large(producer)} us in bulk | ${processes(producer)} processes at ${BUSY * 100} % |`,
    `| consumers' CPU | ${large(consumer)} us, and the handler | ${processes(consumer)} processes at ${BUSY * 100} %, and the handlers' |`,
    `| shards | | ${shards}: three times a power of two spreads most evenly, and each master has at least two |`,
    '',
  ]
}

function plans(rows: readonly Row[]): string[] {
  const of = (subject: string, figure: string): number => medianOf(rows, subject, figure)
  const { added, transferred, taken, pending, reliableAdded, reliableTaken, reliablePending } = steps
  const compact = [added, transferred, taken]
  const reliably = [reliableAdded, reliableTaken]
  return [
    '### Planning, computed from these rows',
    '',
    ...planOf({
      what: "layout 'compact', taken in batches",
      promise: none.promise,
      bytes: of(pending, BYTES),
      server: compact.map((step) => of(step, SERVER)),
      wire: compact.map((step) => of(step, WIRE)),
      producer: of(added, CLIENT),
      consumer: of(taken, CLIENT),
    }),
    ...planOf({
      what: 'reliable queue, workers',
      promise: reliable.promise,
      bytes: of(reliablePending, BYTES),
      server: reliably.map((step) => of(step, SERVER)),
      wire: reliably.map((step) => of(step, WIRE)),
      producer: of(reliableAdded, CLIENT),
      consumer: of(reliableTaken, CLIENT),
    }),
  ]
}

export const planning: Scenario = {
  name: 'planning',
  maxRuns: 3,
  description:
    'What one message of 100 bytes costs at every place, of 200,000: when it is added, when it is due and when it is taken. CPU of the server by its own counters, of the client by those of the system, with what the benchmark needs for each message; bytes in both directions.',
  async run(bench) {
    const bytesOf = (subject: Subject) => () => bytesPerMessage(bench, subject, 100)
    const rows = await rounds(bench, {
      [steps.added]: () => added(bench, none),
      [steps.transferred]: () => transferred(bench),
      [steps.taken]: () => taken(bench, none),
      [steps.pending]: bytesOf(none),
      [steps.reliableAdded]: () => added(bench, reliable),
      [steps.reliableTaken]: () => taken(bench, reliable),
      [steps.reliablePending]: bytesOf(reliable),
    })
    const labelled = rows.map((row) => ({
      ...row,
      promise: row.subject.startsWith('reliable') ? reliable.promise : none.promise,
    }))
    return { rows: labelled, text: plans(rows) }
  },
}
