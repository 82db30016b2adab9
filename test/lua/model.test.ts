import { expect } from 'chai'
import fc from 'fast-check'
import * as generated from '../../src/store/scripts/generated.js'
import { run } from '../../src/store/run.js'
import { transfer } from '../../src/store/scripts.js'
import { isLongForm, rounds } from '../support/long-form.js'
import { Keyspace } from './model/keyspace.js'
import type { World } from './model/operation.js'
import { operations } from './model/operations.js'
import { agree, contentsOf, loadScripts, play } from './model/play.js'
import { strangers } from './model/strangers.js'
import { ordered, useRedis } from './support.js'
import { exportsOf } from '../support/exports.js'

/**
 * Random calls of every script on two queues, compared with a model after each step: the reply, what is in every key
 * and when it expires, and what was published. A failure prints the seed and the shortest sequence that fast-check found.
 */
/** The scripts of the model; those of the reliable queue and of the wheel (wheel.test.ts) have a model of their own. */
const modelled = Object.fromEntries(
  Object.entries(exportsOf(generated)).filter(([name]) => !name.startsWith('reliable') && !name.startsWith('wheel')),
)

describe('all scripts together', () => {
  const rig = useRedis()
  before(() => loadScripts(rig.redis))

  it('every script has an operation', () => {
    expect(Object.keys(operations).sort()).to.deep.equal(Object.keys(modelled).sort())
  })

  const calls = Object.values(operations).map(({ weight, drafts }) => ({ weight, arbitrary: drafts }))

  for (const layout of ['redisson', 'compact', 'mixed'] as const) {
    for (const poison of [false, true]) {
      it(`behave as their model with ${layout === 'mixed' ? 'both kinds of entries' : `layout '${layout}'`}${poison ? ' and poison' : ''}`, async () => {
        const queues = [await rig.queue(), await rig.queue()] as const
        const [one, two] = [queues[0].keys, queues[1].keys]
        const called = new Map<string, number>()
        const draft = fc.oneof(...calls, { weight: poison ? 8 : 2, arbitrary: strangers(poison) })
        const move = fc.record({ draft, swapped: fc.nat({ max: 5 }).map((n) => n === 0) })
        await fc.assert(
          fc.asyncProperty(fc.array(move, { maxLength: 60, size: 'max' }), async (moves) => {
            for (const queue of queues) await queue.write({})
            const world = { redis: new Keyspace(), layout, now: 1_000_000 }
            for (const { draft, swapped } of moves) {
              const [queue, other] = swapped ? [two, one] : [one, two]
              const turn: World = { ...world, queue, other }
              const step = draft(turn)
              world.now = turn.now
              if (step === null) continue
              called.set(step.name, (called.get(step.name) ?? 0) + 1)
              const [outcome] = await play(rig.redis, [{ steps: [step], queues: [one, two] }])
              const { replies, contents } = outcome!
              const published = await Promise.all(queues.map((each) => each.published()))
              agree(
                step.name,
                { reply: replies[0], contents, published },
                {
                  reply: step.apply(world.redis, replies[0]),
                  contents: contentsOf(world.redis, [one, two]),
                  published: [one, two].map(({ channel }) => world.redis.takePublished(channel)),
                },
              )
            }
          }),
          { numRuns: rounds(100) },
        )
        if (!isLongForm) return
        // a script that the draws do not reach would never be compared
        for (const { name } of Object.values(modelled)) expect(called.get(name), name).to.be.at.least(5)
      }).timeout(60_000)
    }
  }

  it('deliver the same whether the order list allows the fast path or not', async () => {
    const due = fc.integer({ min: 0, max: 30 })
    await fc.assert(
      fc.asyncProperty(fc.array(due, { minLength: 1, maxLength: 60 }), fc.boolean(), async (dues, shuffled) => {
        const entries = dues.map((_, n) => ordered(String(n).padStart(4, '0'), `p${n}`))
        const byDue = entries.map((entry, n) => [entry, dues[n]!] as const).sort((x, y) => x[1] - y[1])
        const fast = await rig.queue({ timeouts: byDue, order: byDue.map(([entry]) => entry) })
        const slow = await rig.queue({ timeouts: byDue, order: shuffled ? entries : entries.toReversed() })
        const done = await Promise.all(
          [fast, slow].map(async (queue) => {
            const channel = queue.keys.channel
            const args = {
              channel,
              nowMs: 20,
              budgetUs: 1_000_000,
              limit: 1000,
              client: 'A',
              leaseMs: 1,
              leastLeaseMs: 1,
              subscribersPerLeaseMs: 1,
              idleMs: 1,
              announce: false,
              renew: false,
              bytes: 2 * 2 ** 20,
              largeHead: '',
              largeFirst: '',
              buckets: true,
            }
            const { workedUs, ...reply } = await run(rig.sender, transfer, queue.keys, args)
            expect(workedUs).to.be.at.least(0)
            const { order, ...rest } = await queue.read()
            return { reply, ...rest, order: [...order].sort(), published: await queue.published() }
          }),
        )
        expect(done[1]).to.deep.equal(done[0])
      }),
      { numRuns: rounds(60) },
    )
  }).timeout(60_000)
})
