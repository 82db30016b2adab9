import {
  quotients,
  atLeast,
  ratio,
  roundsOf,
  type Bench,
  type Figures,
  type Goal,
  type Row,
  type Scenario,
} from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { sweep } from '../lib/sweep.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { plainRedis, plainRedisVariadic } from '../subjects/plain-redis.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import { reliable } from '../subjects/reliable.js'
import type { AddMode, Bulk, Subject } from '../subjects/subject.js'

const none = redelayed('compact')
const SUBJECTS = [none, redelayed('redisson'), redisson, plainRedis, reliable, bullmq, beeQueue, asynq]

const COUNTS: Readonly<Record<AddMode, number>> = { 'one at a time': 5_000, '64 in flight': 40_000, bulk: 100_000 }

/** The last only where many are added at once. */
const WITH_VARIADIC = [...SUBJECTS, plainRedisVariadic]

async function addsPerSecond(bench: Bench, subject: Subject, mode: AddMode, bulk?: Bulk): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const session = await stage.open(subject, { ...(bulk !== undefined && { bulk }) })
    await session.ready()
    const count = COUNTS[mode] / (bench.quick ? 2.5 : 1)
    await session.add(count / 5, mode) // so that nothing is measured cold
    return { 'messages/s': count / (await session.add(count, mode)) }
  })
}

const FIGURE = 'messages/s'
const PLOT = { bars: FIGURE, unit: 'messages a second' }

function singly(mode: Exclude<AddMode, 'bulk'>, goals: (rows: readonly Row[]) => Goal[]): Scenario {
  return {
    name: `add-${mode.replaceAll(' ', '-')}`,
    description: `Messages of 100 bytes with a delay of an hour added per second: ${mode}.`,
    async run(bench) {
      const rows = await roundsOf(bench, SUBJECTS, (subject) => addsPerSecond(bench, subject, mode))
      return { rows, goals: goals(rows), plot: PLOT }
    },
  }
}

const bulk: Scenario = {
  name: 'add-bulk',
  description:
    'Messages of 100 bytes with a delay of an hour added per second, many with one call: each subject with the size of a bulk and the number of bulks in flight that a sweep finds best for it at the start of the run. Redisson and asynq have no call for many; for them it finds the best number of single calls in flight.',
  async run(bench) {
    const best = new Map<Subject, Bulk>()
    const notes: string[] = []
    for (const subject of WITH_VARIADIC) {
      const swept = await sweep(bench, subject)
      if (swept.best !== undefined) best.set(subject, swept.best)
      if (swept.note !== undefined) notes.push(swept.note)
    }
    const rows = await roundsOf(bench, WITH_VARIADIC, (subject) =>
      addsPerSecond(bench, subject, 'bulk', best.get(subject)),
    )
    return {
      rows,
      notes,
      plot: PLOT,
      goals: [
        ratio('offerAll as a share of the floor', quotients(rows, FIGURE, none, plainRedis), 0.85),
        atLeast('offerAll as a share of one ZADD for 250', quotients(rows, FIGURE, none, plainRedisVariadic), 0.6, ''),
        atLeast("offerAll over Redisson's offers", quotients(rows, FIGURE, none, redisson), 3, ''),
        ratio("addMany over BullMQ's addBulk (both at least once)", quotients(rows, FIGURE, reliable, bullmq), 3),
        atLeast(
          "addMany over bee-queue's saveAll (both at least once)",
          quotients(rows, FIGURE, reliable, beeQueue),
          1,
          '',
        ),
      ],
    }
  },
}

export const adding: readonly Scenario[] = [
  singly('one at a time', () => []),
  singly('64 in flight', (rows) => [
    atLeast('add over bee-queue (both at least once)', quotients(rows, FIGURE, reliable, beeQueue), 1.2, ''),
    atLeast('offer (at most once) over bee-queue (at least once)', quotients(rows, FIGURE, none, beeQueue), 1.2, ''),
  ]),
  bulk,
]
