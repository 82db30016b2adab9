// `npm test`: works from a fresh clone. Installs what is missing, gets a real Redis for each of several processes, runs the
// tests, cleans up, and ends with the line `N passed, N failed, N skipped`. Whole folders run against what was built in dist,
// which is built first if src has changed; single files run against src.
//
//   npm test -- --grep reschedule          options and paths go to mocha
//   npm test -- test/unit/keys.test.ts
//   npm test -- --redis docker             only this way to a Redis: url, server, docker, emulator, or none for unit tests
//   npm test -- --code src                 or dist: against which code
//   npm test -- --processes 1              one after the other; so it is with a Redis that was not started here
//   npm test -- --durations                writes what each file took into test/durations.json
//   npm run coverage                       the same with coverage of src in coverage/
import { parseArgs } from 'node:util'
import { ensureInstalled } from './ensure-installed.mjs'

ensureInstalled()
const { describe, findRedis } = await import('./redis.mjs')
const { summary } = await import('./mocha.mjs')
const { runSharded, serversFor, testFiles, writeDurations } = await import('./shards.mjs')
const { ensureBuilt } = await import('./ensure-built.mjs')

const WAYS = /** @type {const} */ (['url', 'server', 'docker', 'emulator'])

const { code, coverage, durations, processes, way, args, paths } = readArgs(process.argv.slice(2))
if (code === 'dist') ensureBuilt()
const servers = await findServers().catch((error) => {
  console.error(error.message)
  console.log('0 passed, 1 failed')
  process.exit(1)
})
const files = testFiles(paths.length > 0 ? paths : ['test'])
const started = performance.now()
const counts = await runSharded({ files, args, servers, coverage, dist: code === 'dist' }).finally(() =>
  Promise.all(servers.map((server) => server.stop())),
)
if (durations) writeDurations(counts.seconds)

console.log(`${Math.round((performance.now() - started) / 1000)} s`)
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

/** @param {string[]} given */
function readArgs(given) {
  const options = /** @type {const} */ ({
    code: { type: 'string' },
    coverage: { type: 'boolean', default: false },
    durations: { type: 'boolean', default: false },
    processes: { type: 'string' },
    redis: { type: 'string' },
  })
  const { values, tokens } = parseArgs({ args: given, options, strict: false, tokens: true })
  const mine = new Set(
    tokens.flatMap((token) => {
      if (token.kind !== 'option' || !(token.name in options)) return []
      return token.value === undefined || token.inlineValue ? [token.index] : [token.index, token.index + 1]
    }),
  )
  const rest = given.filter((_, index) => !mine.has(index))
  const isPath = (/** @type {string} */ arg) => /\.ts$|^(\.\/)?test\//.test(arg)
  const way = [...WAYS, /** @type {const} */ ('none')].find((known) => known === values.redis)
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

/** @param {string} problem */
function usage(problem) {
  console.error(problem)
  process.exit(2)
}
