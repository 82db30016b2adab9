// `npm run test:jvm`: the library against Redisson itself. Builds the small Java program of test/jvm once per Redisson
// version, starts a Redis of its own, runs test/jvm/*.jvm.ts, and compares what passed with docs/compatibility.md. Ends with
// the line `N passed, N failed`.
//
//   npm run test:jvm -- --versions 4.x         only these (3.20.1, 3.x, 4.7 ...), without the comparison
//   npm run test:jvm -- --grep "name mapper"   options go to mocha; then too there is no comparison
//   npm run test:jvm -- --write                writes docs/compatibility.md instead
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import zlib from 'node:zlib'
import { npm, root } from './ensure-installed.mjs'
import { runMocha, summary } from './mocha.js'
import { findServerBin, startServer, which } from './redis.js'

/**
 * The oldest in use with the old entry format, the last 3.x, and the newest. To raise the newest:
 *   mvn versions:display-dependency-updates -f test/jvm/pom.xml
 * then copy the versions of the libraries from the POM of that Redisson, where they stand as "provided", here and into
 * test/jvm/pom.xml, and run with --write.
 */
const VERSIONS = [
  {
    redisson: '3.20.1',
    libraries: {
      ...{ 'jackson.version': '2.14.2', 'msgpack.version': '0.9.1', 'slf4j.version': '1.7.36' },
      ...{ 'lz4.group': 'org.lz4', 'lz4.version': '1.8.0', 'snappy.version': '1.1.9.1', 'zstd.version': '1.5.6-7' },
    },
  },
  {
    redisson: '3.52.0',
    libraries: {
      ...{ 'jackson.version': '2.20.0', 'msgpack.version': '0.9.9', 'slf4j.version': '2.0.17' },
      ...{ 'lz4.group': 'org.lz4', 'lz4.version': '1.8.0', 'snappy.version': '1.1.10.7', 'zstd.version': '1.5.6-7' },
    },
  },
  // those of the POM; its msgpack 0.9.12 is not on Maven Central
  { redisson: '4.7.0', libraries: {} },
]
const PAGE = 'docs/compatibility.md'
const MIN_JAVA = 17

interface Cell {
  table: 'scenarios' | 'codecs'
  row: string
  version: string
  direction?: string
  outcome: string
}

const { versions, write, args } = readArgs(process.argv.slice(2))
const complete = versions.length === VERSIONS.length && args.length === 0
const missing = missingTools()
if (missing) {
  console.error(`\n*** SKIPPED: the JVM tests need ${missing}.\n*** Nothing was tested against Redisson.\n`)
  console.log(process.env.CI ? '0 passed, 1 failed' : '0 passed, 0 failed, all skipped')
  process.exit(process.env.CI ? 1 : 0)
}

const dir = mkdtempSync(join(tmpdir(), 'redelayed-jvm-'))
const node = nodeWithZstd()
const built = versions.map((version) => ({ version: version.redisson, classpath: build(version) }))
const server = await startServer({ bin: findServerBin() as string, args: ['--save', ''] })
const cellsFile = join(dir, 'cells.json')
process.on('exit', () => rmSync(dir, { recursive: true, force: true }))

const counts = await runMocha({
  node,
  args: [...args, ...testFiles()],
  env: { REDIS_URL: server.url, REDELAYED_JVM_BUILDS: JSON.stringify(built), REDELAYED_JVM_CELLS: cellsFile },
}).finally(() => server.stop())

const cells = existsSync(cellsFile) ? (JSON.parse(readFileSync(cellsFile, 'utf8')) as Cell[]) : []
const page = render(complete ? cells : cells.filter(({ outcome }) => outcome !== 'not run'))
console.log(page.slice(page.indexOf('## ')))
if (!complete) {
  console.log(`A part only: ${PAGE} was neither compared nor written.`)
} else if (write) {
  writeFileSync(join(root, PAGE), page)
  console.log(`Wrote ${PAGE}.`)
} else if (!existsSync(join(root, PAGE)) || readFileSync(join(root, PAGE), 'utf8') !== page) {
  console.error(`${PAGE} does not say what this run found. See the difference with \`npm run test:jvm -- --write\`.`)
  counts.failed++
} else {
  counts.passed++
}
console.log(summary(counts))
process.exit(counts.failed > 0 ? 1 : 0)

function readArgs(given: string[]) {
  const args = [...given]
  const writeAt = args.indexOf('--write')
  if (writeAt !== -1) args.splice(writeAt, 1)
  const at = args.findIndex((arg) => arg === '--versions' || arg.startsWith('--versions='))
  if (at === -1) return { versions: VERSIONS, write: writeAt !== -1, args }
  const wanted = (args[at]?.split('=')[1] ?? args.splice(at + 1, 1)[0] ?? '').split(',')
  args.splice(at, 1)
  const matches = (version: string) => wanted.some((part) => `${version}.`.startsWith(`${part.replace(/\.x$/, '')}.`))
  const versions = VERSIONS.filter(({ redisson }) => matches(redisson))
  if (versions.length === 0) {
    console.error(
      `--versions takes some of ${VERSIONS.map(({ redisson }) => redisson).join(',')}, or beginnings like 4.x`,
    )
    process.exit(2)
  }
  return { versions, write: writeAt !== -1, args }
}

