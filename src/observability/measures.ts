import type { DelayedQueue, RedelayedClient, ReliableQueue } from '../index.js'
import { printable } from '../text.js'

/** The measures by their names without prefix; times are seconds, as Prometheus and OpenTelemetry expect. */
export const COUNTERS = {
  messages: 'Messages of reliable queues by what happened to them through this client.',
  settled: 'Messages that workers were done with, by outcome.',
  transferred: 'Messages of delayed queues that this client moved to their destination.',
  quarantined: 'Entries that could not be read.',
  errors: 'Errors by their code.',
  reconnects: 'Attempts to open a lost connection again.',
} as const

export const HISTOGRAMS = {
  handling_seconds: 'From when a worker began with a message until Redis knew what came of it.',
  lateness_seconds: 'From when a message of a reliable queue was visible until a worker got it, by the Redis clock.',
  transfer_lateness_seconds: 'By how much the most overdue message of a transfer was late, by the Redis clock.',
  attempts: 'The number of the delivery that was handled.',
} as const

export const GAUGES = {
  queue_messages: 'Messages in a queue by state.',
  queue_oldest_seconds: 'For how long the first message that could be delivered has been waiting.',
  queue_held_back: 'Visible messages of a reliable queue that no consumer could get now, by what they wait for.',
  queue_paused: '1 if an operation of a reliable queue is paused in all processes, else 0.',
  queue_groups: 'Groups of a reliable queue by state.',
  queue_paused_tasks: 'Tasks of a reliable queue that are paused in all processes.',
  queue_batches: 'Batches of a reliable queue by state.',
  queue_completed: 'Completed messages that a reliable queue keeps.',
  queue_changes: 'Entries of the change stream of a reliable queue.',
  queue_changes_lag: 'Entries of the change stream that a group has not acknowledged.',
} as const

export const BUCKETS: Readonly<Record<keyof typeof HISTOGRAMS, readonly number[]>> = {
  handling_seconds: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300],
  lateness_seconds: [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 300],
  transfer_lateness_seconds: [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 300],
  attempts: [1, 2, 3, 4, 5, 7, 10, 20, 50],
}

/** The labels of each measure, which are always all given. */
export const LABELS = {
  messages: ['queue', 'event'],
  settled: ['queue', 'task', 'outcome'],
  transferred: ['queue'],
  quarantined: ['queue', 'reason'],
  errors: ['code'],
  reconnects: ['connection'],
  handling_seconds: ['queue', 'task', 'outcome'],
  lateness_seconds: ['queue'],
  transfer_lateness_seconds: ['queue'],
  attempts: ['queue'],
  queue_messages: ['queue', 'state'],
  queue_oldest_seconds: ['queue'],
  queue_held_back: ['queue', 'by'],
  queue_paused: ['queue', 'operation'],
  queue_groups: ['queue', 'state'],
  queue_paused_tasks: ['queue'],
  queue_batches: ['queue', 'state'],
  queue_completed: ['queue'],
  queue_changes: ['queue'],
  queue_changes_lag: ['queue', 'group'],
} as const satisfies Record<keyof typeof COUNTERS | keyof typeof HISTOGRAMS | keyof typeof GAUGES, readonly string[]>

export type Labels = Readonly<Record<string, string>>

/** The receiver of measured values. */
export interface Sink {
  count(name: keyof typeof COUNTERS, labels: Labels, value: number): void
  record(name: keyof typeof HISTOGRAMS, labels: Labels, value: number): void
}

/** A queue whose depth is read each time the gauges are read. */
export type MeasuredQueue = ReliableQueue | Pick<DelayedQueue, 'name' | 'stats'>

/** One reading of a gauge. */
export interface Reading {
  readonly name: keyof typeof GAUGES
  readonly labels: Labels
  readonly value: number
}

/** The most queues with a label of their own; further ones share one, because names can come from users. */
export const MAX_QUEUES = 1_000
const OTHER_QUEUES = '(other)'
const MAX_LABEL = 200

/** The values of the queue label, limited in length and number. */
function queueLabels(): (queue: string) => string {
  const labels = new Map<string, string>()
  return (queue) => {
    const known = labels.get(queue)
    if (known !== undefined) return known
    if (labels.size >= MAX_QUEUES) return OTHER_QUEUES
    const label = labelOf(queue)
    labels.set(queue, label)
    return label
  }
}

function labelOf(name: string): string {
  return printable(name, MAX_LABEL)
}

const MESSAGE_EVENTS = ['added', 'full', 'polled', 'acknowledged', 'failed', 'rejected', 'expired', 'removed'] as const

/**
 * Reports all events of `client` to `sink`, until the returned function is called. Only the given tasks get a label of their own,
 * because names come with messages, and a label value exists for ever; likewise queues beyond `MAX_QUEUES`.
 */
