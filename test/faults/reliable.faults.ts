/** Every fault of reliable queues on a fleet of real processes and real servers. `npm run test:faults` runs it. */
import { describeFaults } from './bench/suite.js'
import { ReliableBench, endIdleWorkers, problemsOf, type Result } from './reliable/bench.js'
import { groups, type Group } from './reliable/catalogue.js'
import { lineOf, type Allowance } from './reliable/findings.js'

describeFaults<ReliableBench, Result, Allowance, Group>({
  title: 'faults of reliable queues',
  groups,
  judge: { lineOf, problemsOf },
  prepare: (stage, group, _, seed) => ({ bench: new ReliableBench({ stage, seed, ...group.bench }) }),
  end: endIdleWorkers,
})
