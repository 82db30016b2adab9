// `npm run examples`: checks the types of docs/examples and runs each of them; each asserts its own outcome. Then it runs the programs in
// README.md and on the pages of docs (snippets.ts). Installs and builds what is missing, finds or starts a Redis as `npm test` does, and ends
// with the line `N passed, N failed`.
//
//   npm run examples -- webhooks lock-conflict     only these
//   npm run examples -- README.md docs/workers.md  only the programs of these pages
import { spawn, type ChildProcess } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { describe, findRedis, findServerBin, startServer } from './redis.js'
import { runSnippet, snippets, type Snippet } from './snippets.js'

const LIMIT_MS = 60_000
/** Programs of the pages. */
const AT_ONCE = 3
const dir = join(root, 'docs/examples')
const { names, programs } = chosen(process.argv.slice(2))

ensureInstalled(dir)
ensureBuilt()

const redis = await findRedis().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  console.log('0 passed, 1 failed')
  process.exit(1)
})
console.log(describe(redis))
const keys = new Redis(redis.url)
let passed = 0
let failed = 0
let running: ChildProcess | undefined
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    running?.kill('SIGKILL')
    process.exit(130) // the server that was started ends with this process
  })
}

if (names.length > 0) await check('types', () => run([join(dir, 'node_modules/typescript/bin/tsc'), '-p', dir]))
for (const name of names) {
  await check(name, async () => {
    const before = await ownKeys()
    const problem = await run(['--import', 'tsx', `${name}.ts`])
    const left = (await ownKeys()).filter((key) => !before.includes(key))
    return problem ?? (left.length > 0 ? `It left these keys behind:\n${left.join('\n')}` : undefined)
  })
}
await runAll(programs)
keys.disconnect()
await redis.stop()
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed > 0 ? 1 : 0)

/** @param action gives what is wrong */
async function check(what: string, action: () => Promise<string | undefined>) {
  const started = performance.now()
  const problem = await action()
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(`${problem === undefined ? 'ok    ' : 'FAILED'}  ${what}  (${seconds} s)`)
  if (problem === undefined) passed++
  else failed++
  if (problem !== undefined) console.log(`${problem.trimEnd()}\n`)
}

/**
 * Runs node in the folder of the examples.
 * @returns what is wrong
 */
function run(args: string[]): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: dir,
      env: { ...process.env, REDIS_URL: redis.url },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL',
    })
    running = child
    let output = ''
    const keep = (bytes: Buffer) => (output += bytes.toString())
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.once('error', reject)
    child.once('close', (code, signal) => {
      const how =
        signal === null ? `It ended with code ${code}` : `It was ended by ${signal} (the limit is ${LIMIT_MS} ms)`
      resolve(code === 0 ? undefined : `${output}${how}.`)
    })
  })
}

/** The keys on a Redis that no other program uses; on a given one their owner is unknown. */
async function ownKeys(): Promise<string[]> {
  return redis.kind === 'given' ? [] : keys.keys('*')
}

/** The programs of the pages, some at a time; each has a database of a server that no other program uses. */
async function runAll(programs: Snippet[]) {
  if (programs.length === 0) return
  const bin = redis.serverBin ?? findServerBin()
  if (bin === undefined) return check('programs in README.md and docs', async () => 'There is no redis-server on PATH.')
  const server = await startServer({ bin, args: ['--databases', `${programs.length + 1}`] })
  const own = new Redis(server.url)
  const left = programs.map((program, index) => ({ program, url: `${server.url}/${index + 1}` }))
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { program, url } = next
      await check(program.name, () => runSnippet(program, { url, redis: own }))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  own.disconnect()
  await server.stop()
}

/** All of them, or the examples and the pages that were named. */
function chosen(wanted: string[]): { names: string[]; programs: Snippet[] } {
  const names = readdirSync(dir)
    .filter((file) => file.endsWith('.ts') && file !== 'support.ts')
    .map((file) => file.slice(0, -'.ts'.length))
  const programs = snippets()
  if (wanted.length === 0) return { names, programs }
  const pages = new Set(programs.map(({ name }) => pageOf(name)))
  const unknown = wanted.filter((name) => !names.includes(name) && !pages.has(name))
  if (unknown.length === 0) {
    return {
      names: names.filter((name) => wanted.includes(name)),
      programs: programs.filter(({ name }) => wanted.includes(pageOf(name))),
    }
  }
  console.error(`no such example: ${unknown.join(', ')}; there are ${[...names, ...pages].join(', ')}`)
  process.exit(2)
}

function pageOf(snippet: string): string {
  return snippet.replace(/:\d+$/, '')
}
