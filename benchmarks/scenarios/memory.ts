import { codecs, createClient } from '../../dist/index.js'
import { queueKeys } from '../../dist/keys.js'
import { atMost, medianOf, rounds, type Bench, type Scenario } from '../lib/scenario.js'

async function bytesPerMessage(bench: Bench, order: 'list' | 'none', size: number): Promise<Record<string, number>> {
  const count = bench.quick ? 50_000 : 200_000
  await using client = createClient({ url: bench.url })
  const name = `bench-memory-${process.pid}-${Math.random().toString(36).slice(2)}`
  const delayed = client.getDelayedQueue(client.getBlockingQueue<Uint8Array>(name, { codec: codecs.bytes() }), {
    order,
  })
  await delayed.offerAll(
    Array.from({ length: count }, () => ({
      value: Buffer.alloc(size, 'x'),
      delay: 3_600_000 + Math.floor(Math.random() * 3_600_000),
    })),
  )
  const { timeouts, order: orderKey } = queueKeys(name)
  const bytes = (await memoryUsage(bench, timeouts)) + (await memoryUsage(bench, orderKey))
  await delayed.delete()
  return { 'bytes per message': bytes / count }
}

/** Of every element, not of a sample. */
async function memoryUsage(bench: Bench, key: string): Promise<number> {
  return Number((await bench.raw.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')) ?? 0)
}

export const memory: Scenario = {
  name: 'memory',
  description:
    'What one pending message takes in Redis (`MEMORY USAGE` of its keys, every element counted), mixed delays.',
  async run(bench) {
    const rows = await rounds(bench, {
      "order 'none', 110-byte payload": () => bytesPerMessage(bench, 'none', 110),
      "order 'list', 110-byte payload": () => bytesPerMessage(bench, 'list', 110),
      "order 'none', 1,000-byte payload": () => bytesPerMessage(bench, 'none', 1_000),
    })
    const bytes = medianOf(rows, "order 'none', 110-byte payload", 'bytes per message')
    return { rows, goals: [atMost("order 'none', bytes per pending 110-byte message", bytes, 240, 'bytes')] }
  },
}
