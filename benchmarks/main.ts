// The benchmark suite: every scenario in turn, results as tables, pictures and files, at the end the table of goals.
//   npm run bench -- [--quick] [--only name,name] [--runs n] [--budget seconds] [--resume] [--check | --commit | --docs] [--list]
// --budget begins no measurement after so many seconds; --resume goes on with a run that was not ended, or begins one. The exit code is 3
// where something is left. --check fails when a ratio is behind the committed one; --commit makes this run's ratios the committed ones;
// --docs puts a run's figures into README.md and docs/performance.md.
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { findServerBin, startServer } from '../scripts/redis.js'
import { commitRatios, compareWithCommitted, worthAnotherLook } from './lib/committed.js'
import { writeDocs } from './lib/docs.js'
import { codeOf } from './lib/machine.js'
import { plot } from './lib/plots.js'
import { environment, save, tableOfGoals, type Finished, type Run } from './lib/report.js'
import { OtherCode, OutOfTime, RunState, type Measurement } from './lib/run-state.js'
import type { Bench, Point, Scenario } from './lib/scenario.js'
import { warmUp } from './lib/warm-up.js'
import { QUICK, SCENARIOS } from './scenarios/all.js'
import { asynqVersion } from './subjects/asynq.js'
import { redissonVersion } from './subjects/redisson.js'

const UNFINISHED = 3
/** Rounds of the looks that a ratio gets that fell. */
const MORE_LOOKS = [3, 3]

const { values: given } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    runs: { type: 'string' },
    budget: { type: 'string', default: 'Infinity' },
    resume: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
    commit: { type: 'boolean', default: false },
    docs: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
})

function stop(code: number, text: string): never {
  console.error(text)
  process.exit(code)
}

if (given.list) {
  for (const { name, description } of SCENARIOS) console.log(`${name.padEnd(30)} ${description}`)
  process.exit(0)
}
const runs = Number(given.runs ?? (given.quick ? 1 : 5))
if (!Number.isInteger(runs) || runs < 1) stop(2, '--runs takes a whole number from 1')
const budget = Number(given.budget)
if (!(budget > 0)) stop(2, '--budget takes a number of seconds')
const asked = given.only?.split(',') ?? (given.quick ? QUICK : undefined)
const unknown = asked?.filter((name) => !SCENARIOS.some((scenario) => scenario.name === name)) ?? []
if (unknown.length > 0) {
  stop(2, `No such scenario: ${unknown.join(', ')}. \`npm run bench -- --list\` shows all.`)
}
const bin = findServerBin()
if (bin === undefined) {
  stop(1, 'The benchmarks need redis-server or valkey-server on PATH: figures of an emulator would mean nothing.')
}

const server = await startServer({ bin, args: ['--save', '', '--appendonly', 'no'] })
const raw = new Redis(server.url)
try {
  process.exitCode = await run(bin)
} finally {
  raw.disconnect()
  await server.stop()
}
process.exit() // rivals leave timers and sockets behind

