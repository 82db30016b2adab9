/** Every fault on a fleet of real processes and real servers. `npm run test:faults` runs it. */
import { appendFileSync } from 'node:fs'
import { Bench, endIdleWorkers, lineOf, problemsOf } from './bench/bench.js'
import type { Stage } from './bench/stage.js'
import { groups, type Group } from './catalogue.js'
import type { Scenario } from './scenarios/scenario.js'

const seed = Number(process.env['REDELAYED_FAULTS_SEED'])
const rounds = Number(process.env['REDELAYED_FAULTS_ROUNDS'])
const report = process.env['REDELAYED_FAULTS_REPORT']
const TIMEOUT_MS = 120_000
/** So that the rounds of one scenario differ. */
const SEED_STEP = 7_919

describe(`faults, seed ${seed}`, function () {
  this.timeout(TIMEOUT_MS)
  after(endIdleWorkers)

  for (const group of groups) {
    describe(group.title, () => {
      let stage: Stage
      before(async () => {
        stage = await group.start()
        await stage.healthy()
        // the bench's own connections, which must not look like something left behind
        await Promise.all(stage.servers.map(({ port }) => stage.to(port)))
      })
      after(() => stage?.stop())
      for (const scenario of group.scenarios) {
        for (let round = 0; round < rounds; round++) {
          const title = rounds === 1 ? scenario.name : `${scenario.name}, round ${round + 1}`
          it(title, () => play(stage, group, scenario, seed + round * SEED_STEP))
        }
      }
    })
  }
})

async function play(stage: Stage, group: Group, scenario: Scenario, ownSeed: number): Promise<void> {
  const order = (ownSeed + scenario.name.length) % 2 === 0 ? 'list' : 'none'
  const bench = new Bench({ stage, seed: ownSeed, order, ...group.bench, ...scenario.bench })
  const problems: string[] = []
  try {
    await bench.start()
    const result = await bench.round(() => scenario.fault(bench, stage))
    const line = lineOf(result)
    console.log(`        ${line}`)
    const record = { name: scenario.name, stage: group.title, order, seed: ownSeed, ...result }
    if (report !== undefined) appendFileSync(report, `${JSON.stringify(record)}\n`)
    const found = problemsOf(result, scenario.allowed ?? {})
    if (found.length > 0) problems.push(line, ...found)
    await scenario.also?.(result, bench, stage)
  } catch (error) {
    problems.push(String(error instanceof Error ? error.stack : error))
  }
  problems.push(...(await bench.stop()))
  if (problems.length === 0) return
  const again = `npm run test:faults -- --seed ${ownSeed} --only ${JSON.stringify(scenario.name)}`
  throw new Error(`${problems.join('\n')}\nagain: ${again}`)
}
