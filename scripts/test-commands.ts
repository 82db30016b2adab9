// `npm run test:commands`: runs the commands that README.md and the pages of docs show, in their order, in an empty folder: those of the command
// line on a Redis of its own, those of the service against the built service, on another one. A command has to end with exit code 0, and a request
// with a status below 400. A block that cannot run here is in the table below, with the reason: one that is in neither is a failure, and so is a
// line of the table without its block. The tour has its own test. Ends with the line `N passed, N failed`: one for each block.
//
//   npm run test:commands -- docs/service.md docs/webhooks.md
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureServerBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { Redis } from 'ioredis'
import type { ReliableQueue } from '../src/index.js'
import { findRedis } from './redis.js'
import { startServiceProcess } from './service-process.js'
import { runShell } from './tour/shell.js'
import { stepsOf } from './tour/steps.js'

/** By the first command of the block, without its comment. */
const NOT_RUN: readonly { readonly page: string; readonly first: string; readonly reason: string }[] = [
  { page: 'README.md', first: 'npm install redelayed', reason: 'the tour runs it, with the packed library' },
  { page: 'README.md', first: 'npm run demo', reason: 'the demo and the tests are steps of CI' },
  { page: 'docs/clients.md', first: '#!/bin/sh', reason: 'npm run test:clients runs this file' },
  { page: 'docs/examples/README.md', first: 'npm run examples', reason: 'a step of CI' },
  {
    page: 'docs/examples/README.md',
    first: 'npm run build --prefix ../..',
    reason: 'npm run examples runs all examples, with the packages that npm ci would install',
  },
  {
    page: 'docs/kryo.md',
    first: "javap -private -cp target/classes com.example.shop.Order | grep -v '[({]' | grep -vE 'static|transient'",
    reason: 'the class is of the reader',
  },
  { page: 'docs/observability.md', first: 'npm install prom-client', reason: 'npm run test:pack installs it' },
  {
    page: 'docs/observability.md',
    first: 'npm install @opentelemetry/api',
    reason: 'only another package from the registry',
  },
  {
    page: 'docs/operations.md',
    first: './secrets.sh',
    reason:
      'Docker with a registry; npm run test:image builds the image, deploy.test.ts checks the files and runs secrets.sh',
  },
  {
    page: 'docs/operations.md',
    first:
      'kubectl create secret generic redelayed --from-literal=redis-url=rediss://… --from-literal=journal-url=postgres://… --from-file=api-keys',
    reason: 'a cluster of Kubernetes',
  },
  { page: 'docs/testing.md', first: 'npm test', reason: 'the steps of CI, and hours of benchmarks' },
  {
    page: 'docs/testing.md',
    first:
      'REDELAYED_TEST_MYSQLD=/usr/sbin/mysqld npm run test:server -- src/server/test/journal.test.ts --grep MariaDB',
    reason: 'a MySQL, which Debian does not have',
  },
]
const OTHER_TEST = 'docs/tour.md'
const LIMIT_MS = 120_000
const MOST_OUTPUT = 3_000
/** The commands that Ctrl-C ends, and what they print when they are up. */
const RUN_ON: readonly (readonly [command: RegExp, until: RegExp])[] = [
  [/^npx redelayed watch\b(?!.*--count)/, /pending/],
  [/^npx redelayed(-server| ui) /, /shows the queues/],
  [/^npm run serve/, /openapi\.json/],
]
/** What a page has in the place of a value, and where an earlier command of the page has printed it. */
const PRINTED: Readonly<Record<string, { readonly by: RegExp; readonly value: RegExp }>> = {
  '<ticket>': { by: /offer orders/, value: /^([\w-]{24})$/m },
  '<lease>': { by: /receive/, value: /"lease":"([^"]+)"/ },
  '<id>': { by: /endpoints/, value: /"id":"([^"]+)"/ },
}
/** The ids of dead letters that commands name. */
const MAILS = ['welcome:ada', 'welcome:bob']

interface Place {
  readonly dir: string
  readonly redisUrl: string
  readonly service: { readonly url: string; readonly key: string }
}

interface Printed {
  readonly line: string
  readonly output: string
}

const wanted = process.argv.slice(2)
const problems: string[] = []
let passed = 0
let listed = 0
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> }

const pages = ['README.md', ...pagesIn('docs')]
for (const page of new Set([...wanted, ...NOT_RUN.map((each) => each.page)]))
  if (!pages.includes(page)) fail(`there is no page ${page}`)

