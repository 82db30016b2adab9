// Distributes test files over processes. A bundle of files is one mocha process; lanes take bundles from a queue, those that
// take long first, and each lane has a Redis server of its own. Files that mostly wait have lanes beside those of the files that
// compute, so that the cores are busy all the time. What measures lateness or CPU time runs alone at the end.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, sep } from 'node:path'
import { root } from './ensure-installed.mjs'
import { runMocha, type Counts } from './mocha.js'
import { startServer, type FoundRedis } from './redis.js'

/**
 * A bundle is such a part of what is left for each process: the last bundles are short, so that no process waits long for another, even if a file takes
 * longer than the table says.
 */
const PART = 1 / 2
/** Shorter bundles would mostly cost their starts, a second of CPU time each. */
const LEAST_SECONDS = 10
const CORES = availableParallelism()
/** One for each core for what computes, and one or two for what waits: in CI one, to disturb less what measures time. */
const PROCESSES = Math.min(8, CORES * (process.env.CI === undefined ? 3 : 2))
const TABLE = join(root, 'test/durations.json')
const USE_DIST = new URL('use-dist.mjs', import.meta.url).href

/**
 * `alone`: files that no other process may disturb; `waiting`: files that wait for more than half of their time; `long`: files that only CI runs unless they
 * are named; `seconds`: what a file takes, if that is more than a second
 */
export interface Durations {
  alone: string[]
  waiting: string[]
  long: string[]
  seconds: Record<string, number>
}

export interface Bundle {
  files: string[]
  seconds: number
  kind: 'computing' | 'waiting' | 'alone'
}

export function readDurations(): Durations {
  return JSON.parse(readFileSync(TABLE, 'utf8')) as Durations
}

/**
 * Writes what the files of a run took; what the table has of other files stays.
 * @param measured seconds by file
 */
export function writeDurations(measured: Record<string, number>) {
  const { seconds, ...lists } = readDurations()
  const rows = Object.entries({ ...seconds, ...measured })
    .map(([file, took]) => [file, Math.round(took)] as const)
    .filter(([file, took]) => existsSync(join(root, file)) && took > 1)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(TABLE, `${JSON.stringify({ ...lists, seconds: Object.fromEntries(rows) }, null, 2)}\n`)
}

/** The test files that paths name: files, or folders with all that is in them. */
export function testFiles(paths: string[] = ['test']) {
  return [...new Set(paths.flatMap((path) => (statSync(join(root, path)).isDirectory() ? filesIn(path) : [path])))]
}

function filesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => join(folder, file).replaceAll(sep, '/'))
    .filter((file) => file.endsWith('.test.ts') && !/\/\./.test(file))
    .sort()
}

/** So many of the processes begin with what computes, the others with what waits. */
function computing(processes: number): number {
  return Math.min(CORES, Math.ceil(processes / 2))
}

/** The bundles of each kind in the order in which they start: the longest first. */
export function bundlesOf(
  files: string[],
  { alone, waiting, seconds }: Omit<Durations, 'long'>,
  processes: number,
): Bundle[] {
  const kindOf = (file: string) => (alone.includes(file) ? 'alone' : waiting.includes(file) ? 'waiting' : 'computing')
  const some = (kind: Bundle['kind'], lanes: number) =>
    bundled(
      kind,
      files.filter((file) => kindOf(file) === kind),
      seconds,
      lanes,
    )
  const lanes = computing(processes)
  return [...some('computing', lanes), ...some('waiting', Math.max(1, processes - lanes)), ...some('alone', 1)]
}

function secondsOf(files: readonly string[], seconds: Durations['seconds']): number {
  return files.reduce((sum, file) => sum + (seconds[file] ?? 1), 0)
}

/** The longest files first, each bundle a part of what is left. */
function bundled(kind: Bundle['kind'], files: string[], seconds: Durations['seconds'], lanes: number): Bundle[] {
  let left = files.toSorted((a, b) => secondsOf([b], seconds) - secondsOf([a], seconds))
  const bundles: Bundle[] = []
  while (left.length > 0) {
    const most = kind === 'alone' ? Infinity : Math.max(LEAST_SECONDS, (secondsOf(left, seconds) / lanes) * PART)
    const bundle: Bundle = { files: [], seconds: 0, kind }
    const rest: string[] = []
    for (const file of left) {
      const took = secondsOf([file], seconds)
      if (bundle.files.length > 0 && bundle.seconds + took > most) rest.push(file)
      else {
        bundle.files.push(file)
        bundle.seconds += took
      }
    }
    bundles.push(bundle)
    left = rest
  }
  return bundles.sort((a, b) => b.seconds - a.seconds)
}

