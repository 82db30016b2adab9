// `npm run test:nodes`: the whole suite on every Node line that package.json promises, on several processes. The npm package
// `node` carries the binaries, so nothing but the npm registry is needed.
//
//   npm run test:nodes -- --only 22,24
//   npm run test:nodes -- --short 22,24    on these lines only what Node itself can change: what it decodes, times and connects
import { tmpdir } from 'node:os'
import { ensureBuilt } from './ensure-built.js'
import { npm } from './ensure-installed.mjs'
import { summary } from './mocha.js'
import { describe, findRedis } from './redis.js'
import { runSharded, serversFor, testFiles } from './shards.js'

/** One Node line, and what its tests have come to. */
interface Run {
  readonly line: string
  readonly node: string
  readonly version: string
  readonly counts: { passed: number; failed: number; skipped: number }
  failures: string
  seconds: number
}

const LINES = ['20', '22', '24', '26']
/** Not what only Redis decides: scripts, clusters, failovers, faults. */
const SHORT = [
  'test/unit',
  ...[
    ...[
      'blocking-queue',
      'borrowed',
      'cancelling',
      'cli',
      'connections',
      'delayed-queue',
      'lifecycle',
      'observability',
    ],
    ...['reliable-queue', 'repeats', 'test-kit', 'timing', 'worker'],
  ].map((name) => `test/integration/${name}.test.ts`),
]
/** Newer lines have a SQLite of their own, whose values and error codes differ from those of the package for Node 20. */
const JOURNAL = ['bad-input', 'database-faults', 'journal'].map((name) => `src/server/test/${name}.test.ts`)
const IN_SQLITE = ['--grep', 'SQLite|cannot be opened']
const only = linesOf('--only') ?? LINES
const short = linesOf('--short') ?? []

ensureBuilt() // for the journal
const redis = await findRedis()
console.log(describe(redis))
const servers = await serversFor(redis)
const KINDS = ['passed', 'failed', 'skipped'] as const
const total = { passed: 0, failed: 0, skipped: 0 }
const rows: string[] = []
const runs: Run[] = []
try {
  for (const line of only) {
    const { node, version, problem } = nodeOf(line)
    if (!node) {
      console.log(`node ${line}: ${problem}`)
      total.failed++
      rows.push(`node ${line.padEnd(10)} not found`)
      continue
    }
    const run = { line, node, version, counts: { passed: 0, failed: 0, skipped: 0 }, failures: '', seconds: 0 }
    runs.push(run)
    await runFiles(run, testFiles(short.includes(line) ? SHORT : ['test']), servers)
  }
  // one process for each line, which mostly waits, so the lines run beside each other
  const left = [...runs]
  await Promise.all(
    servers.map(async (server) => {
      for (let run = left.shift(); run; run = left.shift()) await runFiles(run, JOURNAL, [server], IN_SQLITE)
    }),
  )
} finally {
  await Promise.all(servers.map((server) => server.stop()))
}
for (const { line, version, counts, failures, seconds } of runs) {
  if (counts.failed > 0) console.log(`\n--- node ${version}\n${failures}`)
  for (const what of KINDS) total[what] += counts[what]
  const extent = short.includes(line) ? ', in short' : ''
  rows.push(`node ${version.padEnd(10)} ${summary(counts)}${extent}  (${Math.round(seconds)} s)`)
}
console.log(`\n${rows.join('\n')}\n`)
console.log(summary(total))
process.exit(total.failed > 0 ? 1 : 0)

/** Adds what these files count, and what they say of failures, to the run of a line. */
async function runFiles(run: Run, files: string[], on: typeof servers, args: string[] = []) {
  const started = performance.now()
  const onOutput = (text: string) => (run.failures += failuresIn(text))
  const ended = await runSharded({ files, args, node: run.node, servers: on, onOutput })
  for (const what of KINDS) run.counts[what] += ended[what]
  run.seconds += (performance.now() - started) / 1000
}

/** The lines that an option names, if it is there. */
function linesOf(option: string) {
  if (!process.argv.includes(option)) return undefined
  const lines = (process.argv[process.argv.indexOf(option) + 1] ?? '').split(',')
  const unknown = lines.filter((line) => !LINES.includes(line))
  if (unknown.length === 0) return lines
  console.error(`${option} takes some of ${LINES.join(',')}, not "${unknown.join(',')}"`)
  process.exit(2)
}

/** The path of a Node binary of this line, fetched into npm's cache the first time. */
function nodeOf(line: string) {
  // from a folder without a package.json, so that npm does not look for the package in this repository
  const args = [
    'exec',
    '--yes',
    `--package=node@${line}`,
    '--',
    'node',
    '-p',
    'process.execPath + " " + process.version',
  ]
  const { stdout, stderr } = npm(args, { cwd: tmpdir(), stdio: 'pipe', encoding: 'utf8' })
  const [node, version] = String(stdout)
    .trim()
    .split(/ (?=v\d+\.\d+\.\d+$)/)
  if (node && version?.startsWith(`v${line}.`)) return { node, version }
  return { node: undefined, version: '', problem: `no binary: ${String(stderr || stdout).trim()}` }
}

/**
 * What mocha says of the failed tests, or the end of the output when it did not come to that.
 * @param output of one process
 */
function failuresIn(output: string) {
  const at = output.search(/^ {2}\d+ failing$/m)
  if (at !== -1) return output.slice(at)
  return /^ {2}\d+ passing/m.test(output) ? '' : output.slice(-4000)
}
