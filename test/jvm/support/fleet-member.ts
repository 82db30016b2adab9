// A Node process of the mixed fleet: offers and delivers until it is killed or its stdin ends. What it has reported is known even when it is killed in the
// next instant: `process.stdout` would keep lines in the process while the pipe is full, because its reader has no core.
import { writeSync } from 'node:fs'
import { codecs, createClient, dueOf } from '../../../src/index.js'
import type { FleetJob, ProducerEvent } from './fleet-job.js'

const { url, layout, entryFormat, queue, name, from, to, everyMs, maxDelay } = JSON.parse(
  process.argv[2] ?? '',
) as FleetJob & {
  readonly url: string
  readonly layout: 'redisson' | 'compact'
  readonly entryFormat?: 'Bc0Lc0' | 'dLc0'
}

const client = createClient({ url, entryFormat })
const delayed = client.getDelayedQueue(client.getBlockingQueue(queue, { codec: codecs.string() }), { layout: layout })
const report = (event: ProducerEvent | { done: true }): void => {
  for (let rest = Buffer.from(`${JSON.stringify(event)}\n`); rest.length > 0;)
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
}

process.stdin.resume().on('end', () => void client.shutdown())

const offers: Promise<void>[] = []
const started = performance.now()
for (let i = from; i < to; i++) {
  const ahead = (i - from) * everyMs - (performance.now() - started)
  if (ahead > 1) await new Promise((resolve) => setTimeout(resolve, ahead))
  offers.push(offer(i))
}
await Promise.all(offers)
report({ done: true })

async function offer(i: number): Promise<void> {
  const delay = Math.floor(Math.random() * maxDelay)
  report({ event: 'offering', name, i, due: Date.now() + delay })
  try {
    report({ event: 'offered', name, i, due: dueOf(await delayed.offer(`${name}:${i}`, delay)) })
  } catch (error) {
    report({ event: 'unknown', name, i, why: String(error) })
  }
}
