import { Redis } from 'ioredis'
import { medianOf, ratio, roundsOf, type Bench, type Scenario } from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { bullmq } from '../subjects/bullmq.js'
import { redelayed } from '../subjects/redelayed.js'
import type { Subject } from '../subjects/subject.js'

const none = redelayed('compact')

/** The server was down while many messages became due; how long after its start is the last one taken? */
async function measure(bench: Bench, subject: Subject): Promise<Record<string, number>> {
  return onStage(bench, {}, async (stage) => {
    const count = bench.quick ? 20_000 : 1_000_000
    const loader = await stage.open(subject)
    const due = Date.now() + 2_000 + count / (subject === none ? 50 : 15)
    await loader.schedule(Array.from({ length: count }, (_, index) => due + (index % 1_000)))
    await loader.close()
    await stage.raw.call('SAVE')
    await stage.server.kill()
    while (Date.now() < due + 1_000) await new Promise((resolve) => setTimeout(resolve, due + 1_010 - Date.now()))
    await stage.server.restart()
    await answering(stage.url)
    const started = Date.now()
    const session = await stage.open(subject)
    const batches = subject === none
    const { at } = await session.take(count, batches ? { consumers: 4, batch: 100 } : { consumers: 100, batch: 1 })
    const seconds = (at.reduce((a, b) => Math.max(a, b), 0) - started) / 1000
    const first = (at.reduce((a, b) => Math.min(a, b), Infinity) - started) / 1000
    return { 'first after s': first, 'last after s': seconds, 'messages/s': count / seconds }
  })
}

/** A large snapshot takes its time to load. */
async function answering(url: string): Promise<void> {
  const redis = new Redis(url, { maxRetriesPerRequest: null })
  redis.on('error', () => undefined)
  await redis.ping() // ioredis waits until the server is ready
  redis.disconnect()
}

export const recovery: Scenario = {
  name: 'recovery',
  maxRuns: 1,
  description:
    'A server that was down while 1,000,000 messages became due: from the moment it answers again until the first and the last is taken. redelayed with 4 consumers in batches, BullMQ with a concurrency of 100.',
  async run(bench) {
    const rows = await roundsOf(bench, [none, bullmq], (subject) => measure(bench, subject))
    const seconds = (subject: Subject): number => medianOf(rows, subject.name, 'last after s')
    return {
      rows,
      goals: [ratio('times as fast as BullMQ', seconds(bullmq) / seconds(none), 3)],
      plot: { bars: 'last after s', unit: 's' },
    }
  },
}
