import { atLeast, quotients, ratio, roundsOf, type Bench, type Figures, type Scenario } from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import { reliable } from '../subjects/reliable.js'
import type { Subject, TakeOptions } from '../subjects/subject.js'

const none = redelayed('compact')
const SUBJECTS = [none, redelayed('redisson'), redisson, reliable, bullmq, beeQueue, asynq]
const FIGURE = 'ms until the last'

/** Consumers as each promise has them: takes of batches, or a worker. */
export function consumersOf({ promise }: Subject): TakeOptions {
  return promise === 'at least once' ? { consumers: 100, batch: 1 } : { consumers: 4, batch: 100 }
}

async function measure(bench: Bench, subject: Subject, count: number): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const session = await stage.open(subject)
    await session.ready()
    const taking = session.take(count, consumersOf(subject))
    // asynq keeps whole seconds, cut off
    const due = Math.ceil((Date.now() + 2_000 + count / 10) / 1_000) * 1_000
    await session.schedule(Array.from({ length: count }, () => due))
    const { at } = await taking
    return { [FIGURE]: at.reduce((a, b) => Math.max(a, b), 0) - due }
  })
}

export const burst: Scenario = {
  name: 'burst-until-taken',
  description:
    '50,000 messages due in the same millisecond: from the due time until the last is taken. At most once: 4 consumers that take batches of 100; at least once: one worker with a concurrency of 100, which acknowledges each.',
  async run(bench) {
    const count = bench.quick ? 10_000 : 50_000
    const rows = await roundsOf(bench, SUBJECTS, (subject) => measure(bench, subject, count))
    const times = (rival: Subject, ours: Subject): readonly number[] => quotients(rows, FIGURE, rival, ours)
    return {
      rows,
      goals: [
        atLeast('times as fast as Redisson (both at most once)', times(redisson, none), 5, ''),
        ratio('times as fast as BullMQ (both at least once)', times(bullmq, reliable), 4),
        atLeast('times as fast as bee-queue (both at least once)', times(beeQueue, reliable), 4, ''),
        atLeast('times as fast as asynq (both at least once)', times(asynq, reliable), 1, ''),
      ],
      plot: { bars: FIGURE, unit: 'ms' },
    }
  },
}
