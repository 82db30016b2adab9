// The benchmark suite: every scenario in turn, results as tables, pictures and files.
//   npm run bench -- [--quick] [--only name,name] [--runs n] [--check | --commit] [--list]
// --check fails when a ratio is far behind the committed one; --commit makes this run's ratios the committed ones.
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { findServerBin, startServer } from '../scripts/redis.js'
import { changeStream } from './scenarios/change-stream.js'
import { codecSpeed } from './codecs/main.js'
import { commitRatios, compareWithCommitted, worthAnotherLook } from './lib/committed.js'
import { plot } from './lib/plots.js'
import { environment, markdown, save, type Finished } from './lib/report.js'
import type { Bench, Point, Scenario } from './lib/scenario.js'
import { warmUp } from './lib/warm-up.js'
import { adding } from './scenarios/adding.js'
import { bullmqBench } from './scenarios/bullmq-bench.js'
import { connections } from './scenarios/connections.js'
import { costs } from './scenarios/costs.js'
import { lateness } from './scenarios/lateness.js'
import { limits } from './scenarios/limits.js'
import { manyClients } from './scenarios/many-clients.js'
import { memory } from './scenarios/memory.js'
import { offers } from './scenarios/offers.js'
import { recovery } from './scenarios/recovery.js'
import { reliableChanges } from './scenarios/reliable-changes.js'
import { reliableQueue } from './scenarios/reliable.js'
import { sharded } from './scenarios/sharded.js'
import { taking } from './scenarios/taking.js'
import { tenMillion } from './scenarios/ten-million.js'
import { transferScripts } from './scenarios/transfer-scripts.js'
import { transfersList, transfersNone } from './scenarios/transfers.js'
import { asynqVersion } from './subjects/asynq.js'
import { redissonVersion } from './subjects/redisson.js'

const SCENARIOS: readonly Scenario[] = [
  ...lateness,
  manyClients,
  ...adding,
  offers,
  ...taking,
  ...bullmqBench,
  ...memory,
  ...costs,
  ...connections,
  transfersNone,
  transfersList,
  transferScripts,
  recovery,
  tenMillion,
  sharded,
  ...reliableQueue,
  reliableChanges,
  ...changeStream,
  ...limits,
  codecSpeed,
]

/** What is worth a short look: two minutes. */
const QUICK = ['lateness-uniform', 'add-bulk', 'take-batches', 'burst-until-taken', 'memory-100-bytes']

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    runs: { type: 'string' },
    check: { type: 'boolean', default: false },
    commit: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
})
if (options.list) {
  for (const { name, description } of SCENARIOS) console.log(`${name.padEnd(30)} ${description}`)
  process.exit(0)
}
const only = options.only?.split(',') ?? (options.quick ? QUICK : undefined)
const unknown = only?.filter((name) => !SCENARIOS.some((scenario) => scenario.name === name)) ?? []
if (unknown.length > 0) {
  console.error(`No such scenario: ${unknown.join(', ')}. \`npm run bench -- --list\` shows all.`)
  process.exit(2)
}
const chosen = SCENARIOS.filter((scenario) => only === undefined || only.includes(scenario.name))
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
  const command = ['npm run bench', ...process.argv.slice(2)].join(' ').replace('bench ', 'bench -- ')
  const env = environment(command, runs, {
    redis: /^redis_version:(\S+)/m.exec(info)?.[1] ?? 'unknown',
    ioredis: packageVersion('ioredis'),
    bullmq: packageVersion('bullmq'),
    'bee-queue': packageVersion('bee-queue'),
    redisson: redissonVersion(),
    asynq: asynqVersion(),
  })
  const stem = `${env.date.slice(0, 10)}-${options.quick ? 'quick' : 'full'}${options.only === undefined ? '' : `-${options.only.replaceAll(',', '-').slice(0, 80)}`}`
  const dir = fileURLToPath(new URL('results', import.meta.url))
  await warmUp({ serverBin: bin })
  const finished: Finished[] = []
  const pictures = new Map<string, string>()
  const measure = async (scenario: Scenario, rounds: number, stage: string): Promise<Finished> => {
    const curves = new Map<string, (readonly Point[])[]>()
    const bench: Bench = {
      url: server.url,
      raw,
      serverBin: bin,
      quick: options.quick,
      runs: Math.min(rounds, scenario.maxRuns ?? rounds),
      progress: (text) => console.error(`  ${stage}, ${scenario.name}: ${text}`),
      curve: (subject, points) => curves.set(subject, [...(curves.get(subject) ?? []), points]),
    }
    const result = [scenario, await scenario.run(bench)] as const
    const picture = await plot(result, curves)
    if (picture !== undefined) pictures.set(scenario.name, picture)
    return result
  }
  for (const [place, scenario] of chosen.entries()) {
    finished.push(await measure(scenario, runs, `${place + 1} of ${chosen.length}`))
    save(dir, stem, env, finished, pictures) // after each, so that a long run that is stopped leaves what it has
  }
  for (const scenario of options.check ? worthAnotherLook(finished) : []) {
    const again = await measure(scenario, Math.max(3, runs), 'a ratio fell, once more')
    finished[chosen.indexOf(scenario)] = again
    save(dir, stem, env, finished, pictures)
  }
  console.log(markdown(env, finished, stem, pictures))
  console.log(`Written to benchmarks/results/${stem}.md and .json`)
  if (options.commit) commitRatios(finished)
  if (options.check) process.exitCode = compareWithCommitted(finished)
} finally {
  raw.disconnect()
  await server.stop()
}
process.exit() // rivals leave timers and sockets behind
