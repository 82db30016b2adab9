// `npm run test:clients`: the programs of docs/examples/clients, each in its language, against the service as it is built: each
// checks its own outcome. Installs and builds what is missing, finds or starts a Redis as `npm test` does, and ends with the line
// `N passed, N failed`, and `, N skipped` if any were. A language that is not installed is skipped, in CI it is a failure. A generated client whose
// generator or libraries no registry gives is skipped, in CI too, as that says nothing of the client.
//
//   npm run test:clients -- go curl             only these
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { generatedClients, type GeneratedClient } from './generated-clients.js'
import { describe, findRedis } from './redis.js'
import { startServiceProcess } from './service-process.js'

/** Where nothing is cached, Go compiles its standard library first. */
const LIMIT_MS = 300_000
/** So long all fetches together may take, each once more where it failed. */
const FETCHES_MS = 240_000
const AGAIN_MS = 3_000
const dir = join(root, 'docs/examples/clients')
const NOT_RUN = Symbol('not run')
const LAST_LINE = 'pushed, received after its delay, acknowledged'

interface Program {
  name: string
  command: string
  args: string[]
  env?: NodeJS.ProcessEnv
  /** Without this command the language is not there. */
  needs?: string[]
}

const all: Program[] = [
  { name: 'go', command: 'go', args: ['run', 'client.go'], env: { CGO_ENABLED: '0' }, needs: ['go', 'version'] },
  { name: 'java', command: 'java', args: ['Client.java'], needs: ['java', '-version'] },
  { name: 'python', command: 'python3', args: ['client.py'], needs: ['python3', '--version'] },
  { name: 'curl', command: 'sh', args: ['client.sh'], needs: ['curl', '--version'] },
  { name: 'node', command: process.execPath, args: ['--import', 'tsx', 'client.ts'] },
]
const wanted = process.argv.slice(2)
const chosen = all.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
const generated = generatedClients.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
if (chosen.length + generated.length === 0) {
  console.error(`no such program; there are ${[...all, ...generatedClients].map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

ensureInstalled(root, { workspaces: true })
const running = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const child of running) child.kill('SIGKILL')
    process.exit(130)
  })
}
let passed = 0
let failed = 0
const skipped: string[] = []
const notFetched: string[] = []
let fetchMs = FETCHES_MS

await check('the package builds', () => runNode(['scripts/run.mjs', 'build-server'], root))
if (failed === 0) await checkAll().catch((error: unknown) => fail(String(error)))
for (const name of skipped) console.log(`SKIPPED ${name}: it is not installed`)
for (const text of notFetched) console.log(`SKIPPED ${text}`)
const left = skipped.length + notFetched.length
console.log(`${passed} passed, ${failed} failed${left > 0 ? `, ${left} skipped` : ''}`)
process.exit(failed > 0 ? 1 : 0)

async function checkAll() {
  const redis = await findRedis()
  console.log(describe(redis))
  const service = await startServiceProcess(redis.url)
  try {
    await check('the types of client.ts', () =>
      runNode([join(root, 'node_modules/typescript/bin/tsc'), '-p', dir], dir),
    )
    for (const each of chosen) {
      const { name, command, args, needs } = each
      if (needs !== undefined && (await isMissing(name, needs))) continue
      await withTopic(service, name, async (env) => {
        await check(name, async () => problemOf(await run(command, args, dir, { ...env, ...each.env })))
      })
    }
    for (const each of generated) {
      if (await isMissing(each.name, each.needs)) continue
      await withTopic(service, each.name, async (env) => {
        await check(each.name, () => runGenerated(each, service.url, env))
      })
    }
  } finally {
    await service.stop()
    await redis.stop()
  }
}

/** In a topic of its own, which is deleted afterwards. */
async function withTopic(
  service: { url: string; key: string },
  name: string,
  action: (env: NodeJS.ProcessEnv) => Promise<void>,
) {
  const topic = `clients-${process.pid}-${name}`
  await action({ REDELAYED_SERVICE: service.url, REDELAYED_KEY: service.key, REDELAYED_TOPIC: topic })
  const headers = { authorization: `Bearer ${service.key}`, connection: 'close' }
  await fetch(`${service.url}/v1/topics/${topic}?force`, { method: 'DELETE', headers })
}

/** `NOT_RUN`: a registry is away. */
async function runGenerated({ name, file, steps }: GeneratedClient, url: string, env: NodeJS.ProcessEnv) {
  const folder = mkdtempSync(join(tmpdir(), 'redelayed-client-'))
  try {
    const description = await fetch(`${url}/openapi.json`, { headers: { connection: 'close' } })
    writeFileSync(join(folder, 'openapi.json'), await description.text())
    let last = { code: 0 as number | null, output: '' }
    for (const step of steps(folder, join(dir, 'generated', file))) {
      const given = [...step.args]
      const own = { ...env, ...step.env }
      if (step.isFetch === true) {
        if (await fetched(() => run(step.command, given, folder, own, Math.max(1, fetchMs)), name)) continue
        return NOT_RUN
      }
      last = await run(step.command, given, folder, own)
      if (last.code !== 0) return `${step.command} ${step.args.join(' ')}\n${last.output}\nIt ended with ${last.code}.`
    }
    return problemOf(last)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Once more after a failure; where that fails, too, it is noted. */
async function fetched(fetch: () => Promise<{ code: number | null; output: string }>, name: string): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    const started = performance.now()
    const { code, output } = await fetch()
    fetchMs -= performance.now() - started
    if (code === 0) return true
    if (attempt < 2 && fetchMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      continue
    }
    notFetched.push(`${name}: what it needs could not be fetched from its registry: ${output.trim().slice(-500)}`)
    return false
  }
}

function problemOf({ code, output }: { code: number | null; output: string }): string | undefined {
  return code === 0 && output.trimEnd().endsWith(LAST_LINE) ? undefined : `${output}\nIt ended with ${code}.`
}

/** @param action gives what is wrong, or `NOT_RUN` */
async function check(what: string, action: () => Promise<string | typeof NOT_RUN | undefined>) {
  const started = performance.now()
  const problem = await action().catch(String)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  if (problem === NOT_RUN) {
    console.log(`SKIPPED ${what}  (${seconds} s)`)
    return
  }
  console.log(`${problem === undefined ? 'ok    ' : 'FAILED'}  ${what}  (${seconds} s)`)
  if (problem === undefined) passed++
  else fail(problem)
}

function fail(problem: string) {
  failed++
  console.log(`${problem.trimEnd()}\n`)
}

/** Notes it where a language is missing. */
async function isMissing(name: string, needs: readonly string[]): Promise<boolean> {
  if (await isThere(needs)) return false
  // nothing else would show that a language has gone from the machine of CI
  if (process.env['CI']) fail(`FAILED  ${name}: ${needs[0]} is not installed`)
  else skipped.push(name)
  return true
}

async function isThere([command = '', ...args]: readonly string[]): Promise<boolean> {
  return run(command, args, dir).then(
    ({ code }) => code === 0,
    () => false,
  )
}

async function runNode(args: string[], cwd: string): Promise<string | undefined> {
  const { code, output } = await run(process.execPath, args, cwd)
  return code === 0 ? undefined : output
}

function run(command: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = {}, limitMs = LIMIT_MS) {
  return new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    const child = start(command, args, cwd, env)
    let output = ''
    const keep = (bytes: Buffer) => (output += bytes.toString())
    child.stdout?.on('data', keep)
    child.stderr?.on('data', keep)
    const limit = setTimeout(() => child.kill('SIGKILL'), limitMs)
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(limit)
      resolve({ code, output })
    })
  })
}

function start(command: string, args: string[], cwd: string, env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  child.once('close', () => running.delete(child))
  child.once('error', () => running.delete(child))
  return child
}
