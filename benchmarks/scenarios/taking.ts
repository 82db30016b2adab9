/** Taking at most once: a message that a consumer has been given is gone. What is handled at least once is in workers.ts. */
import {
  atLeast,
  quotients,
  ratio,
  roundsOf,
  type Bench,
  type Figures,
  type Goal,
  type Row,
  type Scenario,
} from '../lib/scenario.js'
import { onStage, type StageOptions } from '../lib/stage.js'
import { plainRedis } from '../subjects/plain-redis.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import type { Subject, TakeOptions } from '../subjects/subject.js'

const none = redelayed('compact')
const SUBJECTS = [none, redisson, plainRedis]

export interface Setting extends TakeOptions {
  /** The same for all subjects. */
  readonly count: number
}

export async function takesPerSecond(
  bench: Bench,
  subject: Subject,
  setting: Setting,
  options: StageOptions = {},
): Promise<Figures> {
  return onStage(bench, options, async (stage) => {
    const { count } = setting
    const session = await stage.open(subject)
    await session.ready()
    await session.load(count)
    const started = Date.now()
    const { at } = await session.take(count, setting)
    return { 'messages/s': count / ((at.reduce((a, b) => Math.max(a, b), started) - started) / 1000) }
  })
}

function scenario(name: string, setting: Setting, goals: (rows: readonly Row[]) => Goal[] = () => []): Scenario {
  const { consumers, batch, count } = setting
  const how = batch === 1 ? 'one at a time' : `in batches of up to ${batch} where the queue has them`
  return {
    name,
    description: `Of ${count.toLocaleString('en-US')} messages that are ready, so many taken per second: ${consumers} consumer${consumers === 1 ? '' : 's'}, ${how}. All take at most once: what is taken is gone.`,
    promise: 'at most once',
    async run(bench) {
      const one = { ...setting, count: count / (bench.quick ? 2 : 1) }
      const rows = await roundsOf(bench, SUBJECTS, (subject) => takesPerSecond(bench, subject, one))
      return { rows, goals: goals(rows), plot: { bars: 'messages/s', unit: 'messages a second' } }
    },
  }
}

export const taking: readonly Scenario[] = [
  scenario('take-1-consumer', { consumers: 1, batch: 1, count: 20_000 }),
  scenario('take-10-consumers', { consumers: 10, batch: 1, count: 100_000 }),
  scenario('take-100-consumers', { consumers: 100, batch: 1, count: 100_000 }),
  scenario('take-batches', { consumers: 4, batch: 100, count: 500_000 }, (rows) => [
    ratio('taken in batches as a share of the floor', quotients(rows, 'messages/s', none, plainRedis), 0.8),
    atLeast("taken in batches over Redisson's", quotients(rows, 'messages/s', none, redisson), 1, ''),
  ]),
]
