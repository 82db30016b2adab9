// `npm run test:faults:http`: two instances of redelayed-server behind nginx, with a journal in PostgreSQL or MariaDB, or one with SQLite, and a Redis of
// their own, or one that sentinels replace, under faults; clients push, receive, acknowledge and remove over HTTP, and a receiver takes webhooks. Ends with the
// line `N passed, N failed`.
//
//   npm run test:faults:http -- --seed 7               as before; without it a new seed each time
//   npm run test:faults:http -- --short                as CI does it: the same seed each time, seven faults and a planted one; a message may be two minutes late
//   npm run test:faults:http -- --faults 60 --plants   the long form
//   npm run test:faults:http -- --only "is stopped"    faults whose names contain this
//   npm run test:faults:http -- --database postgres    mariadb or sqlite: only this one
//   npm run test:faults:http -- --report faults.md     the results as a table
import { randomInt } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import type { HttpOutcome, HttpSearch } from '../test/faults/http/run.js'
import { findServerBin } from './redis.js'

ensureInstalled(root, { workspaces: true })
ensureBuilt() // what this process imports of the service imports the library
const { HTTP_FAULTS } = await import('../test/faults/http/faults.js')
const { findHttpPlant, plannedHttp, runHttpFaults } = await import('../test/faults/http/run.js')
const { HTTP_PLANTS } = await import('../test/faults/http/plants.js')
const { httpReport } = await import('../test/faults/http/report.js')
const { Origin, commandOf } = await import('../test/faults/pages.js')
const { isThere } = await import('../test/faults/journal/sql.js')
const { hasNginx } = await import('../src/server/test/support/nginx.js')

/** So that the code is judged, and not the moment of a fault. */
const SHORT_SEED = 17
const KINDS = ['postgres', 'mariadb', 'sqlite'] as const

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    short: { type: 'boolean', default: false },
    faults: { type: 'string' },
    plants: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    database: { type: 'string' },
    report: { type: 'string' },
  },
})
const seed = number('seed', values.seed ?? String(values.short ? SHORT_SEED : randomInt(2 ** 31)))
const kinds = KINDS.filter((kind) => kind === (values.database ?? kind) && isThere(kind))
if (!findServerBin() || kinds.length === 0 || (process.env['CI'] && (kinds.length < KINDS.length || !hasNginx))) {
  console.error(
    '\n*** SKIPPED: these faults need redis-server, PostgreSQL, MariaDB and nginx installed. No fault was tried.\n',
  )
  console.log(process.env['CI'] ? '0 passed, 1 failed' : '0 passed, 0 failed, all skipped')
  process.exit(process.env['CI'] ? 1 : 0)
}
if (!hasNginx) console.log('SKIPPED: nginx is not installed; clients ask the instances in turn.')

process.setMaxListeners(100) // each server has one for the end of this process
// so that the servers go with this process
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
const { seed: _, report, ...options } = values
const origin = new Origin(commandOf('test:faults:http', seed, options))
const started = performance.now()
const say = (line: string): void =>
  console.log(`${String(Math.round((performance.now() - started) / 1_000)).padStart(5)} s  ${line}`)
const isWhole = values.faults !== undefined || values.only !== ''
const chosen = HTTP_FAULTS.filter(({ name }) => name.includes(values.only)).filter(({ isShort, isLong }) =>
  values.short ? isShort === true : isWhole || isLong !== true,
)
const count = values.faults === undefined ? chosen.length : number('faults', values.faults)
console.log(`faults of the service over HTTP, seed ${seed}`)
const outcomes: HttpOutcome[] = []
const searches: HttpSearch[] = []
const faults = plannedHttp(seed, count, chosen)
// In the short form after the faults: beside them a message that is only late would count as lost, and as the planted fault.
const searching = values.short ? undefined : searchPlants()
if (faults.length > 0)
  await runHttpFaults(faults, kinds, {
    seed,
    // as in CI
    isShared: values.short,
    say,
    onOutcome(outcome) {
      outcomes.push(outcome)
      writeReport()
    },
  })

await (searching ?? searchPlants())
const failed =
  outcomes.filter(({ problems }) => problems.length > 0).length +
  searches.filter(({ found }) => found === undefined).length
const passed = outcomes.length + searches.length - failed
console.log(`again: npm run test:faults:http -- --seed ${seed}${values.short ? ' --short' : ''}`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)

/** After each fault, so that a run which is stopped has said what it found. */
function writeReport(): void {
  if (report === undefined) return
  writeFileSync(resolve(report), httpReport({ origin, kinds, planned: faults.length, outcomes, searches }))
}

function number(what: string, text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text)
  console.error(`--${what} takes a whole number, not ${JSON.stringify(text)}`)
  process.exit(2)
}

/** Beside the faults, as both mostly wait. */
async function searchPlants(): Promise<void> {
  for (const each of HTTP_PLANTS.slice(0, values.plants ? HTTP_PLANTS.length : values.short ? 1 : 0)) {
    const search = await findHttpPlant(each, kinds[0] ?? 'postgres', seed)
    const { rounds, found, others } = search
    searches.push(search)
    writeReport()
    const how = found === undefined ? `FAILED, not found as ${each.foundAs}, but ${JSON.stringify(others)}` : 'found'
    say(`${how} in round ${rounds}: ${each.plant.what}: ${found?.text ?? ''}`)
  }
}
