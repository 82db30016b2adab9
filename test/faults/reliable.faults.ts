/** Every fault of reliable queues on a fleet of real processes and real servers. `npm run test:faults` runs it. */
import { describeFaults, isLong, note, seed } from './bench/suite.js'
import { ReliableBench, endIdleWorkers, problemsOf, type Result } from './reliable/bench.js'
import { groups, type Group } from './reliable/catalogue.js'
import { lineOf, type Allowance } from './reliable/findings.js'
import { findPlant } from './reliable/planted.js'

/** For several rounds, and without the processes that wait for the next fault. */
const PLANT_MS = 300_000

describeFaults<ReliableBench, Result, Allowance, Group>({
  title: 'faults of reliable queues',
  groups,
  judge: { lineOf, problemsOf },
  prepare: (stage, group, scenario, seed) => ({
    bench: new ReliableBench({ stage, seed, ...group.bench, ...scenario.bench }),
  }),
  also({ plants = [], bench, scenarios, title }, stage) {
    for (const plant of plants) {
      if (plant.isShort !== true && !isLong) continue
      it(`finds a planted fault: ${plant.what}`, async function () {
        this.timeout(PLANT_MS)
        const search = await findPlant(plant, scenarios, { ...bench, stage: stage(), seed })
        const { rounds, found, problems } = search
        note({ plant: plant.what, stage: title, rounds, found })
        if (found === undefined) throw new Error(`not found in ${rounds} rounds, but:\n${problems.join('\n')}`)
        console.log(`        in round ${rounds}: ${found.split('\n', 1)[0]?.slice(0, 200)}`)
      })
    }
  },
  end: endIdleWorkers,
})
