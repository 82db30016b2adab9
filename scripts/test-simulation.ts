// `npm run test:simulation`: the two simulations of test/simulation over many seeds, with progress, on all cores: `scheduler` is the due
// scheduler with its timers, `client` the whole client over sockets of its own.
//
//   npm run test:simulation -- --only client     one of them
//   npm run test:simulation -- --seeds 1000000     how many; by default 50,000 of the scheduler and 10,000 of the client
//   npm run test:simulation -- --only client --from 104947 --seeds 1     one seed again
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const SIMULATIONS = {
  scheduler: { seeds: 50_000, slice: 500 },
  client: { seeds: 10_000, slice: 50 },
} as const

type Kind = keyof typeof SIMULATIONS

interface Slice {
  kind: Kind
  from: number
  to: number
}

interface Report {
  seeds: number
  delivered: number
  scripts: number
  violations: string[]
}

if (process.send) await work()
else await main()

async function main() {
  const { values } = parseArgs({
    options: { seeds: { type: 'string' }, from: { type: 'string' }, only: { type: 'string' } },
  })
  const from = number('--from', values.from ?? String(Date.now() % 1_000_000_000))
  const kinds = (Object.keys(SIMULATIONS) as Kind[]).filter((kind) => (values.only ?? kind) === kind)
  if (kinds.length === 0) {
    console.error(`--only takes ${Object.keys(SIMULATIONS).join(' or ')}, not "${values.only}"`)
    process.exit(2)
  }
  let ok = true
  for (const kind of kinds) {
    const seeds = number('--seeds', values.seeds ?? String(SIMULATIONS[kind].seeds))
    ok = (await simulateAll(kind, from, seeds)) && ok
  }
  process.exit(ok ? 0 : 1)
}

async function simulateAll(kind: Kind, from: number, seeds: number) {
  console.log(`${kind}: seeds ${from} to ${from + seeds - 1}`)
  const { slice: size } = SIMULATIONS[kind]
  const started = performance.now()
  const processes = Math.min(availableParallelism(), Math.ceil(seeds / size))
  const violations: string[] = []
  const sum = { seeds: 0, delivered: 0, scripts: 0 }
  let next = from
  let reported = 0
  await Promise.all(
    Array.from({ length: processes }, () => {
      const worker = fork(fileURLToPath(import.meta.url), { execArgv: ['--import', 'tsx'] })
      return new Promise((resolve, reject) => {
        worker.on('error', reject)
        worker.on('exit', resolve)
        worker.on('message', (report: Report | 'ready') => {
          if (report !== 'ready') {
            sum.seeds += report.seeds
            sum.delivered += report.delivered
            sum.scripts += report.scripts
            violations.push(...report.violations)
            for (const violation of report.violations) console.log(`FAILED  ${violation}`)
            if (sum.seeds - reported >= seeds / 10) {
              reported = sum.seeds
              console.log(`  ${reported.toLocaleString('en-US')} of ${seeds.toLocaleString('en-US')} seeds`)
            }
          }
          const slice = { kind, from: next, to: Math.min(next + size, from + seeds) }
          next = slice.to
          worker.send(slice.from < slice.to ? slice : 'end')
        })
      })
    }),
  )
  const seconds = Math.round((performance.now() - started) / 1000)
  const [delivered, scripts] = [sum.delivered, sum.scripts].map((count) => count.toLocaleString('en-US'))
  console.log(
    `${delivered} messages delivered by ${scripts} ${kind === 'scheduler' ? 'scripts' : 'commands'} in ${seconds} s`,
  )
  console.log(`${sum.seeds.toLocaleString('en-US')} seeds, ${violations.length} violations`)
  return violations.length === 0 && sum.seeds === seeds
}

async function work() {
  const { simulate } = await import('../test/simulation/simulate.js')
  const { loadCode } = await import('../test/simulation/code.js')
  const { playClient } = await import('../test/simulation/client/play.js')
  const { loadClientCode } = await import('../test/simulation/client/code.js')
  const scheduler = await loadCode()
  const client = await loadClientCode()

  const play = async ({ kind, from, to }: Slice) => {
    const report: Report = { seeds: 0, delivered: 0, scripts: 0, violations: [] }
    for (let seed = from; seed < to; seed++) {
      const outcome = await (kind === 'scheduler' ? simulate(seed, scheduler) : playClient(seed, client))
      report.seeds++
      report.delivered += outcome.delivered
      report.scripts += 'scripts' in outcome ? outcome.scripts : outcome.commands
      if (outcome.violation) report.violations.push(`${kind}, seed ${seed}: ${outcome.violation}`)
    }
    process.send?.(report)
  }
  process.on('message', (slice: Slice | 'end') => {
    if (slice === 'end') process.disconnect()
    else void play(slice)
  })
  process.send?.('ready')
}

function number(what: string, text: string) {
  if (/^\d{1,12}$/.test(text)) return Number(text)
  console.error(`${what} takes a whole number, not "${text}"`)
  process.exit(2)
}
