// `npm run examples`: checks the types of docs/examples and runs each of them; each asserts its own outcome. Installs and
// builds what is missing, finds or starts a Redis as `npm test` does, and ends with the line `N passed, N failed`.
//
//   npm run examples -- webhooks lock-conflict     only these
import { spawn, type ChildProcess } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { ensureBuilt } from './ensure-built.js'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { describe, findRedis } from './redis.js'

const LIMIT_MS = 60_000
const dir = join(root, 'docs/examples')
const names = chosen(process.argv.slice(2))

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

await check('types', () => run([join(dir, 'node_modules/typescript/bin/tsc'), '-p', dir]))
for (const name of names) {
  await check(name, async () => {
    const before = await ownKeys()
    const problem = await run(['--import', 'tsx', `${name}.ts`])
    const left = (await ownKeys()).filter((key) => !before.includes(key))
    return problem ?? (left.length > 0 ? `It left these keys behind:\n${left.join('\n')}` : undefined)
  })
}
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

function chosen(wanted: string[]) {
  const all = readdirSync(dir)
    .filter((file) => file.endsWith('.ts') && file !== 'support.ts')
    .map((file) => file.slice(0, -'.ts'.length))
  const unknown = wanted.filter((name) => !all.includes(name))
  if (unknown.length === 0) return wanted.length > 0 ? wanted : all
  console.error(`no such example: ${unknown.join(', ')}; there are ${all.join(', ')}`)
  process.exit(2)
}
