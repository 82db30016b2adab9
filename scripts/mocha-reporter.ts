// The spec reporter, which also leaves the counts, the titles of what failed and the seconds of each file in the file named by
// REDELAYED_TEST_COUNTS.
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import mocha from 'mocha'

export default class CountingReporter extends mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options)
    const seconds: Record<string, number> = {}
    const failures: string[] = []
    let started = performance.now()
    runner.on('suite', (suite) => {
      if (suite.parent?.root) started = performance.now()
    })
    runner.on('suite end', (suite) => {
      if (!suite.parent?.root || !suite.file) return
      const file = relative(process.cwd(), suite.file)
      seconds[file] = (seconds[file] ?? 0) + (performance.now() - started) / 1000
    })
    runner.on('fail', (test) => {
      failures.push(`${relative(process.cwd(), test.file ?? '')}: ${test.fullTitle()}`)
    })
    runner.once('end', () => {
      const { passes, failures: failed, pending } = runner.stats ?? { passes: 0, failures: 1, pending: 0 }
      const file = process.env.REDELAYED_TEST_COUNTS
      if (file) writeFileSync(file, JSON.stringify({ passed: passes, failed, skipped: pending, failures, seconds }))
    })
  }
}