ensureInstalled(root, { workspaces: true })
ensureServerBuilt()
await runAll()
console.log(`${listed} blocks are not run`)
console.log(`${passed} passed, ${problems.length} failed`)
process.exit(problems.length > 0 ? 1 : 0)

/** Without what the examples have installed, which links back to this checkout. */
function pagesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory() && entry.name !== 'node_modules') return pagesIn(path)
    return entry.isFile() && path.endsWith('.md') ? [path] : []
  })
}

async function runAll(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-commands-'))
  const bin = join(dir, 'node_modules/.bin')
  mkdirSync(bin, { recursive: true })
  symlinkSync(root, join(dir, 'node_modules/redelayed'))
  symlinkSync(join(root, 'src/server'), join(dir, 'node_modules/redelayed-server'))
  symlinkSync(join(root, 'dist/cli/main.js'), join(bin, 'redelayed'))
  symlinkSync(join(root, 'src/server/dist/cli/main.js'), join(bin, 'redelayed-server'))
  // never one that is given: `move` and `--fix` change all queues of their Redis
  const [redis, redisOfService] = [await findRedis({ only: 'server' }), await findRedis({ only: 'server' })]
  const preload = pathToFileURL(join(root, 'test/schema/only-this-machine.mjs')).href
  const journal = ['--journal', `sqlite:${join(dir, 'journal.db')}`]
  const service = await startServiceProcess(redisOfService.url, journal, ['--import', preload])
  // a healthy Redis: with a file, and a consumer of each delayed queue; else the doctor ends with 1
  const { createClient } = await import('./demo/library.js')
  const client = createClient({ url: redis.url })
  for (const name of ['orders', 'reminders']) client.getDelayedQueue(client.getBlockingQueue(name))
  await client.getShardedReliableQueue('sharded', { shards: 12 }).setConfig({ visibilityTimeout: 30_000 })
  await client.getReliableQueue<string>('imports').add('a row', { group: 'tenant-7' })
  const admin = new Redis(redis.url)
  await admin.config('SET', 'appendonly', 'yes')
  admin.disconnect()
  try {
    for (const page of pages) {
      if (page === OTHER_TEST || (wanted.length > 0 && !wanted.includes(page))) continue
      await runPage(page, { dir, redisUrl: redis.url, service }, client.getReliableQueue<string>('mails'))
    }
  } finally {
    await client.shutdown()
    await service.stop()
    await redisOfService.stop()
    await redis.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

async function runPage(page: string, place: Place, mails: ReliableQueue<string>): Promise<void> {
  const text = readFileSync(join(root, page), 'utf8')
  const blocks = stepsOf(text)
  const all = text.match(/^[ >]*```(sh|bash|shell|console)\b/gm) ?? []
  if (all.length !== blocks.length) fail(`${page}: a block of commands begins with \`\`\`sh at the beginning of a line`)
  const notRun = NOT_RUN.filter((each) => each.page === page)
  const found = new Set<object>()
  const printed: Printed[] = []
  if (page === 'docs/http-api.md') await pushOne(place)
  for (const { line, commands } of blocks) {
    const begun = performance.now()
    const lines = commands
      .replaceAll('\\\n', ' ')
      .split('\n')
      .filter((command) => command.trim() !== '')
    const first = withoutComment(lines[0] ?? '')
    const row = notRun.find((each) => each.first === first && !found.has(each))
    const problem =
      unknownScript(commands) ?? (row === undefined ? await runBlock(lines, printed, place, mails) : undefined)
    if (row !== undefined) {
      found.add(row)
      listed++
      console.log(`        ${page}:${line}  not run: ${row.reason}`)
    }
    if (problem !== undefined) fail(`${page}:${line}  ${problem}`)
    else if (row === undefined) {
      passed++
      console.log(`ok      ${page}:${line}  (${((performance.now() - begun) / 1_000).toFixed(1)} s)`)
    }
  }
  for (const each of notRun) if (!found.has(each)) fail(`${page}: no block begins with "${each.first}"`)
}

/** What is wrong. */
async function runBlock(
  lines: readonly string[],
  printed: Printed[],
  place: Place,
  mails: ReliableQueue<string>,
): Promise<string | undefined> {
  for (const line of lines) {
    if (/^npx redelayed (redrive|move|batch|message|completed|config) /.test(line)) await fill(mails)
    const command = runnable(line, place).replaceAll(
      /<[a-z ]+>/g,
      (placeholder) => valueOf(placeholder, printed) ?? placeholder,
    )
    const [left] = /<[a-z ]+>/.exec(command) ?? []
    if (left !== undefined) return `${line}\nNo command before it has printed ${left}.`
    if (/[;&|]/.test(command.replaceAll(/'[^']*'|"[^"]*"/g, '')))
      return `${line}\nOne command each line, or its exit code is not seen.`
    const until = RUN_ON.find(([pattern]) => pattern.test(withoutComment(line)))?.[1]
    const { output, code, signal } = await runShell(`exec ${command}`, {
      cwd: place.dir,
      env: environment(line, place),
      limitMs: LIMIT_MS,
      ...(until !== undefined && { until }),
    })
    printed.push({ line, output })
    // what npm runs ends well after Ctrl-C, and npm by the signal
    if (code !== 0 && !(signal === 'SIGINT' && line.startsWith('npm ')))
      return `${line}\n${output.slice(-MOST_OUTPUT).trimEnd()}\nexit code ${code ?? 'none: the limit of time'}`
  }
  return undefined
}

/** A command with the addresses and the key of this run. */
function runnable(line: string, { dir, redisUrl, service }: Place): string {
  return withoutComment(line)
    .replace(/^npx redelayed (redrive|move) (?!.*--yes).*/, '$& --yes') // there is no one to ask
    .replace('--count 60', '--count 2') // rounds of a second
    .replace(/^(npx redelayed offer .*) 5s$/, '$1 5m') // on a busy machine it would be due before it is cancelled
    .replace(/^npx redelayed(-server| ui) .*/, '$& --port 0')
    .replace(/^npm run serve$/, `npm --prefix '${root}' run serve -- --port 0 --data-dir '${join(dir, 'served')}'`)
    .replace(/rediss?:\/\/(app@)?(127\.0\.0\.1:6379|redis\.internal(:\d+)?)/, redisUrl)
    .replace(/^redis-cli /, `redis-cli -u ${redisUrl} `)
    .replace('http://127.0.0.1:8080', service.url)
    .replace('<your key>', service.key)
    .replace(/^curl /, 'curl --fail-with-body --max-time 40 ')
    .replace(/^(\w+=\S+ )?npx /, 'env $1') // from node_modules/.bin, without the second that npx takes
}

/** `npm run serve` starts a Redis of its own, as it says. */
function environment(line: string, { dir, redisUrl }: Place): NodeJS.ProcessEnv {
  const path = `${join(dir, 'node_modules/.bin')}${delimiter}${process.env.PATH ?? ''}`
  return { ...process.env, PATH: path, REDIS_URL: line.startsWith('npm run serve') ? '' : redisUrl }
}

function withoutComment(line: string): string {
  return line.replace(/\s+# .*$/, '')
}

function valueOf(placeholder: string, printed: readonly Printed[]): string | undefined {
  const { by, value } = PRINTED[placeholder] ?? {}
  if (by === undefined || value === undefined) return undefined
  return printed.flatMap(({ line, output }) => (by.test(line) ? (value.exec(output)?.[1] ?? []) : [])).at(-1)
}

function unknownScript(commands: string): string | undefined {
  const names = Array.from(commands.matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g), ([, name = '']) => name)
  const unknown = names.find((name) => !(name in scripts))
  return unknown === undefined ? undefined : `package.json has no script "${unknown}"`
}

/** The batch and the dead letters that the commands name. */
async function fill(mails: ReliableQueue<string>): Promise<void> {
  if ((await mails.batch('import-7').counts()) === null) await mails.add('a row', { batch: 'import-7' })
  for (const id of MAILS) await mails.add('welcome', { id })
  for (let message = await mails.poll(); message !== null; message = await mails.poll())
    await message.negativeAcknowledge({ reject: true, error: new Error('no such address') })
}

/** A message for a receive; what the page has pushed before is due in half an hour. */
async function pushOne({ service: { url, key } }: Place): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' }
  const { status } = await fetch(`${url}/v1/topics/orders/messages`, { method: 'POST', headers, body: '{}' })
  if (status !== 201) fail(`the push of a message got a ${status}`)
}

function fail(problem: string): void {
  problems.push(problem)
  console.log(`FAILED  ${problem}`)
}
