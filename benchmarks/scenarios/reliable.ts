/** The reliable queue and its worker by the measures of the other scenarios, against rivals that promise the same. */
import {
  atLeast,
  atMost,
  inNoRound,
  medianOf,
  ratio,
  roundsOf,
  type Goal,
  type Row,
  type Scenario,
} from '../lib/scenario.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { redelayed } from '../subjects/redelayed.js'
import { reliable } from '../subjects/reliable.js'
import { timerFloor } from '../subjects/timer-floor.js'
import { addsPerSecond } from './adding.js'
import { LATE, hz10, p99, scenario as lateness, sparseLoad, uniformLoad } from './lateness.js'
import { bytesPerMessage } from './memory.js'
import { takesPerSecond } from './taking.js'

const RIVALS = [bullmq, beeQueue]
/** What the promise costs is seen beside the queue that does not make it. */
const WITH_DELAYED = [reliable, redelayed('compact'), ...RIVALS]
const WITH_FLOOR = [reliable, ...RIVALS, timerFloor]

const timesBullmq = (what: string, rows: readonly Row[], limit: number): Goal => {
  const rate = (name: string): number => medianOf(rows, name, 'messages/s')
  return ratio(what, rate(reliable.name) / rate(bullmq.name), limit)
}

function exact(rows: readonly Row[]): Goal[] {
  return [
    ...[LATE, 'early', 'doubled'].map((figure) => inNoRound(rows, reliable.name, figure)),
    ...RIVALS.map((rival) =>
      atLeast(`p99 of ${rival.name} minus ours`, p99(rows, rival) - p99(rows, reliable), 0, 'ms'),
    ),
  ]
}

export const reliableQueue: readonly Scenario[] = [
  {
    name: 'reliable-add-bulk',
    description: 'Messages of 100 bytes with a delay of an hour added per second, in bulk.',
    maxRuns: 3,
    async run(bench) {
      const rows = await roundsOf(bench, WITH_DELAYED, (subject) => addsPerSecond(bench, subject, 'bulk'))
      return {
        rows,
        goals: [timesBullmq("addMany over BullMQ's addBulk", rows, 3)],
        plot: { bars: 'messages/s', unit: 'messages a second' },
      }
    },
  },
  {
    name: 'reliable-worker',
    description:
      'Of 100,000 messages that are ready, so many handled per second by a worker with a concurrency of 100 whose handler only notes the message. All keep a message until it is acknowledged.',
    maxRuns: 3,
    async run(bench) {
      const setting = { consumers: 100, batch: 1, count: bench.quick ? 20_000 : 100_000 }
      const rows = await roundsOf(bench, [reliable, ...RIVALS], (subject) => takesPerSecond(bench, subject, setting))
      return {
        rows,
        goals: [timesBullmq("handled over BullMQ's", rows, 4)],
        plot: { bars: 'messages/s', unit: 'messages a second' },
      }
    },
  },
  lateness(
    'reliable-lateness',
    `One message about every 90 ms, handled by workers. ${hz10}`,
    WITH_FLOOR,
    (bench) => ({ load: sparseLoad(bench.quick ? 30 : 100) }),
    (rows) => [atMost(`${reliable.name}: p99`, p99(rows, reliable), 3, 'ms'), ...exact(rows)],
    3,
  ),
  lateness(
    'reliable-lateness-uniform',
    `1,000 messages a second at random moments, handled by workers. ${hz10}`,
    WITH_FLOOR,
    (bench) => ({ load: uniformLoad(1_000, bench.quick ? 2 : 5) }),
    exact,
    3,
  ),
  {
    name: 'reliable-memory',
    description:
      'What one pending message of 100 bytes takes in Redis (growth of `used_memory_dataset`), mixed delays, ids drawn by the queue.',
    maxRuns: 1,
    async run(bench) {
      const rows = await roundsOf(bench, WITH_DELAYED, (subject) => bytesPerMessage(bench, subject, 100))
      const bytes = (name: string): number => medianOf(rows, name, 'bytes per message')
      return {
        rows,
        goals: [
          atMost('bytes per pending message', bytes(reliable.name), 330, 'bytes'),
          atMost(
            'over the best rival',
            bytes(reliable.name) / Math.min(...RIVALS.map(({ name }) => bytes(name))),
            1,
            '',
          ),
        ],
        plot: { bars: 'bytes per message', unit: 'bytes' },
      }
    },
  },
]
