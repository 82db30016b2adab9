// `npm run test:faults`: every fault once on a fleet of real processes, with servers, sentinels and clusters of their own.
// Ends with the line `N passed, N failed`.
//
//   npm run test:faults -- --seed 7              as before; without it a new seed each time
//   npm run test:faults -- --only "SIGKILL of"   those whose names contain this, the long ones too
//   npm run test:faults -- --only "groups:" --only "batches and waits"   those whose names contain one of these
//   npm run test:faults -- --rounds 10           the long form: each fault ten times, the long ones too, and all that are planted
//   npm run test:faults -- --layout wheel        delayed queues with this layout only
//   npm run test:faults -- --report faults.ndjson   a line for each
//   npm run test:faults -- --only "sharded queue" --rounds 10 --page faults.md   those of reliable queues as a table
import { randomInt } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Origin, commandOf } from '../test/faults/pages.js'
import { pageOf, type Line } from '../test/faults/reliable/page.js'
import { runMocha, summary } from './mocha.js'
import { findServerBin } from './redis.js'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    only: { type: 'string', multiple: true },
    rounds: { type: 'string', default: '1' },
    report: { type: 'string' },
    layout: { type: 'string' },
    page: { type: 'string' },
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

const { seed, only, rounds, layout } = values
const origin = new Origin(commandOf('test:faults', seed, { only, rounds, layout }))
const own = mkdtempSync(join(tmpdir(), 'redelayed-faults-report-'))
const report = values.report === undefined ? join(own, 'faults.ndjson') : resolve(values.report)
const isLong = values.only !== undefined || Number(values.rounds) > 1
const counts = await runMocha({
  args: ['test/faults/*.faults.ts', ...(only === undefined ? [] : ['--grep', anyOf(only)])],
  env: {
    REDELAYED_FAULTS_SEED: values.seed,
    REDELAYED_FAULTS_ROUNDS: values.rounds,
    REDELAYED_FAULTS_REPORT: report,
    ...(isLong ? { REDELAYED_FAULTS_LONG: '1' } : {}),
    ...(values.layout === undefined ? {} : { REDELAYED_FAULTS_LAYOUT: values.layout }),
  },
})
if (values.page !== undefined && existsSync(report)) {
  const lines = readFileSync(report, 'utf8').trim().split('\n')
  const page = pageOf(
    lines.map((line) => JSON.parse(line) as Line),
    origin.sentence(),
  )
  writeFileSync(resolve(values.page), page)
}
rmSync(own, { recursive: true })
console.log(summary(counts))
process.exit(counts.failed > 0 ? 1 : 0)

/** A pattern for names that contain one of these texts. */
function anyOf(texts: readonly string[]): string {
  return texts.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
}
