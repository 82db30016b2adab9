import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { build } from 'hdr-histogram-js'
import { createClient } from '../../dist/index.js'
import { atMost, medianOf, rounds, type Bench, type Scenario } from '../lib/scenario.js'

const WORKER = fileURLToPath(new URL('../lib/many-clients-worker.ts', import.meta.url))
const GAP_MS = 40

/** `processes` x `clients` clients hold one queue; sparse messages become due; how many scripts does each cost? */
async function measure(bench: Bench, processes: number, clients: number): Promise<Record<string, number>> {
  const messages = bench.quick ? 50 : 200
  const name = `bench-many-${process.pid}-${Math.random().toString(36).slice(2)}`
  const histogram = build({ lowestDiscernibleValue: 1, highestTrackableValue: 3_600_000 })
  let moved = 0
  let finished: () => void = () => undefined
  const done = new Promise<void>((resolve) => (finished = resolve))
  const workers = await Promise.all(
    Array.from({ length: processes }, async () => {
      const worker = fork(WORKER, [bench.url, name, String(clients)])
      await once(worker, 'message')
      worker.on('message', (late: number) => {
        histogram.recordValue(late)
        if (++moved === messages) finished()
      })
      return worker
    }),
  )
  await using client = createClient({ url: bench.url })
  const delayed = client.getDelayedQueue(client.getBlockingQueue<number>(name), { layout: 'compact', deliver: false })
  await delayed.offer(0, 3_600_000) // connects, and makes the script known
  await delayed.offerAll(
    Array.from({ length: messages }, (_, index) => ({ value: index, delay: 500 + index * GAP_MS })),
  )
  await bench.raw.config('RESETSTAT') // what follows are transfers only
  await done
  const stats = await bench.raw.info('commandstats')
  const scripts = Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? NaN)
  await Promise.all(workers.map(stop))
  await delayed.delete()
  await bench.raw.unlink(name)
  return {
    'scripts per due time': scripts / messages,
    'p50 ms': histogram.getValueAtPercentile(50),
    'p99 ms': histogram.getValueAtPercentile(99),
  }
}

async function stop(worker: ChildProcess): Promise<void> {
  const exited = once(worker, 'exit')
  worker.send('stop')
  await exited
}

export const manyClients: Scenario = {
  name: 'many-clients',
  promise: 'at most once',
  description: `How many transfer scripts one due time costs when many clients hold the queue, and how late the transfer is; a message every ${GAP_MS} ms.`,
  async run(bench) {
    const rows = await rounds(bench, {
      '1 client': () => measure(bench, 1, 1),
      '10 clients in 2 processes': () => measure(bench, 2, 5),
      '100 clients in 4 processes': () => measure(bench, 4, 25),
    })
    const alone = medianOf(rows, '1 client', 'p99 ms')
    const goals = [
      atMost(
        'scripts per due time, 100 clients',
        medianOf(rows, '100 clients in 4 processes', 'scripts per due time'),
        4,
        '',
      ),
      atMost('p99 with 100 clients', medianOf(rows, '100 clients in 4 processes', 'p99 ms'), alone + 3, 'ms'),
    ]
    return { rows, goals }
  },
}
