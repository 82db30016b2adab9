/** Every fault on a fleet of real processes and real servers. `npm run test:faults` runs it. */
import { appendFileSync } from 'node:fs'
import { Bench, endIdleWorkers, lineOf, problemsOf } from './bench/bench.js'
import { withDate } from './bench/clock.js'
import { cluster, sentinel, standalone, type Stage } from './bench/stage.js'
import { acl, dns, tls, withAcl, withName, withTls } from './scenarios/access.js'
import { longDelays, redisJumps } from './scenarios/clocks.js'
import { data } from './scenarios/data.js'
import { clusters, sentinels } from './scenarios/failover.js'
import { network } from './scenarios/network.js'
import { processes } from './scenarios/processes.js'
import type { Scenario } from './scenarios/scenario.js'
import { refusals, server } from './scenarios/server.js'

const seed = Number(process.env.REDELAYED_FAULTS_SEED ?? Math.floor(Math.random() * 2 ** 31))
const rounds = Number(process.env.REDELAYED_FAULTS_ROUNDS ?? 1)
const report = process.env.REDELAYED_FAULTS_REPORT

describe(`faults, seed ${seed}`, function () {
  this.timeout(120_000)
  after(endIdleWorkers)

  on('standalone server, every write on disk', standalone, [...processes, ...server, ...refusals, ...network, ...data])
  on('a user with few rights', withAcl, acl)
  on('TLS', withTls, tls)
  on('a host name', withName, dns)
  on('the date of Redis', withDate, [redisJumps])
  on('months', withDate, [longDelays])
  on('sentinels, a master and two replicas', sentinel, sentinels)
  on('a cluster of three masters and three replicas', cluster, clusters)

  /** The scenarios of one stage, which is started for them. */
  function on<S extends Stage>(title: string, start: () => Promise<S>, scenarios: readonly Scenario<S>[]): void {
    describe(title, () => {
      let stage: S
      before(async () => {
        stage = await start()
        await stage.healthy()
        await stage.raw()
      })
      after(() => stage?.stop())
      for (const scenario of scenarios) {
        for (let round = 0; round < rounds; round++) {
          it(rounds === 1 ? scenario.name : `${scenario.name}, round ${round + 1}`, () => play(stage, scenario, round))
        }
      }
    })
  }
})

async function play<S extends Stage>(stage: S, scenario: Scenario<S>, round: number): Promise<void> {
  const own = seed + round * 7_919
  const bench = new Bench({
    stage,
    seed: own,
    order: (own + scenario.name.length) % 2 === 0 ? 'list' : 'none',
    ...scenario.bench,
  })
  let problems: string[] = []
  try {
    await bench.start()
    const result = await bench.round(() => scenario.fault(bench, stage))
    const line = lineOf(result)
    console.log(`        ${line}`)
    if (report !== undefined)
      appendFileSync(
        report,
        `${JSON.stringify({ name: scenario.name, stage: stage.name, order: bench.order, seed: own, ...result })}\n`,
      )
    problems = problemsOf(result, scenario.allowed ?? {})
    if (problems.length > 0) problems.unshift(line)
    await scenario.also?.(result, bench, stage)
  } catch (error) {
    problems.push(String(error instanceof Error ? error.stack : error))
  }
  problems.push(...(await bench.stop()))
  if (problems.length > 0) {
    throw new Error(
      `${problems.join('\n')}\nagain: npm run test:faults -- --seed ${seed} --only ${JSON.stringify(scenario.name)}`,
    )
  }
}