async function run(serverBin: string): Promise<number> {
  const state = await stateOf()
  const { stem, env, options } = state.head
  const chosen = SCENARIOS.filter(({ name }) => options.only === undefined || options.only.includes(name))
  const dir = fileURLToPath(new URL('results', import.meta.url))
  const finished: Finished[] = []
  const pictures = new Map<string, string>()
  let isOver = false

  /** `key` is where its measurements are: another look at a scenario has its own. */
  const measure = async (scenario: Scenario, rounds: number, stage: string, key = scenario.name): Promise<Finished> => {
    const progress = (text: string): void => console.error(`  ${stage}, ${scenario.name}: ${text}`)
    const bench: Bench = {
      url: server.url,
      raw,
      serverBin,
      quick: options.quick,
      runs: Math.min(rounds, scenario.maxRuns ?? rounds),
      progress,
      async measured(subject, round, action) {
        const { figures, error } = await state.measured(key, subject, round, action)
        if (error !== undefined) progress(`FAILED: ${error}`)
        return figures
      },
      curve: (subject, points) => state.curve(subject, points),
    }
    const result = await scenario.run(bench)
    const measurements = state.of(key)
    const picture = await plot(scenario, result, curvesOf(measurements))
    if (picture !== undefined) pictures.set(scenario.name, picture)
    state.end(key)
    return { scenario, result, measurements }
  }
  const soFar = (): Run => {
    const missing = chosen.filter(({ name }) => !finished.some(({ scenario }) => scenario.name === name))
    return { env, stem, places: state.places, finished, missing: missing.map(({ name }) => name), pictures }
  }

  await warmUp({ serverBin })
  for (const [place, scenario] of chosen.entries()) {
    try {
      finished.push(await measure(scenario, options.runs, `${place + 1} of ${chosen.length}`))
    } catch (error) {
      if (!(error instanceof OutOfTime)) throw error
      isOver = true
      break
    } finally {
      save(dir, soFar()) // after each, so that a run that is stopped leaves what it has
    }
  }
  for (const [look, rounds] of given.check ? MORE_LOOKS.entries() : []) {
    for (const one of worthAnotherLook(finished)) {
      const key = `${one.scenario.name}, look ${look + 2}`
      finished[finished.indexOf(one)] = await measure(one.scenario, rounds, 'a ratio fell, once more', key)
      save(dir, soFar())
    }
  }
  console.log(tableOfGoals(finished).join('\n'))
  console.log(`\nWritten to benchmarks/results/${stem}.md and .json`)
  if (isOver) {
    const made = state.measurements.length
    console.log(
      `NOT FINISHED: ${finished.length} of ${chosen.length} scenarios, ${made} measurements. Go on with --resume.`,
    )
    return UNFINISHED
  }
  if (given.commit) commitRatios(finished)
  if (given.docs && !options.quick) writeDocs(soFar())
  return given.check ? compareWithCommitted(finished) : 0
}

async function stateOf(): Promise<RunState> {
  // a long run's is among the results, so that it can be committed and go on elsewhere
  const file = fileURLToPath(
    new URL(given.quick ? '../.cache/bench/quick.jsonl' : 'results/run.jsonl', import.meta.url),
  )
  const code = codeOf()
  const info = await raw.info('server')
  const packageVersion = (name: string): string =>
    (createRequire(import.meta.url)(`${name}/package.json`) as { version: string }).version
  const args = process.argv.slice(2).filter((arg) => arg !== '--resume')
  const env = environment(code, ['npm run bench --', ...args].join(' '), runs, {
    redis: /^(?:redis|valkey)_version:(\S+)/m.exec(info)?.[1] ?? 'unknown',
    ioredis: packageVersion('ioredis'),
    bullmq: packageVersion('bullmq'),
    'bee-queue': packageVersion('bee-queue'),
    redisson: redissonVersion(),
    asynq: asynqVersion(),
  })
  if (given.resume) {
    try {
      const before = RunState.resume(file, env, budget)
      if (before !== undefined) return before
    } catch (error) {
      if (error instanceof OtherCode) stop(2, error.message)
      throw error
    }
  }
  const part = given.only === undefined ? '' : `-${given.only.replaceAll(',', '-').slice(0, 80)}`
  const stem = `${env.date.slice(0, 10)}-${given.quick ? 'quick' : 'full'}${part}`
  return RunState.begin(file, { stem, env, options: { quick: given.quick, only: asked, runs } }, budget)
}

function curvesOf(measurements: readonly Measurement[]): Map<string, (readonly Point[])[]> {
  const curves = new Map<string, (readonly Point[])[]>()
  for (const one of measurements) {
    for (const [subject, points] of Object.entries(one.curves ?? {})) {
      curves.set(subject, [...(curves.get(subject) ?? []), points])
    }
  }
  return curves
}
