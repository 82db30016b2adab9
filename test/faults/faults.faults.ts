/** Every fault of delayed queues on a fleet of real processes and real servers. `npm run test:faults` runs it. */
import { Bench, endIdleWorkers, lineOf, problemsOf, type Result } from './bench/bench.js'
import type { Allowance } from './bench/books.js'
import { LAYOUTS } from '../../src/queues/delayed-options.js'
import { describeFaults } from './bench/suite.js'
import { groups, type Group } from './catalogue.js'

const layoutOf = LAYOUTS.find((layout) => layout === process.env['REDELAYED_FAULTS_LAYOUT'])

describeFaults<Bench, Result, Allowance, Group>({
  title: 'faults',
  groups,
  judge: { lineOf, problemsOf },
  prepare: (stage, group, scenario, seed) => {
    const layout = layoutOf ?? LAYOUTS[(seed + scenario.name.length) % LAYOUTS.length]!
    return { bench: new Bench({ stage, seed, layout, ...group.bench, ...scenario.bench }), record: { layout } }
  },
  end: endIdleWorkers,
})
