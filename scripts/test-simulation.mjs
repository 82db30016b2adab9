// `npm run test:simulation`: the simulation of test/simulation over many seeds, with progress, on all cores.
//
//   npm run test:simulation -- --seeds 1000000     how many; 100,000 unless told
//   npm run test:simulation -- --from 104947 --seeds 1     one seed again
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ensureInstalled, root } from './ensure-installed.mjs'

const SLICE = 500

/** @typedef {{ seeds: number, delivered: number, scripts: number, violations: string[] }} Report */

if (process.send) await work()
else await main()

async function main() {
  ensureInstalled()
  const { values } = parseArgs({ options: { seeds: { type: 'string' }, from: { type: 'string' } } })
  const seeds = number('--seeds', values.seeds ?? '100000')
  const from = number('--from', values.from ?? String(Date.now() % 1_000_000_000))
  console.log(`Seeds ${from} to ${from + seeds - 1}`)

  const started = performance.now()
  const processes = Math.min(availableParallelism(), Math.ceil(seeds / SLICE))
  /** @type {string[]} */
  const violations = []
  const sum = { seeds: 0, delivered: 0, scripts: 0 }
  let next = from
  let told = 0
  await Promise.all(
    Array.from({ length: processes }, () => {
      const worker = fork(fileURLToPath(import.meta.url), { execArgv: ['--import', 'tsx'] })
      return new Promise((resolve, reject) => {
        worker.on('error', reject)
        worker.on('exit', resolve)
        worker.on('message', (/** @type {Report | 'ready'} */ report) => {
          if (report !== 'ready') {
            sum.seeds += report.seeds
            sum.delivered += report.delivered
            sum.scripts += report.scripts
            violations.push(...report.violations)
            for (const violation of report.violations) console.log(`FAILED  ${violation}`)
            if (sum.seeds - told >= seeds / 10) {
              told = sum.seeds
              console.log(`  ${told.toLocaleString('en-US')} of ${seeds.toLocaleString('en-US')} seeds`)
            }
          }
          const slice = { from: next, to: Math.min(next + SLICE, from + seeds) }
          next = slice.to
          worker.send(slice.from < slice.to ? slice : 'end')
        })
      })
    }),
  )
  const seconds = Math.round((performance.now() - started) / 1000)
  const [delivered, scripts] = [sum.delivered, sum.scripts].map((count) => count.toLocaleString('en-US'))
  console.log(`${delivered} messages delivered by ${scripts} scripts in ${seconds} s`)
  console.log(`${sum.seeds.toLocaleString('en-US')} seeds, ${violations.length} violations`)
  process.exit(violations.length > 0 || sum.seeds !== seeds ? 1 : 0)
}

async function work() {
  const { simulate } = await import(`${root}test/simulation/simulate.ts`)
  const { loadCode } = await import(`${root}test/simulation/code.ts`)
  const code = await loadCode(new URL(`file://${root}src/`))

  /** @param {{ from: number, to: number }} slice */
  const play = async ({ from, to }) => {
    /** @type {Report} */
    const report = { seeds: 0, delivered: 0, scripts: 0, violations: [] }
    for (let seed = from; seed < to; seed++) {
      const outcome = await simulate(seed, code)
      report.seeds++
      report.delivered += outcome.delivered
      report.scripts += outcome.scripts
      if (outcome.violation) report.violations.push(`seed ${seed}: ${outcome.violation}`)
    }
    process.send?.(report)
  }
  process.on('message', (/** @type {{ from: number, to: number } | 'end'} */ slice) => {
    if (slice === 'end') process.disconnect()
    else void play(slice)
  })
  process.send?.('ready')
}

/** @param {string} what @param {string} text */
function number(what, text) {
  if (/^\d{1,12}$/.test(text)) return Number(text)
  console.error(`${what} takes a whole number, not "${text}"`)
  process.exit(2)
}