/**
 * Runs test files and adds up what their processes count. The output of each process is given as a whole when it ends; one
 * process alone writes to the terminal itself.
 */
export async function runSharded({
  files,
  args = [],
  node,
  servers,
  coverage = false,
  dist = false,
  onOutput,
}: {
  files: string[]
  /** options of mocha */
  args?: string[]
  /** the node binary */
  node?: string
  /** one for each process beside the first */
  servers: { env: NodeJS.ProcessEnv; stop(): Promise<void> }[]
  /** over src, into coverage/ */
  coverage?: boolean
  /** run what was built instead of src */
  dist?: boolean
  /** gets the output instead of the terminal */
  onOutput?: (text: string) => void
}): Promise<Counts> {
  const durations = readDurations()
  const bundles =
    servers.length > 1
      ? bundlesOf(files, durations, servers.length)
      : [{ files, seconds: 0, kind: 'computing' as const }]
  const total: Counts = { passed: 0, failed: 0, skipped: 0, failures: [], seconds: {} }
  const distEnv = dist ? { NODE_OPTIONS: `--import=${USE_DIST}`, REDELAYED_TEST_DIST: '1' } : {}
  const coverageEnv = coverage ? { NODE_V8_COVERAGE: join(root, 'coverage/tmp') } : {}
  if (coverage) rmSync(join(root, 'coverage'), { recursive: true, force: true })

  let interrupted = false
  const interrupt = () => (interrupted = true)
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  const show = onOutput ?? ((text: string) => process.stdout.write(text))

  const run = async (bundle: Bundle, env: NodeJS.ProcessEnv) => {
    let output = ''
    const counts = await runMocha({
      args: [...args, ...bundle.files],
      ...(node && { node }),
      env: { ...env, ...distEnv, ...coverageEnv },
      ...((bundles.length > 1 || onOutput) && { onOutput: (text) => (output += text) }),
    })
    show(output)
    total.passed += counts.passed
    total.failed += counts.failed
    total.skipped += counts.skipped
    total.failures.push(...counts.failures)
    Object.assign(total.seconds, counts.seconds)
  }
  const left = {
    computing: bundles.filter(({ kind }) => kind === 'computing'),
    waiting: bundles.filter(({ kind }) => kind === 'waiting'),
  }
  await Promise.all(
    servers.map(async ({ env }, lane) => {
      const [first, second] =
        lane < computing(servers.length)
          ? [left.computing, left.waiting]
          : [left.waiting, lane < 2 * CORES ? left.computing : []]
      const take = () => first.shift() ?? second.shift()
      for (let next = take(); next && !interrupted; next = take()) await run(next, env)
    }),
  )
  for (const bundle of bundles) if (bundle.kind === 'alone' && !interrupted) await run(bundle, servers[0]?.env ?? {})
  process.off('SIGINT', interrupt).off('SIGTERM', interrupt)

  if (interrupted) fail(total, 'The run was interrupted.')
  else if (total.passed + total.failed + total.skipped === 0) fail(total, 'No test ran.')
  if (bundles.length > 1 && total.failures.length > 0)
    show(`\nWhat failed:\n${total.failures.map((title) => `  ${title}\n`).join('')}\n`)
  if (coverage) await reportCoverage()
  return total
}

function fail(counts: Counts, why: string) {
  counts.failed++
  counts.failures.push(why)
}

/** A Redis for each process: servers of one kind, or the one that is there. */
export async function serversFor(redis: FoundRedis, processes = PROCESSES) {
  const envOf = (url: string) => ({
    REDIS_URL: url,
    ...(redis.serverBin && { REDIS_SERVER_BIN: redis.serverBin }),
    ...(redis.protocol && { REDIS_PROTOCOL: String(redis.protocol) }),
  })
  const { serverBin } = redis
  const further = redis.kind === 'server' && serverBin ? processes - 1 : 0
  const own = await Promise.all(Array.from({ length: further }, () => startServer({ bin: serverBin ?? '' })))
  return [redis, ...own].map((server) => ({ env: envOf(server.url), stop: () => server.stop() }))
}

/** What the processes have left in coverage/tmp, as a report. */
function reportCoverage(): Promise<void> {
  const args = [
    join(root, 'node_modules/c8/bin/c8.js'),
    ...['report', '--temp-directory', 'coverage/tmp', '--reports-dir', 'coverage'],
    ...['--src', 'src', '--all', '--include', 'src/**', '--exclude', 'src/store/scripts/generated.ts'],
    ...['--reporter', 'text-summary', '--reporter', 'html'],
  ]
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
    child.once('error', reject)
    child.once('close', () => resolve())
  })
}
