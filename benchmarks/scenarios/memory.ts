import {
  atMost,
  medianOf,
  quotients,
  ratio,
  roundsOf,
  valuesOf,
  type Bench,
  type Figures,
  type Scenario,
} from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { plainRedis } from '../subjects/plain-redis.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import { reliable } from '../subjects/reliable.js'
import type { Subject } from '../subjects/subject.js'

const none = redelayed('compact')
const SUBJECTS = [none, redelayed('redisson'), redisson, plainRedis, reliable, bullmq, beeQueue, asynq]
const FIGURE = 'bytes per message'

/** By how much the server's memory grew, with all that belongs to the keys. */
export async function bytesPerMessage(bench: Bench, subject: Subject, payloadBytes: number): Promise<Figures> {
  const count = bench.quick ? 20_000 : 200_000
  const args = ['--slowlog-log-slower-than', '-1'] // what it keeps would count
  return onStage(bench, { args }, async (stage) => {
    const session = await stage.open(subject, { payloadBytes })
    await session.ready()
    await session.fill(10) // scripts and the like are there once
    const used = async (): Promise<number> =>
      Number(/^used_memory_dataset:(\d+)/m.exec(await stage.raw.info('memory'))?.[1])
    const before = await used()
    await session.fill(count)
    return { [FIGURE]: ((await used()) - before) / count }
  })
}

export const memory: readonly Scenario[] = [100, 1_000].map((payloadBytes) => ({
  name: `memory-${payloadBytes}-bytes`,
  description: `What one pending message of ${payloadBytes} bytes takes in Redis (growth of \`used_memory_dataset\`), mixed delays.`,
  maxRuns: 3,
  async run(bench) {
    const rows = await roundsOf(bench, SUBJECTS, (subject) => bytesPerMessage(bench, subject, payloadBytes))
    const bytes = (subject: Subject): readonly number[] => valuesOf(rows, subject.name, FIGURE)
    const leanest = [bullmq, beeQueue, asynq].reduce((best, rival) =>
      medianOf(rows, rival.name, FIGURE) < medianOf(rows, best.name, FIGURE) ? rival : best,
    )
    const goals = [
      ...(payloadBytes === 100
        ? [
            atMost("layout 'compact', bytes per pending message", bytes(none), 225, 'bytes'),
            atMost('reliable queue, bytes per pending message', bytes(reliable), 330, 'bytes'),
            ratio(
              "BullMQ's over the reliable queue's (both at least once)",
              quotients(rows, FIGURE, bullmq, reliable),
              2,
            ),
          ]
        : []),
      atMost("layout 'compact' over Redisson's (both at most once)", quotients(rows, FIGURE, none, redisson), 1, ''),
      atMost(
        `reliable queue over the leanest rival's, ${leanest.name} (both at least once)`,
        quotients(rows, FIGURE, reliable, leanest),
        1,
        '',
      ),
    ]
    return { rows, goals, plot: { bars: FIGURE, unit: 'bytes' } }
  },
}))
