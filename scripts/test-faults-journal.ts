// `npm run test:faults:journal`: the journal of the workspace redelayed-server under faults of Redis, of SQL and of its own processes, with
// servers of its own. Ends with the line `N passed, N failed`.
//
//   npm run test:faults:journal -- --seed 7                 as before; without it a new seed each time
//   npm run test:faults:journal -- --short                  as CI does it: the same seed each time, and the planted faults that are found soon
//   npm run test:faults:journal -- --faults 100 --plants all  the long form
//   npm run test:faults:journal -- --only "comes back"      faults and planted faults whose names contain this
//   npm run test:faults:journal -- --database sqlite        or postgres, mariadb: only this one
//   npm run test:faults:journal -- --jobs 1                 so many databases at a time
//   npm run test:faults:journal -- --report faults.md       the results as a table
import { randomInt } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureInstalled, root } from './ensure-installed.mjs'
import type { Plant } from '../test/faults/journal/plants.js'
import type { Outcome, Search } from '../test/faults/journal/run.js'
import { findServerBin } from './redis.js'

ensureInstalled(root, { workspaces: true })
const { FAULTS } = await import('../test/faults/journal/faults.js')
const { PLANTS } = await import('../test/faults/journal/plants.js')
const { findPlant, inParallel, lanesOf, planned } = await import('../test/faults/journal/run.js')
const { report } = await import('../test/faults/journal/report.js')
const { Origin, commandOf } = await import('../test/faults/pages.js')
const { buildProgram } = await import('../test/faults/journal/program.js')
const { isThere } = await import('../test/faults/journal/sql.js')

/** Of those that are planted, without an option. */
const USUAL_PLANTS = 3
/** So that CI judges the code, and not the moment of a fault. */
const SHORT_SEED = 16
const KINDS = ['sqlite', 'postgres', 'mariadb'] as const

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    short: { type: 'boolean', default: false },
    faults: { type: 'string' },
    plants: { type: 'string', default: String(USUAL_PLANTS) },
    only: { type: 'string', default: '' },
    database: { type: 'string' },
    jobs: { type: 'string', default: '3' },
    report: { type: 'string' },
  },
})
const seed = number('seed', values.seed ?? String(values.short ? SHORT_SEED : randomInt(2 ** 31)))
const kinds = KINDS.filter((kind) => kind === (values.database ?? kind) && isThere(kind))
const missing = KINDS.filter((kind) => kind === (values.database ?? kind) && !isThere(kind))
if (!findServerBin() || kinds.length === 0 || (process.env['CI'] && missing.length > 0)) {
  console.error(
    `\n*** SKIPPED: these faults need redis-server, and ${missing.join(' and ')} installed.\n*** No fault was tried.\n`,
  )
  console.log(process.env['CI'] ? '0 passed, 1 failed' : '0 passed, 0 failed, all skipped')
  process.exit(process.env['CI'] ? 1 : 0)
}
if (missing.length > 0) console.log(`Without ${missing.join(' and ')}, which are not installed.`)

// so that the servers and the file systems go with this process
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
const started = performance.now()
const say = (line: string): void =>
  console.log(`${String(Math.round((performance.now() - started) / 1_000)).padStart(5)} s  ${line}`)
const jobs = number('jobs', values.jobs)
const { seed: _, report: path, ...options } = values
const origin = new Origin(commandOf('test:faults:journal', seed, options))
const isLong = values.faults !== undefined
const chosen = FAULTS.filter(({ name }) => name.includes(values.only)).filter(
  (fault) => isLong || fault.isLong !== true,
)
const count = values.faults === undefined ? chosen.length : number('faults', values.faults)
console.log(`faults of the journal, seed ${seed}`)
const outcomes: Outcome[] = []
const searches: (Search & { readonly plant: Plant })[] = []
const named = PLANTS.filter(({ on, what }) => kinds.includes(on) && what.includes(values.only)).filter(
  ({ isShort }) => isShort === true || !values.short,
)
const isAll = values.short || values.plants === 'all'
const limit = isAll ? named.length : Math.min(named.length, number('plants', values.plants))
// all in their order: the one that takes longest is not the last there
const first = isAll ? 0 : seed
const some = Array.from({ length: limit }, (_, i) => named[(first + i) % named.length]).filter(
  (plant) => plant !== undefined,
)
const steps = chosen.length > 0 && count > 0 ? planned(seed, count, kinds, chosen) : []
const program = await buildProgram()
const onOutcome = (outcome: Outcome): void => {
  outcomes.push(outcome)
  writeReport()
}
// together, so that no job waits for the last fault before it looks for what is planted
const lanes = lanesOf(program, steps, { seed, say, onOutcome })
try {
  await inParallel([...lanes, ...some.map((plant) => () => search(plant))], jobs)
} finally {
  program.remove()
}

const failed =
  outcomes.filter(({ problems }) => problems.length > 0).length +
  searches.filter(({ found }) => found.length === 0).length
const passed = outcomes.length + searches.length - failed
console.log(`again: npm run test:faults:journal -- --seed ${seed}${values.short ? ' --short' : ''}`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)

/** Looks for what is planted, and says how it was found. */
async function search(plant: Plant): Promise<void> {
  const ended = await findPlant(plant, seed).catch((error: unknown) => ({
    found: [],
    rounds: 1,
    example: String(error instanceof Error ? error.stack : error),
  }))
  const { found, rounds, example } = ended
  if (rounds === 0) return void say(`- left out, only root can make a disk that is full: ${plant.what}`)
  const how = found.length > 0 ? `found (${found.join(', ')})` : 'FAILED, not found'
  say(`${how} in round ${rounds}: ${plant.what}: ${example}`)
  searches.push({ plant, ...ended })
  writeReport()
}

/** After each fault, so that a run which is stopped has said what it found. */
function writeReport(): void {
  if (path === undefined) return
  writeFileSync(resolve(path), report({ origin, planned: count, outcomes, searches }))
}

function number(what: string, text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text)
  console.error(`--${what} takes a whole number, not ${JSON.stringify(text)}`)
  process.exit(2)
}
