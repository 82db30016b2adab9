/** What changes around a queue: payloads, persistence, TLS, the network, and the server's version. */
import { Redis } from 'ioredis'
import { median, roundsOf, type Bench, type Figures, type Scenario } from '../lib/scenario.js'
import { onStage, PAYLOAD_BYTES, type Stage, type StageOptions } from '../lib/stage.js'
import { programOf, SERVER_PACKAGES } from '../../scripts/server-packages.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import { reliable } from '../subjects/reliable.js'
import { asynq } from '../subjects/asynq.js'
import { bullmq } from '../subjects/bullmq.js'
import type { Session, Subject } from '../subjects/subject.js'
import { consumersOf } from './burst.js'

const SUBJECTS = [redelayed('compact'), redisson, reliable, bullmq, beeQueue, asynq]
const MOST_BYTES = 100e6
/** A call with many of them is no larger than this. */
const BULK_BYTES = 1e6

interface Surroundings extends StageOptions {
  /** One after the other takes a round trip each: of few, where that is long. */
  readonly isSlow?: boolean
}

async function measure(bench: Bench, subject: Subject, surroundings: Surroundings): Promise<Figures> {
  const { payloadBytes = PAYLOAD_BYTES, isSlow = false } = surroundings
  return onStage(bench, surroundings, async (stage) => {
    const many = Math.min(20_000, MOST_BYTES / payloadBytes) / (bench.quick ? 5 : 1)
    const [single, inFlight] = isSlow ? [many / 100, many / 4] : [many / 10, many / 2]
    const bulk =
      payloadBytes > PAYLOAD_BYTES ? { bulk: { size: Math.max(1, BULK_BYTES / payloadBytes), inFlight: 4 } } : {}
    const session = await stage.open(subject, bulk)
    await session.ready()
    await session.add(single / 10, 'one at a time')
    const seconds = {
      single: await session.add(single, 'one at a time'),
      inFlight: await session.add(inFlight, '64 in flight'),
      many: await session.add(many, 'bulk'),
    }
    return {
      'PING ms': await roundTrip(stage),
      'added/s, one at a time': single / seconds.single,
      'added/s, 64 in flight': inFlight / seconds.inFlight,
      'added/s, in bulk': many / seconds.many,
      'taken/s': await takes(session, many, subject),
    }
  })
}

async function takes(session: Session, count: number, subject: Subject): Promise<number> {
  await session.load(count)
  const started = Date.now()
  const { at } = await session.take(count, consumersOf(subject))
  return count / ((at.reduce((a, b) => Math.max(a, b), started) - started) / 1_000)
}

/** What the network costs at least, on the way of the subject. */
async function roundTrip({ url, ca }: Stage): Promise<number> {
  const redis = new Redis(url, ca === undefined ? {} : { tls: { ca } })
  const took: number[] = []
  for (let i = 0; i < 20; i++) {
    const started = performance.now()
    await redis.ping()
    took.push(performance.now() - started)
  }
  redis.disconnect()
  return median(took.slice(1))
}

function scenario(name: string, where: string, options: Surroundings | (() => Surroundings | Problem)): Scenario {
  return {
    name,
    maxRuns: 3,
    description: `${where} Messages added per second (with a delay of an hour) and, of as many that are ready, taken per second: at most once by 4 consumers in batches of 100, at least once by a worker with a concurrency of 100. PING is a round trip on the same way.`,
    async run(bench) {
      const given = typeof options === 'function' ? options() : options
      if ('problem' in given) return { rows: [], notes: [`Not measured: ${given.problem}`] }
      const rows = await roundsOf(bench, SUBJECTS, (subject) => measure(bench, subject, given))
      return { rows, plot: { bars: 'taken/s', unit: 'messages taken a second' } }
    },
  }
}

const AOF = ['--appendonly', 'yes', '--appendfsync']

interface Problem {
  readonly problem: string
}

export const surroundings: readonly Scenario[] = [
  ...[100, 1_000, 10_000, 100_000].map((payloadBytes) =>
    scenario(
      `payload-${payloadBytes}-bytes`,
      `Payloads of ${payloadBytes.toLocaleString('en-US')} bytes; no more than 1 MB of them with one call.`,
      { payloadBytes },
    ),
  ),
  scenario('aof-everysec', 'The server appends to its file and syncs it every second.', { args: [...AOF, 'everysec'] }),
  scenario('aof-always', 'The server appends to its file and syncs it before each reply.', {
    args: [...AOF, 'always'],
  }),
  scenario('tls', 'Connections by TLS.', { tls: true }),
  ...[1, 5].map((latencyMs) =>
    scenario(
      `network-${latencyMs}-ms`,
      `A proxy in a process of its own holds every piece back for ${latencyMs} ms each way.`,
      { latencyMs, isSlow: true },
    ),
  ),
  ...SERVER_PACKAGES.filter(({ isMeasured }) => isMeasured).map((one) => {
    const name = `server-${one.name.toLowerCase().replaceAll(' ', '-')}`
    return scenario(name, `On ${one.name} instead of the server of the run.`, () => {
      const found = programOf(one)
      return 'problem' in found ? found : { bin: found.path }
    })
  }),
]
