/** Handling at least once: every subject keeps a message until its handler has ended, and acknowledges it. */
import { atLeast, quotients, ratio, roundsOf, type Goal, type Row, type Scenario } from '../lib/scenario.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { reliable } from '../subjects/reliable.js'
import type { Handler } from '../subjects/subject.js'
import { takesPerSecond } from './taking.js'

const SUBJECTS = [reliable, bullmq, beeQueue, asynq]
const HANDLERS: Readonly<Record<Handler, string>> = {
  nothing: 'an async handler that only notes the message',
  timer: 'an async handler that waits for a timer of one millisecond',
}

function scenario(
  consumers: number,
  handler: Handler,
  count: number,
  goals: (rows: readonly Row[]) => Goal[] = () => [],
): Scenario {
  return {
    name: `worker-${consumers}${handler === 'timer' ? '-timer' : ''}`,
    description: `Of ${count.toLocaleString('en-US')} messages that are ready, so many handled per second by one worker with a concurrency of ${consumers} and ${HANDLERS[handler]}.`,
    promise: 'at least once',
    async run(bench) {
      const setting = { consumers, handler, batch: 1, count: count / (bench.quick ? 2 : 1) }
      const rows = await roundsOf(bench, SUBJECTS, (subject) => takesPerSecond(bench, subject, setting))
      return { rows, goals: goals(rows), plot: { bars: 'messages/s', unit: 'messages a second' } }
    },
  }
}

const over = (rows: readonly Row[], rival: typeof bullmq): readonly number[] =>
  quotients(rows, 'messages/s', reliable, rival)

export const workers: readonly Scenario[] = [
  scenario(1, 'nothing', 10_000),
  scenario(10, 'nothing', 50_000),
  scenario(100, 'nothing', 100_000, (rows) => [
    ratio("handled over BullMQ's", over(rows, bullmq), 6),
    atLeast("handled over bee-queue's", over(rows, beeQueue), 5, ''),
    atLeast("handled over asynq's", over(rows, asynq), 1, ''),
  ]),
  scenario(1, 'timer', 2_000),
  scenario(100, 'timer', 100_000, (rows) => [
    atLeast("handled over BullMQ's", over(rows, bullmq), 1, ''),
    atLeast("handled over bee-queue's", over(rows, beeQueue), 1, ''),
  ]),
]
