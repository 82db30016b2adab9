import { atMost, medianOf, roundsOf, type Bench, type Scenario } from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { plainRedis } from '../subjects/plain-redis.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import type { Subject } from '../subjects/subject.js'

const none = redelayed('compact')
const SUBJECTS = [none, redelayed('redisson'), bullmq, beeQueue, redisson, asynq, plainRedis]

/** By how much the server's memory grew, with all that belongs to the keys. */
export async function bytesPerMessage(
  bench: Bench,
  subject: Subject,
  payloadBytes: number,
): Promise<Record<string, number>> {
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
    return { 'bytes per message': ((await used()) - before) / count }
  })
}

export const memory: readonly Scenario[] = [100, 1_000].map((payloadBytes) => ({
  name: `memory-${payloadBytes}-bytes`,
  description: `What one pending message of ${payloadBytes} bytes takes in Redis (growth of \`used_memory_dataset\`), mixed delays.`,
  maxRuns: payloadBytes === 100 ? 5 : 1,
  async run(bench) {
    const rows = await roundsOf(bench, SUBJECTS, (subject) => bytesPerMessage(bench, subject, payloadBytes))
    const bytes = (subject: Subject): number => medianOf(rows, subject.name, 'bytes per message')
    const rivals = [bullmq, beeQueue, redisson, asynq].map(bytes).filter((value) => !Number.isNaN(value))
    const goals = [
      ...(payloadBytes === 100
        ? [atMost("layout 'compact', bytes per pending message", bytes(none), 225, 'bytes')]
        : []),
      atMost("layout 'compact' over the best rival", bytes(none) / Math.min(...rivals), 1, ''),
    ]
    return { rows, goals, plot: { bars: 'bytes per message', unit: 'bytes' } }
  },
}))
