import { atMost, medianOf, quotients, roundsOf, type Bench, type Figures, type Scenario } from '../lib/scenario.js'
import { countSent, countWork } from '../lib/server-work.js'
import { onStage } from '../lib/stage.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import { reliable } from '../subjects/reliable.js'
import type { Subject } from '../subjects/subject.js'

const none = redelayed('compact')
const SUBJECTS = [none, redelayed('redisson'), redisson, reliable, bullmq, beeQueue]
const SCRIPTS = 'scripts us, once all are added'

async function perMessage(bench: Bench, subject: Subject): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const count = bench.quick ? 1_000 : 10_000
    const session = await stage.open(subject)
    await session.ready()
    const worked = await countWork(stage.raw)
    const taking = session.take(count, { consumers: 10, batch: 1 })
    const start = Date.now() + 1_000 + count / 10
    await session.schedule(Array.from({ length: count }, (_, index) => start + index))
    const delivered = await countWork(stage.raw)
    await taking
    const { scriptShare, seconds } = await delivered()
    const { commands, cpuMs, bytes } = await worked()
    return {
      commands: commands / count,
      'server CPU us': (cpuMs / count) * 1000,
      'bytes on the wire': bytes / count,
      [SCRIPTS]: (scriptShare * seconds * 1e6) / count,
    }
  })
}

async function idleMinute(bench: Bench, subject: Subject): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const session = await stage.open(subject)
    await session.ready()
    session.take(1, { consumers: 1, batch: 1 }).catch(() => undefined) // nothing comes
    const seconds = bench.quick ? 5 : 60
    await elapsed(2_000) // connecting is over
    const worked = await countWork(stage.raw)
    await elapsed((seconds * 1_000) / 2)
    const { commands, cpuMs } = await worked()
    const sent = await countSent(stage.raw) // by itself: each command that it shows costs the server
    await elapsed((seconds * 1_000) / 2)
    return {
      'commands sent a minute': ((await sent()) / seconds) * 2 * 60,
      'with those in scripts': (commands / seconds) * 2 * 60,
      'server CPU ms a minute': (cpuMs / seconds) * 2 * 60,
    }
  })
}

const elapsed = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const costs: readonly Scenario[] = [
  {
    name: 'cost-per-message',
    maxRuns: 3,
    description:
      'What one message costs the server from its offer until it is taken: commands (also those in scripts), CPU and bytes on the wire; 1,000 due a second, 10 consumers. The scripts are those that run while messages become due and are taken.',
    async run(bench) {
      const rows = await roundsOf(bench, SUBJECTS, (subject) => perMessage(bench, subject))
      const share = quotients(rows, SCRIPTS, none, beeQueue)
      return {
        rows,
        goals: [
          atMost("scripts per due time of 'compact' (at most once) over bee-queue's (at least once)", share, 1, ''),
        ],
      }
    },
  },
  {
    name: 'idle',
    maxRuns: 1,
    description: 'What a client with one consumer costs the server in a minute without messages.',
    async run(bench) {
      const rows = await roundsOf(bench, SUBJECTS, (subject) => idleMinute(bench, subject))
      return {
        rows,
        goals: [atMost('commands sent a minute', medianOf(rows, none.name, 'commands sent a minute'), 30, '')],
      }
    },
  },
]
