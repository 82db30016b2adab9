import { Redis } from 'ioredis'
import { atLeast, quotients, ratio, roundsOf, type Bench, type Figures, type Scenario } from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { redelayed } from '../subjects/redelayed.js'
import { reliable } from '../subjects/reliable.js'
import type { Subject } from '../subjects/subject.js'
import { consumersOf } from './burst.js'

const none = redelayed('compact')

/** About how many a second each schedules, so that none is due before all are there. */
const SCHEDULES: readonly (readonly [Subject, number])[] = [
  [none, 40_000],
  [reliable, 25_000],
  [bullmq, 8_000],
  [beeQueue, 15_000],
  [asynq, 10_000],
]
const LAST = 'last after s, with loading'

/** The server was down while many messages became due; how long after its start is the last one taken? */
async function measure(bench: Bench, subject: Subject): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const count = bench.quick ? 20_000 : 300_000
    const loader = await stage.open(subject)
    const [, perSecond = 8_000] = SCHEDULES.find(([one]) => one === subject) ?? []
    const due = Date.now() + 2_000 + (count / perSecond) * 1_000
    await loader.schedule(Array.from({ length: count }, (_, index) => due + (index % 1_000)))
    if (Date.now() > due)
      throw new Error('scheduling took longer than expected: some were due before the server was down')
    await loader.close()
    await stage.raw.call('SAVE')
    await stage.server.kill()
    while (Date.now() < due + 1_000) await new Promise((resolve) => setTimeout(resolve, due + 1_010 - Date.now()))
    const started = Date.now()
    const restarted = stage.server.restart() // which looks less often whether it answers
    await answering(stage.server.url)
    const answers = Date.now()
    const session = await stage.open(subject)
    const { at } = await session.take(count, consumersOf(subject))
    await restarted
    const last = at.reduce((a, b) => Math.max(a, b), 0)
    const first = at.reduce((a, b) => Math.min(a, b), Infinity)
    return {
      'answers after s': (answers - started) / 1_000,
      'first after s, with loading': (first - started) / 1_000,
      [LAST]: (last - started) / 1_000,
      'messages/s once it answers': count / ((last - answers) / 1_000),
    }
  })
}

/** A large snapshot takes its time to load. ioredis itself would look again after a second, whatever is left of it. */
async function answering(url: string): Promise<void> {
  const redis = new Redis(url, { maxRetriesPerRequest: null, retryStrategy: () => 2, enableReadyCheck: false })
  redis.on('error', () => undefined)
  const answers = (): Promise<boolean> =>
    redis.ping().then(
      () => true,
      () => false,
    )
  while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, 2))
  redis.disconnect()
}

export const recovery: Scenario = {
  name: 'recovery',
  maxRuns: 3,
  description:
    'A server that was down while 300,000 messages became due: from its start, with the time in which it loads its snapshot, until the first and the last is taken. At most once: 4 consumers that take batches of 100; at least once: one worker with a concurrency of 100.',
  async run(bench) {
    const rows = await roundsOf(
      bench,
      SCHEDULES.map(([subject]) => subject),
      (subject) => measure(bench, subject),
    )
    const times = (rival: Subject): readonly number[] => quotients(rows, LAST, rival, reliable)
    return {
      rows,
      goals: [
        ratio('times as fast as BullMQ (both at least once)', times(bullmq), 3),
        atLeast('times as fast as bee-queue (both at least once)', times(beeQueue), 3, ''),
        atLeast('times as fast as asynq (both at least once)', times(asynq), 1, ''),
      ],
      plot: { bars: LAST, unit: 's' },
    }
  },
}
