// `npm test`: works from a fresh clone. Installs what is missing, gets a real Redis for each of several processes, runs the
// tests, cleans up, and ends with the line `N passed, N failed, N skipped`. Whole folders run against what was built in dist,
// which is built first if src has changed; single files run against src. Outside CI it leaves out the files that take long.
//
//   CI=true npm test                       everything
//   npm test -- --grep reschedule          options and paths go to mocha
//   npm test -- test/unit/keys.test.ts
//   npm test -- --redis docker             only this way to a Redis: url, server, docker, emulator, or none for unit tests
//   npm test -- --code src                 or dist: against which code
//   npm test -- --processes 1              one after the other; so it is with a Redis that was not started here
//   npm test -- --durations                writes what each file took into test/durations.json
//   npm run coverage                       the same with coverage of src in coverage/
import { parseArgs } from 'node:util'
import { ensureBuilt } from './ensure-built.js'
import { summary } from './mocha.js'
import { describe, findRedis } from './redis.js'
import { readDurations, runSharded, serversFor, testFiles, writeDurations } from './shards.js'

const WAYS = ['url', 'server', 'docker', 'emulator'] as const

const { code, coverage, durations, processes, way, args, paths } = readArgs(process.argv.slice(2))
if (code === 'dist') ensureBuilt()
const servers = await findServers().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  console.log('0 passed, 1 failed')
  process.exit(1)
})
const long = paths.length > 0 || coverage || process.env.CI !== undefined ? [] : readDurations().long
const files = testFiles(paths.length > 0 ? paths : ['test']).filter((file) => !long.includes(file))
const started = performance.now()
const counts = await runSharded({ files, args, servers, coverage, dist: code === 'dist' }).finally(() =>
  Promise.all(servers.map((server) => server.stop())),
)
if (durations) writeDurations(counts.seconds)

console.log(`${Math.round((performance.now() - started) / 1000)} s`)
if (long.length > 0) console.log(`${long.length} files that take long were left out: CI=true npm test runs everything.`)
console.log(summary(counts))
process.exit(counts.failed > 0 ? 1 : 0)

async function findServers() {
  if (way === 'none') {
    const none = { env: { REDIS_URL: undefined }, stop: async () => {} }
    return Array.from({ length: processes ?? 2 }, () => none)
  }
  const redis = await findRedis({ ...(way && { only: way }) })
  console.log(describe(redis))
  return serversFor(redis, processes)
}

function readArgs(given: string[]) {
  const options = {
    code: { type: 'string' },
    coverage: { type: 'boolean', default: false },
    durations: { type: 'boolean', default: false },
    processes: { type: 'string' },
    redis: { type: 'string' },
  } as const
  const { values, tokens } = parseArgs({ args: given, options, strict: false, tokens: true })
  const mine = new Set(
    tokens.flatMap((token) => {
      if (token.kind !== 'option' || !(token.name in options)) return []
      return token.value === undefined || token.inlineValue ? [token.index] : [token.index, token.index + 1]
    }),
  )
  const rest = given.filter((_, index) => !mine.has(index))
  const isPath = (arg: string) => /\.ts$|^(\.\/)?test\//.test(arg)
  const way = [...WAYS, 'none' as const].find((known) => known === values.redis)
  if (values.redis !== undefined && !way) usage(`--redis takes ${WAYS.join(', ')} or none, not "${values.redis}"`)
  const processes = values.processes === undefined ? undefined : Number(values.processes)
  if (processes !== undefined && !(processes >= 1)) usage(`--processes takes a number, not "${values.processes}"`)
  const paths = rest.filter(isPath)
  const isWhole = values.coverage !== true && !paths.some((path) => path.endsWith('.ts'))
  const code = values.code ?? (isWhole ? 'dist' : 'src')
  if (code !== 'dist' && code !== 'src') usage(`--code takes dist or src, not "${String(code)}"`)
  return {
    code,
    coverage: values.coverage === true,
    durations: values.durations === true,
    processes,
    way,
    args: rest.filter((arg) => !isPath(arg)),
    paths,
  }
}

function usage(problem: string) {
  console.error(problem)
  process.exit(2)
}