/** What has to be installed first, if anything. */
function missingTools() {
  if (!which('java')) return `Java ${MIN_JAVA} or later on PATH`
  const { stderr } = spawnSync('java', ['-version'], { encoding: 'utf8' })
  const java = Number(/version "(\d+)/.exec(stderr)?.[1])
  if (!(java >= MIN_JAVA)) return `Java ${MIN_JAVA} or later; this is ${stderr.split('\n')[0]}`
  if (!which('mvn')) return 'Maven (mvn) on PATH'
  if (!findServerBin()) return 'redis-server or valkey-server on PATH'
  return undefined
}

/** A Node whose zlib has what Redisson's ZStdCodec writes: this one, or a later one from the npm package `node`. */
function nodeWithZstd() {
  if ('zstdCompressSync' in zlib) return process.execPath
  const args = ['exec', '--yes', '--package=node@22', '--', 'node', '-p', 'process.execPath']
  const { status, stdout, stderr } = npm(args, { cwd: dir, stdio: 'pipe', encoding: 'utf8' })
  if (status === 0) return String(stdout).trim()
  console.error(
    `Node ${process.versions.node} has no Zstandard, and no later Node could be fetched:\n${String(stderr)}`,
  )
  console.log('0 passed, 1 failed')
  process.exit(1)
}

/** Compiles the Java side against one Redisson, unless that has been done from the same sources. Gives the class path. */
function build({ redisson, libraries }: (typeof VERSIONS)[number]) {
  const dir = join(root, '.cache/jvm', redisson)
  const classpathFile = join(dir, 'classpath.txt')
  const stampFile = join(dir, 'built-from')
  const properties = Object.entries({ 'redisson.version': redisson, 'build.dir': dir, ...libraries }).map(
    ([key, value]) => `-D${key}=${value}`,
  )
  const stamp = fingerprint(properties)
  const classpath = () => [join(dir, 'classes'), ...readFileSync(classpathFile, 'utf8').trim().split(delimiter)]
  if (
    existsSync(stampFile) &&
    readFileSync(stampFile, 'utf8') === stamp &&
    classpath().every((path) => existsSync(path))
  ) {
    return classpath().join(delimiter)
  }
  const started = performance.now()
  console.log(`Building the Java side with Redisson ${redisson} ...`)
  mkdirSync(dir, { recursive: true })
  const maven = (options: string[]) =>
    spawnSync(
      'mvn',
      [
        ...options,
        '--batch-mode',
        '--quiet',
        '-f',
        join(root, 'test/jvm/pom.xml'),
        ...properties,
        'compile',
        'dependency:build-classpath',
      ],
      { cwd: root, encoding: 'utf8' },
    )
  let result = maven(['--offline'])
  if (result.status !== 0) result = maven([]) // something is not in the local repository yet
  if (result.status !== 0) {
    console.error(`Maven failed for Redisson ${redisson}:\n${result.stdout}${result.stderr}`)
    console.log('0 passed, 1 failed')
    process.exit(1)
  }
  writeFileSync(stampFile, stamp)
  console.log(`Built in ${Math.round((performance.now() - started) / 1000)} s.`)
  return classpath().join(delimiter)
}

/** @param properties what a build depends on besides pom and sources */
function fingerprint(properties: string[]) {
  const hash = createHash('sha256').update(properties.join('\n'))
  const files = [join(root, 'test/jvm/pom.xml')]
  const sources = join(root, 'test/jvm/src')
  for (const file of readdirSync(sources, { recursive: true, encoding: 'utf8' }).sort()) files.push(join(sources, file))
  for (const file of files) if (statSync(file).isFile()) hash.update(file.slice(root.length)).update(readFileSync(file))
  return hash.digest('hex')
}

function testFiles() {
  return readdirSync(join(root, 'test/jvm'))
    .filter((file) => file.endsWith('.jvm.ts'))
    .map((file) => `test/jvm/${file}`)
}

/** The page from the cells alone, so that two runs that found the same write the same. */
function render(cells: Cell[]) {
  const names = versions.map(({ redisson }) => redisson)
  const directions = ['Java → Node', 'Node → Java']
  const rows = (table: Cell['table']) => [
    ...new Set(cells.filter((cell) => cell.table === table).map(({ row }) => row)),
  ]
  const notes: string[] = []
  const outcome = (wanted: Partial<Cell>) => {
    const found = cells.find((cell) =>
      Object.entries(wanted).every(([key, value]) => cell[key as keyof Cell] === value),
    )
    const [, reservation] = /^ok, (.*)$/.exec(found?.outcome ?? '') ?? []
    if (reservation === undefined) return found?.outcome ?? 'not run'
    if (!notes.includes(reservation)) notes.push(reservation)
    return `ok (${notes.indexOf(reservation) + 1})`
  }
  const line = (parts: string[]) => `| ${parts.join(' | ')} |`
  const table = (head: string[], body: string[][]) =>
    [line(head), line(head.map(() => '---')), ...body.map(line)].join('\n')

  const scenarios = rows('scenarios').map((row) => [
    row,
    ...names.map((version) => outcome({ table: 'scenarios', row, version })),
  ])
  const codecs = rows('codecs').map((row) => [
    row,
    ...names.flatMap((version) => directions.map((direction) => outcome({ table: 'codecs', row, version, direction }))),
  ])
  return `# Compatibility with Redisson

Written by \`npm run test:jvm -- --write\`; \`npm run test:jvm\` fails when it finds something else. It runs the real Redisson
${names.join(', ')} on a JVM, and this package on the other side, on one Redis.

Redisson 3.20.1 represents all versions before 3.21.1: they write another entry format, which this package reads, and get stuck on the
later one, as they do beside a newer Redisson.

## Codecs

For each cell one side offers every kind of value that the codec has, and the other side takes it.

${table(['codec', ...names.flatMap((version) => directions.map((direction) => `${version}: ${direction}`))], codecs)}
${notes.map((note, i) => `\n(${i + 1}) ${note}\n`).join('')}
## Scenarios

${table(['scenario', ...names], scenarios)}
`
}
