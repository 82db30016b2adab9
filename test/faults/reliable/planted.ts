import { fileURLToPath, pathToFileURL } from 'node:url'
import { plant as planted } from '../../simulation/plant.js'
import { bundle } from '../bench/program.js'
import type { Stage } from '../bench/stage.js'
import { SEED_STEP } from '../bench/suite.js'
import { WorkerPool } from '../bench/worker-pool.js'
import { ReliableBench, problemsOf, type ReliableParams } from './bench.js'
import type { Job } from './job.js'
import { reliableSources, type Plant } from './plants.js'
import { scenarioOf, type ReliableScenario } from './scenarios.js'

/** One that needs a certain moment gets so many rounds. */
const ROUNDS = 3
const STUCK_MS = 15_000
const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))

/** Whether a planted fault was found, and how. */
export interface Search {
  readonly rounds: number
  readonly found: string | undefined
  /** The findings of the last round. */
  readonly problems: readonly string[]
}

/** Plays the scenario that shows a fault with processes that have it, until it is found. */
export async function findPlant(
  plant: Plant,
  scenarios: readonly ReliableScenario[],
  { stage, seed, ...params }: Omit<ReliableParams, 'stage'> & { readonly stage: Stage },
): Promise<Search> {
  const program = await bundle('reliable-faults', { worker: WORKER }, planted(plant, reliableSources()))
  const processes = new WorkerPool<Job>(pathToFileURL(program.paths.worker))
  const scenario = scenarioOf(scenarios, plant.shownBy)
  try {
    for (let rounds = 1; ; rounds++) {
      await stage.healthy()
      const own = seed + (rounds - 1) * SEED_STEP
      const drainMs = plant.isStuck === true ? STUCK_MS : undefined
      const bench = new ReliableBench({ ...params, ...scenario.bench, stage, seed: own, processes, drainMs })
      let problems: string[]
      try {
        await bench.start()
        const result = await bench.round(() => scenario.fault(bench, stage))
        problems = problemsOf(result, scenario.allowed ?? {})
      } catch (error) {
        problems = [String(error)]
      }
      problems.push(...(await bench.stop()))
      const found = problems.find((problem) => plant.foundAs.test(problem))
      if (found !== undefined || rounds === ROUNDS) return { rounds, found, problems }
    }
  } finally {
    await processes.end()
    program.remove()
  }
}
