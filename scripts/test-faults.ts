// `npm run test:faults`: every fault once on a fleet of real processes, with servers, sentinels and clusters of their own.
// Ends with the line `N passed, N failed`.
//
//   npm run test:faults -- --seed 7              as before; without it a new seed each time
//   npm run test:faults -- --only "SIGKILL of"   those whose names contain this
//   npm run test:faults -- --rounds 10           the long form: each fault ten times
//   npm run test:faults -- --report faults.ndjson   a line for each
import { randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { runMocha, summary } from './mocha.js'
import { findServerBin } from './redis.js'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    only: { type: 'string' },
    rounds: { type: 'string', default: '1' },
    report: { type: 'string' },
  },
})
for (const name of ['seed', 'rounds'] as const) {
  if (/^\d{1,10}$/.test(values[name])) continue
  console.error(`--${name} takes a whole number, not ${JSON.stringify(values[name])}`)
  process.exit(2)
}
if (!findServerBin()) {
  console.error('\n*** SKIPPED: the faults need redis-server or valkey-server on PATH.\n*** No fault was tried.\n')
  console.log(process.env.CI ? '0 passed, 1 failed' : '0 passed, 0 failed, all skipped')
  process.exit(process.env.CI ? 1 : 0)
}

const counts = await runMocha({
  args: ['test/faults/*.faults.ts', ...(values.only === undefined ? [] : ['--fgrep', values.only])],
  env: {
    REDELAYED_FAULTS_SEED: values.seed,
    REDELAYED_FAULTS_ROUNDS: values.rounds,
    ...(values.report === undefined ? {} : { REDELAYED_FAULTS_REPORT: resolve(values.report) }),
  },
})
console.log(summary(counts))
process.exit(counts.failed > 0 ? 1 : 0)
