import { medianOf, ratio, roundsOf, type Bench, type Goal, type Row, type Scenario } from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { plainRedis, plainRedisVariadic } from '../subjects/plain-redis.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import type { AddMode, Subject } from '../subjects/subject.js'

const none = redelayed('compact')
const SUBJECTS = [none, redelayed('redisson'), bullmq, beeQueue, redisson, asynq, plainRedis]

const COUNTS: Readonly<Record<AddMode, number>> = { 'one at a time': 5_000, '64 in flight': 40_000, bulk: 100_000 }

/** The last only where many are added at once. */
const WITH_VARIADIC = [...SUBJECTS, plainRedisVariadic]

export async function addsPerSecond(bench: Bench, subject: Subject, mode: AddMode): Promise<Record<string, number>> {
  return onStage(bench, {}, async (stage) => {
    const session = await stage.open(subject)
    await session.ready()
    const count = COUNTS[mode] / (bench.quick ? 5 : 1)
    await session.add(count / 5, mode) // so that nothing is measured cold
    return { 'messages/s': count / (await session.add(count, mode)) }
  })
}

function scenario(mode: AddMode, goals: (rows: readonly Row[]) => Goal[]): Scenario {
  return {
    name: `add-${mode.replaceAll(' ', '-')}`,
    description: `Messages of 100 bytes with a delay of an hour added per second: ${mode}.`,
    ...(mode !== 'bulk' && { maxRuns: 3 }),
    async run(bench) {
      const rows = await roundsOf(bench, mode === 'bulk' ? WITH_VARIADIC : SUBJECTS, (subject) =>
        addsPerSecond(bench, subject, mode),
      )
      return { rows, goals: goals(rows), plot: { bars: 'messages/s', unit: 'messages a second' } }
    },
  }
}

const rate = (rows: readonly Row[], subject: Subject): number => medianOf(rows, subject.name, 'messages/s')

export const adding: readonly Scenario[] = [
  scenario('one at a time', () => []),
  scenario('64 in flight', () => []),
  scenario('bulk', (rows) => [
    ratio('offerAll as a share of the floor', rate(rows, none) / rate(rows, plainRedis), 0.85),
    ratio("offerAll over BullMQ's addBulk", rate(rows, none) / rate(rows, bullmq), 3),
  ]),
]