export function observe(client: RedelayedClient, tasks: readonly string[], sink: Sink): () => void {
  const ends: (() => void)[] = []
  const listen: typeof client.on = (name, listener) => {
    client.on(name, listener)
    ends.push(() => client.off(name, listener))
    return client
  }
  const labelOfQueue = queueLabels()
  for (const event of MESSAGE_EVENTS) {
    listen(event, ({ queue, count }) => sink.count('messages', { queue: labelOfQueue(queue), event }, count))
  }
  listen('settled', ({ queue: name, task = '', outcome, ms, lateMs, attempt }) => {
    const queue = labelOfQueue(name)
    const labels = { queue, task: tasks.includes(task) ? task : '', outcome }
    sink.count('settled', labels, 1)
    sink.record('handling_seconds', labels, ms / 1_000)
    sink.record('lateness_seconds', { queue }, lateMs / 1_000)
    sink.record('attempts', { queue }, attempt)
  })
  listen('transferred', ({ queue: name, count, maxLatenessMs }) => {
    const queue = labelOfQueue(name)
    sink.count('transferred', { queue }, count)
    sink.record('transfer_lateness_seconds', { queue }, maxLatenessMs / 1_000)
  })
  listen('quarantined', ({ queue, reason, count }) =>
    sink.count('quarantined', { queue: labelOfQueue(queue), reason }, count),
  )
  listen('error', ({ code }) => sink.count('errors', { code }, 1))
  listen('reconnecting', ({ connection }) => sink.count('reconnects', { connection }, 1))
  return () => {
    for (const end of ends.splice(0)) end()
  }
}

/** Reads all gauges; leaves out unreadable queues, so that one of them does not hide the others. */
export async function readGauges(queues: readonly MeasuredQueue[]): Promise<Reading[]> {
  const readings = await Promise.all(queues.map((queue) => readGaugesOf(queue).catch((): Reading[] => [])))
  return readings.flat()
}

async function readGaugesOf(queue: MeasuredQueue): Promise<Reading[]> {
  const label = labelOf(queue.name)
  const { states, oldestMs } = 'counts' in queue ? await reliableDepth(queue) : await delayedDepth(queue)
  const depth = Object.entries(states).map(([state, value]) => ({
    name: 'queue_messages' as const,
    labels: { queue: label, state },
    value,
  }))
  const changes = 'changeStatus' in queue ? await changeReadings(queue).catch((): Reading[] => []) : []
  const totals = 'totals' in queue ? await totalReadings(queue).catch((): Reading[] => []) : []
  const oldest = { name: 'queue_oldest_seconds' as const, labels: { queue: label }, value: oldestMs / 1_000 }
  return [...depth, oldest, ...totals, ...changes]
}

/** The totals of a queue: only sums, because there can be any number of groups and batches. */
async function totalReadings(queue: ReliableQueue): Promise<Reading[]> {
  const { heldBack, paused, groups, tasks, batches, completed } = await queue.totals()
  const label = labelOf(queue.name)
  const each = (name: keyof typeof GAUGES, by: string, values: Readonly<Record<string, number>>): Reading[] =>
    Object.entries(values).map(([what, value]) => ({ name, labels: { queue: label, [by]: what }, value }))
  return [
    ...each('queue_held_back', 'by', { pause: heldBack.byPause, limit: heldBack.byLimit }),
    ...each('queue_paused', 'operation', { add: Number(paused.add), poll: Number(paused.poll) }),
    ...each('queue_groups', 'state', { ...groups }),
    { name: 'queue_paused_tasks', labels: { queue: label }, value: tasks.paused },
    ...each('queue_batches', 'state', { ...batches }),
    { name: 'queue_completed', labels: { queue: label }, value: completed.kept },
  ]
}

/** The readings of changes; none if the queue keeps no changes, and none of a group whose lag the server does not know. */
async function changeReadings(queue: ReliableQueue): Promise<Reading[]> {
  const { epoch, length, groups } = await queue.changeStatus()
  if (epoch === null) return []
  const label = labelOf(queue.name)
  const lags = groups.flatMap(({ name, pending, lag }) => {
    const labels = { queue: label, group: labelOf(name) }
    return lag === null ? [] : [{ name: 'queue_changes_lag' as const, labels, value: pending + lag }]
  })
  return [{ name: 'queue_changes', labels: { queue: label }, value: length }, ...lags]
}

interface Depth {
  readonly states: Readonly<Record<string, number>>
  readonly oldestMs: number
}

async function reliableDepth(queue: ReliableQueue): Promise<Depth> {
  const { visible, delayed, inFlight, dead, oldestMs } = await queue.counts()
  return { states: { visible, delayed, in_flight: inFlight, dead }, oldestMs }
}

async function delayedDepth(queue: Pick<DelayedQueue, 'name' | 'stats'>): Promise<Depth> {
  const { pending, overdue, delivered, quarantined, oldestOverdueMs } = await queue.stats()
  return { states: { delayed: pending - overdue, overdue, delivered, quarantined }, oldestMs: oldestOverdueMs }
}
