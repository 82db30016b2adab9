import { medianOf, ratio, roundsOf, type Bench, type Goal, type Row, type Scenario } from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { plainRedis } from '../subjects/plain-redis.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import type { Subject, TakeOptions } from '../subjects/subject.js'

const none = redelayed('compact')
const SUBJECTS = [none, bullmq, beeQueue, redisson, plainRedis]

interface Setting extends TakeOptions {
  readonly count: number
}

/** What BullMQ needs ten seconds for is over with the fast ones before they are warm: they take more. */
const FAST: readonly Subject[] = [none, redisson, plainRedis]
const TIMES_AS_MANY = 5

export async function takesPerSecond(
  bench: Bench,
  subject: Subject,
  setting: Setting,
): Promise<Record<string, number>> {
  return onStage(bench, {}, async (stage) => {
    const many = FAST.includes(subject) && setting.batch > 1
    const count = setting.count * (many ? TIMES_AS_MANY : 1)
    const session = await stage.open(subject)
    await session.ready()
    await session.load(count)
    const started = Date.now()
    const { at } = await session.take(count, setting)
    return { 'messages/s': count / ((at.reduce((a, b) => Math.max(a, b), started) - started) / 1000) }
  })
}

function scenario(name: string, setting: Setting, goals: (rows: readonly Row[]) => Goal[] = () => []): Scenario {
  const { consumers, batch } = setting
  const how = batch === 1 ? 'one at a time' : `in batches of up to ${batch} where the queue has them`
  return {
    name,
    description: `Messages that are ready taken per second: ${consumers} consumer${consumers === 1 ? '' : 's'}, ${how}.`,
    async run(bench) {
      const rows = await roundsOf(bench, SUBJECTS, (subject) => takesPerSecond(bench, subject, setting))
      return { rows, goals: goals(rows), plot: { bars: 'messages/s', unit: 'messages a second' } }
    },
  }
}

const rate = (rows: readonly Row[], subject: Subject): number => medianOf(rows, subject.name, 'messages/s')

export const taking: readonly Scenario[] = [
  scenario('take-1-consumer', { consumers: 1, batch: 1, count: 10_000 }),
  scenario('take-10-consumers', { consumers: 10, batch: 1, count: 50_000 }),
  scenario('take-100-consumers', { consumers: 100, batch: 1, count: 50_000 }),
  scenario('take-batches', { consumers: 4, batch: 100, count: 100_000 }, (rows) => [
    ratio('taken in batches as a share of the floor', rate(rows, none) / rate(rows, plainRedis), 0.8),
  ]),
  {
    name: 'take-batches-or-100-concurrent',
    description:
      'Each in its fastest way: redelayed and Redisson with 4 consumers in batches of 100, the others with a concurrency of 100. Taking is at most once with redelayed, Redisson and the floor; BullMQ and bee-queue also keep and acknowledge each job.',
    async run(bench) {
      const rows = await roundsOf(bench, [none, bullmq, beeQueue, redisson, asynq], (subject) =>
        takesPerSecond(bench, subject, {
          consumers: subject === none || subject === redisson ? 4 : 100,
          batch: 100,
          count: 100_000,
        }),
      )
      return {
        rows,
        goals: [ratio("taken in batches over BullMQ's processed", rate(rows, none) / rate(rows, bullmq), 5)],
        plot: { bars: 'messages/s', unit: 'messages a second' },
      }
    },
  },
  {
    name: 'burst-until-taken',
    description:
      '50,000 messages due in the same millisecond: from the due time until the last is taken. redelayed and Redisson with 4 consumers that take batches, the others with a concurrency of 100.',
    async run(bench) {
      const count = bench.quick ? 10_000 : 50_000
      const rows = await roundsOf(bench, [none, redelayed('redisson'), bullmq, beeQueue, redisson, asynq], (subject) =>
        burst(bench, subject, count),
      )
      const seconds = (subject: Subject): number => medianOf(rows, subject.name, 'ms until the last')
      return {
        rows,
        goals: [ratio('times as fast as BullMQ', seconds(bullmq) / seconds(none), 5)],
        plot: { bars: 'ms until the last', unit: 'ms' },
      }
    },
  },
]

async function burst(bench: Bench, subject: Subject, count: number): Promise<Record<string, number>> {
  return onStage(bench, {}, async (stage) => {
    const batches = [none, redisson].includes(subject) || subject.name.startsWith('redelayed')
    const session = await stage.open(subject)
    await session.ready()
    const taking = session.take(count, batches ? { consumers: 4, batch: 100 } : { consumers: 100, batch: 1 })
    const due = Date.now() + 2_000 + count / 10
    await session.schedule(Array.from({ length: count }, () => due))
    const { at } = await taking
    return { 'ms until the last': at.reduce((a, b) => Math.max(a, b), 0) - due }
  })
}
