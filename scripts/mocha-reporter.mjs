// The spec reporter, which also leaves the counts in the file named by REDELAYED_TEST_COUNTS, for the last line of
// `npm test`.
import { writeFileSync } from 'node:fs'
import mocha from 'mocha'

export default class CountingReporter extends mocha.reporters.Spec {
  /** @param {Mocha.Runner} runner @param {Mocha.MochaOptions} options */
  constructor(runner, options) {
    super(runner, options)
    runner.once('end', () => {
      const { passes, failures, pending } = runner.stats ?? { passes: 0, failures: 1, pending: 0 }
      const file = process.env.REDELAYED_TEST_COUNTS
      if (file) writeFileSync(file, JSON.stringify({ passed: passes, failed: failures, skipped: pending }))
    })
  }
}
