// The benchmark suite: a private untuned server, every scenario in turn, results as tables and files.
//   npm run bench -- [--quick] [--only name,name] [--runs n]
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { findServerBin, startServer } from '../scripts/redis.mjs'
import { codecSpeed } from './codecs/main.js'
import { environment, markdown, save, type Finished } from './lib/report.js'
import type { Bench } from './lib/scenario.js'
import { sparse, uniform } from './scenarios/lateness.js'
import { manyClients } from './scenarios/many-clients.js'
import { memory } from './scenarios/memory.js'
import { offers } from './scenarios/offers.js'
import { transfersList, transfersNone } from './scenarios/transfers.js'

const SCENARIOS = [sparse, uniform, manyClients, transfersNone, transfersList, offers, memory, codecSpeed]

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    runs: { type: 'string' },
  },
})
const only = options.only?.split(',')
const chosen = SCENARIOS.filter((scenario) => only === undefined || only.includes(scenario.name))
if (chosen.length === 0) {
  console.error(`No such scenario. There are: ${SCENARIOS.map((scenario) => scenario.name).join(', ')}`)
  process.exit(2)
}
const runs = Number(options.runs ?? (options.quick ? 1 : 5))
if (!Number.isInteger(runs) || runs < 1) {
  console.error('--runs takes a whole number from 1')
  process.exit(2)
}

const bin = findServerBin()
if (bin === undefined) {
  console.error('The benchmarks need redis-server or valkey-server on PATH: figures of an emulator would mean nothing.')
  process.exit(1)
}
const server = await startServer({ bin, args: ['--save', '', '--appendonly', 'no'] })
const raw = new Redis(server.url)
try {
  const info = await raw.info('server')
  const packageVersion = (name: string): string =>
    (createRequire(import.meta.url)(`${name}/package.json`) as { version: string }).version
  const env = environment(
    `npm run bench${process.argv.slice(2).length === 0 ? '' : ` -- ${process.argv.slice(2).join(' ')}`}`,
    runs,
    {
      redis: /^redis_version:(\S+)/m.exec(info)?.[1] ?? 'unknown',
      ioredis: packageVersion('ioredis'),
      bullmq: packageVersion('bullmq'),
      'bee-queue': packageVersion('bee-queue'),
    },
  )
  const finished: Finished[] = []
  for (const scenario of chosen) {
    const bench: Bench = {
      url: server.url,
      raw,
      quick: options.quick,
      runs,
      progress: (text) => console.error(`  ${scenario.name}: ${text}`),
    }
    finished.push([scenario, await scenario.run(bench)])
  }
  console.log(markdown(env, finished))
  const stem = `${env.date.slice(0, 10)}-${options.quick ? 'quick' : 'full'}${only === undefined ? '' : `-${only.join('-')}`}`
  const dir = fileURLToPath(new URL('results', import.meta.url))
  save(dir, stem, env, finished)
  console.log(`Written to benchmarks/results/${stem}.md and .json`)
} finally {
  raw.disconnect()
  await server.stop()
}
