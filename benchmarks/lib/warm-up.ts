import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { plainRedis } from '../subjects/plain-redis.js'
import { redelayed } from '../subjects/redelayed.js'
import { reliable } from '../subjects/reliable.js'
import type { Bench } from './scenario.js'
import { onStage } from './stage.js'

const MESSAGES = 5_000

/** All subjects that share this process once in every way, so that the first to be measured is no colder than the last. */
export async function warmUp(bench: Pick<Bench, 'serverBin'>): Promise<void> {
  for (const subject of [redelayed('compact'), redelayed('redisson'), reliable, bullmq, beeQueue, plainRedis]) {
    await onStage(bench, {}, async (stage) => {
      const session = await stage.open(subject)
      await session.ready()
      await session.add(MESSAGES, 'bulk')
      await session.add(MESSAGES / 5, '64 in flight')
      await session.load(MESSAGES)
      await session.take(MESSAGES, { consumers: 10, batch: 1 })
    })
    if (subject === plainRedis) continue // it does not transfer
    await onStage(bench, {}, async (stage) => {
      const session = await stage.open(subject)
      await session.ready()
      const taking = session.take(MESSAGES, { consumers: 10, batch: 100 })
      await session.schedule(Array.from({ length: MESSAGES }, (_, i) => Date.now() + 500 + (i % 100)))
      await taking
    })
  }
}
