import { atLeast, quotients, roundsOf, type Bench, type Figures, type Scenario } from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import { reliable } from '../subjects/reliable.js'
import type { Subject } from '../subjects/subject.js'
import { consumersOf } from './burst.js'

const FIGURE = 'messages/s'
export const MIXED_SUBJECTS: readonly Subject[] = [redelayed('compact'), redisson, reliable, bullmq, beeQueue, asynq]
const CALLERS = 64

/** Producing and consuming at the same time, as fast as it goes: from the first call until the last message is handled. */
export async function mixedRate(bench: Bench, subject: Subject, count: number): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const session = await stage.open(subject)
    await session.ready()
    const taking = session.take(count, consumersOf(subject))
    const started = Date.now()
    const [{ at }] = await Promise.all([taking, session.load(count, CALLERS)])
    return { [FIGURE]: count / ((at.reduce((a, b) => Math.max(a, b), started) - started) / 1_000) }
  })
}

export const mixed: Scenario = {
  name: 'mixed',
  description: `Producing and consuming at the same time, in one process: 50,000 single messages without a delay added by ${CALLERS} callers while they are taken; until the last is there. At most once: 4 consumers that take batches of 100; at least once: one worker with a concurrency of 100.`,
  async run(bench) {
    const count = bench.quick ? 10_000 : 50_000
    const rows = await roundsOf(bench, MIXED_SUBJECTS, (subject) => mixedRate(bench, subject, count))
    const over = (rival: Subject): readonly number[] => quotients(rows, FIGURE, reliable, rival)
    return {
      rows,
      plot: { bars: FIGURE, unit: 'messages a second' },
      goals: [
        atLeast('over BullMQ (both at least once)', over(bullmq), 1, ''),
        atLeast('over bee-queue (both at least once)', over(beeQueue), 1, ''),
      ],
    }
  },
}
