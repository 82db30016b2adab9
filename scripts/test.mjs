// `npm test`: works from a fresh clone. Installs what is missing, gets a real Redis, runs the tests, cleans up, and ends
// with the line `N passed, N failed`.
//
//   npm test -- --grep reschedule          options and paths go to mocha
//   npm test -- test/unit/keys.test.ts
//   npm test -- --redis docker             only this way to a Redis: url, server, docker or emulator
//   npm run coverage                       the same with coverage of src in coverage/
import { ensureInstalled } from './ensure-installed.mjs'

ensureInstalled()
const { describe, findRedis } = await import('./redis.mjs')
const { runMocha, summary } = await import('./mocha.mjs')

const WAYS = /** @type {const} */ (['url', 'server', 'docker', 'emulator'])

const { coverage, way, args } = readArgs(process.argv.slice(2))
const redis = await findRedis({ ...(way && { only: way }) }).catch((error) => {
  console.error(error.message)
  console.log('0 passed, 1 failed')
  process.exit(1)
})
console.log(describe(redis))

/** @type {NodeJS.ProcessEnv} */
const env = { REDIS_URL: redis.url }
if (redis.serverBin) env.REDIS_SERVER_BIN = redis.serverBin
if (redis.protocol) env.REDIS_PROTOCOL = String(redis.protocol)
const counts = await runMocha({ args, env, coverage }).finally(() => redis.stop())

console.log(summary(counts))
process.exit(counts.failed > 0 ? 1 : 0)

/** @param {string[]} given */
function readArgs(given) {
  const args = [...given]
  const coverageAt = args.indexOf('--coverage')
  if (coverageAt !== -1) args.splice(coverageAt, 1)
  const wayAt = args.findIndex((arg) => arg === '--redis' || arg.startsWith('--redis='))
  if (wayAt === -1) return { coverage: coverageAt !== -1, way: undefined, args }
  const name = args[wayAt]?.split('=')[1] ?? args.splice(wayAt + 1, 1)[0]
  args.splice(wayAt, 1)
  const way = WAYS.find((known) => known === name)
  if (!way) {
    console.error(`--redis takes ${WAYS.join(', ')}, not "${name}"`)
    process.exit(2)
  }
  return { coverage: coverageAt !== -1, way, args }
}
