import { randomInt } from 'node:crypto'
import { queueKeys } from '../../dist/keys.js'
import { atLeast, atMost, medianOf, quotients, roundsOf, type Bench, type Scenario } from '../lib/scenario.js'
import { longestScript } from '../lib/server-work.js'
import { onStage, type Stage } from '../lib/stage.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import type { Subject } from '../subjects/subject.js'

const none = redelayed('compact')
const list = redelayed('redisson')
const QUEUE = 'bench'
const { timeouts, order } = queueKeys(QUEUE)

/** How many are made overdue: as many as give each some seconds of work. */
const OVERDUE = new Map([[none, 100_000]])
const FEW = 500

/**
 * Mixed delays: the overdue ones lie anywhere in the order of offers. A client that delivers is started, no consumer is, and the
 * destination is watched from the moment when the first have come.
 */
async function measure(bench: Bench, subject: Subject): Promise<Record<string, number>> {
  return onStage(bench, {}, async (stage) => {
    const pending = bench.quick ? 100_000 : 1_000_000
    const overdue = Math.min(OVERDUE.get(subject) ?? FEW, pending / 2)
    const filler = await stage.open(subject, { payloadBytes: 110 })
    await filler.fill(pending)
    await filler.close()
    const removal = subject === none ? 0 : await longestRemoval(stage)
    await makeOverdue(stage, overdue)
    await stage.raw.slowlog('RESET')
    const deliverer = await stage.open(subject)
    const ready = deliverer.ready().catch(() => undefined) // not awaited: a script that takes seconds is at work already
    const rate = await watch(stage, overdue)
    await ready
    const longest = await longestScript(stage.raw)
    return { 'transfers/s': rate, 'longest script ms': longest, 'longest LREM ms': removal }
  })
}

/** The first by due time, which stand anywhere in the order list. */
async function makeOverdue(stage: Stage, count: number): Promise<void> {
  for (let done = 0; done < count; done += 5_000) {
    const members = await stage.raw.zrangeBuffer(timeouts, String(done), String(Math.min(done + 5_000, count) - 1))
    await stage.raw.zadd(timeouts, ...members.flatMap((member, index) => [String(done + index + 1), member]))
  }
}

async function watch(stage: Stage, overdue: number): Promise<number> {
  let first: { count: number; at: number } | undefined
  for (;;) {
    const count = await stage.raw.llen(QUEUE)
    const at = performance.now()
    if (count > 0 && first === undefined) first = { count, at }
    if (first !== undefined && count >= overdue - 1) {
      if (count === first.count) throw new Error('all were moved at once: too few are overdue')
      return (count - first.count) / ((at - first.at) / 1000)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** What one removal from the order list costs, by itself: of some elements anywhere in it, each put back. */
async function longestRemoval(stage: Stage): Promise<number> {
  const length = await stage.raw.llen(order)
  let longest = 0
  for (let i = 0; i < 10; i++) {
    const element = await stage.raw.lindexBuffer(order, randomInt(length))
    if (element === null) continue
    await stage.raw.config('RESETSTAT')
    await stage.raw.lrem(order, 1, element)
    const usec = Number(/cmdstat_lrem:calls=1,usec=(\d+)/.exec(await stage.raw.info('commandstats'))?.[1])
    longest = Math.max(longest, usec / 1000)
    await stage.raw.rpush(order, element)
  }
  return longest
}

export const transferScripts: Scenario = {
  name: 'transfer-scripts',
  description:
    'How fast overdue messages of mixed delays are moved while 1,000,000 are pending, and how long the server is blocked by one script. The longest LREM is that of one element of the order list alone.',
  async run(bench) {
    const rows = await roundsOf(bench, [none, list, redisson], (subject) => measure(bench, subject))
    const rate = (subject: Subject): number => medianOf(rows, subject.name, 'transfers/s')
    const over = medianOf(rows, list.name, 'longest script ms') - medianOf(rows, list.name, 'longest LREM ms')
    return {
      rows,
      goals: [
        atLeast("layout 'compact', transfers/s", rate(none), 300_000, ''),
        atLeast(
          "layout 'compact' over Redisson's script (both at most once)",
          quotients(rows, 'transfers/s', none, redisson),
          1_000,
          '',
        ),
        atMost("layout 'redisson': longest script minus one LREM", over, 2, 'ms'),
      ],
    }
  },
}
