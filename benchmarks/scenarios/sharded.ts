import { build } from 'hdr-histogram-js'
import { Redis } from 'ioredis'
import { createClient } from '../../dist/index.js'
import { startCluster } from '../../test/support/redis-server.js'
import { farAway, payloadOf } from '../subjects/subject.js'
import { atMost, quotients, rounds, type Bench, type Figures, type Scenario } from '../lib/scenario.js'

const BULK = 5_000
const PER_SECOND = 1_000

interface Master {
  readonly cpuSeconds: number
  readonly bytes: number
  readonly memory: number
}

async function read(master: Redis): Promise<Master> {
  const info = await master.info('everything')
  const number = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? NaN)
  return {
    cpuSeconds: number('used_cpu_user') + number('used_cpu_sys'),
    bytes: number('total_net_input_bytes') + number('total_net_output_bytes'),
    memory: number('used_memory_dataset'),
  }
}

/** What all masters together did between two readings, and how evenly. */
function difference(before: readonly Master[], after: readonly Master[], figure: keyof Master) {
  const each = after.map((master, place) => master[figure] - (before[place]?.[figure] ?? 0))
  const sum = each.reduce((a, b) => a + b, 0)
  return { sum, largestShare: Math.max(...each) / sum }
}

async function measure(bench: Bench, masterCount: number, shards: number): Promise<Figures> {
  const cluster = await startCluster({ masters: masterCount })
  const masters = cluster.nodes.map(({ host, port }) => new Redis({ host, port }))
  // a node that has met no other does not know its own address
  await Promise.all(masters.map((master) => master.config('SET', 'cluster-announce-ip', '127.0.0.1')))
  const readAll = (): Promise<Master[]> => Promise.all(masters.map(read))
  try {
    await using client = createClient({ cluster: cluster.nodes, blockingConnections: 8 })
    const queue = client.getShardedDelayedQueue<string>('bench', { shards })
    const pending = bench.quick ? 30_000 : 300_000
    const fill = (count: number): Promise<unknown> =>
      queue.offerAll(Array.from({ length: count }, (_, i) => ({ value: payloadOf(i, 100), delay: farAway() })))
    await fill(BULK)

    const empty = await readAll()
    const adding = performance.now()
    for (let done = 0; done < pending; done += BULK) await fill(BULK)
    const added = (performance.now() - adding) / 1000
    const full = await readAll()

    const seconds = bench.quick ? 3 : 10
    const count = PER_SECOND * seconds
    const start = Date.now() + 2_000
    const due = Array.from({ length: count }, () => start + Math.floor(Math.random() * seconds * 1_000))
    await queue.offerAll(due.map((at, i) => ({ value: payloadOf(i, 100), date: new Date(at) })))
    const histogram = build({ lowestDiscernibleValue: 1, highestTrackableValue: 3_600_000 })
    const before = await readAll()
    for (let taken = 0; taken < count;) {
      for (const value of await queue.takeMany(100)) {
        histogram.recordValue(Math.max(0, Date.now() - (due[Number.parseInt(value, 10)] ?? NaN)))
        taken++
      }
    }
    const after = await readAll()
    const memory = difference(empty, full, 'memory')
    return {
      'added/s': pending / added,
      'server CPU us to add': (difference(empty, full, 'cpuSeconds').sum / pending) * 1e6,
      'bytes sent to add': difference(empty, full, 'bytes').sum / pending,
      'bytes per message': memory.sum / pending,
      'largest share of memory': memory.largestShare,
      'server CPU us to deliver': (difference(before, after, 'cpuSeconds').sum / count) * 1e6,
      'bytes sent to deliver': difference(before, after, 'bytes').sum / count,
      'p50 ms': histogram.getValueAtPercentile(50),
      'p99 ms': histogram.getValueAtPercentile(99),
    }
  } finally {
    for (const master of masters) master.disconnect()
    await cluster.stop()
  }
}

/** Masters and shards. */
const SETTINGS: readonly (readonly [masters: number, shards: number])[] = [
  [1, 1],
  [1, 12],
  [2, 12],
  [3, 12],
  [6, 12],
]

const wordsOf = (masters: number, shards: number): string =>
  `${masters} master${masters === 1 ? '' : 's'}, ${shards} shard${shards === 1 ? '' : 's'}`

export const sharded: Scenario = {
  name: 'sharded',
  promise: 'at most once',
  maxRuns: 3,
  description:
    'One logical queue on a cluster on this machine, by the number of masters and of shards: 300,000 messages of 100 bytes added in bulk by one process, then 1,000 a second delivered to one consumer that takes batches. All share the cores of one machine, so the rates say little of a real cluster; the work per message, over all masters, and how even it is say what to plan with.',
  async run(bench) {
    const rows = await rounds(
      bench,
      Object.fromEntries(
        SETTINGS.map(([masters, shards]) => [wordsOf(masters, shards), () => measure(bench, masters, shards)]),
      ),
    )
    const figure = 'server CPU us to add'
    const one = { name: wordsOf(1, 12) }
    return {
      rows,
      goals: SETTINGS.filter(([masters]) => masters > 1).map(([masters, shards]) => {
        const many = { name: wordsOf(masters, shards) }
        return atMost(`${figure} on ${masters} masters over that on one`, quotients(rows, figure, many, one), 1.25, '')
      }),
    }
  },
}
