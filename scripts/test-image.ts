// `npm run test:image`: builds the image of src/server/deploy/Dockerfile and runs it beside a Redis, with the rights that compose.yaml gives it: its
// health check has to become healthy, and a message has to arrive. Where Docker's registry cannot be reached, the image of Node that the Dockerfile
// begins with is made of the Node of this machine, and REDIS_IMAGE is the Redis. Of its own it leaves no container and no image behind.
// Ends with the line `N passed, N failed`; without Docker or BuildKit, or a way from a build to npm's registry, it prints SKIPPED, and why.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { ensureInstalled, root } from './ensure-installed.mjs'
import { importLocalNode } from './image/local-node.js'

const BUILD_MS = 300_000
const PULL_MS = 120_000
/** The service is ready after about a second; the check runs every ten. */
const HEALTHY_MS = 60_000
const COMMAND_MS = 60_000
/** On Debian a newer client can lie before that of the engine, without the part that builds. */
const CLIENTS = ['docker', '/usr/bin/docker']

const deploy = join(root, 'src/server/deploy')
const dockerfile = join(deploy, 'Dockerfile')
const own = `redelayed-test-${process.pid}`
const image = own
const containers: string[] = []
const images: string[] = []
let passed = 0
let isOfficial = true

ensureInstalled(root, { workspaces: true })
const docker = await client()
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => void cleanUp(docker).finally(() => process.exit(130)))

try {
  const base = await baseImage(docker)
  if (base === undefined) {
    await cleanUp(docker)
    skip("a build does not reach npm's registry")
  }
  await check('the Dockerfile builds an image', () => build(docker, base))
  const redis = await check('a Redis runs', () => startRedis(docker))
  const service = `${own}-service`
  await check('the service runs with the rights of compose.yaml, and its health check passes', async () => {
    await startHealthy(docker, service, redis)
  })
  await check('it runs as the user node', async () => {
    const user = await run(docker, ['exec', service, 'node', '-p', 'require("os").userInfo().username'])
    if (user !== 'node') throw new Error(`it runs as ${user}`)
  })
  await check('a message arrives over the published port', () => deliver(docker, service, redis))
  await check('it ends by itself after a stop', async () => {
    await run(docker, ['stop', '--time', '40', service])
    const code = await run(docker, ['inspect', '--format', '{{.State.ExitCode}}', service])
    if (code !== '0') throw new Error(`exit code ${code}`)
  })
  console.log(`${passed} passed, 0 failed${isOfficial ? '' : ', 1 skipped'}`)
} catch (error) {
  console.log(`FAILED  ${error instanceof Error ? error.message : String(error)}`)
  const logs = containers.map(async (name) => console.log(`\n${name}:\n${await run(docker, ['logs', name])}`))
  await Promise.allSettled(logs)
  console.log(`${passed} passed, 1 failed`)
  process.exitCode = 1
} finally {
  await cleanUp(docker)
}

function skip(reason: string): never {
  console.log(`SKIPPED: the image of the Dockerfile: ${reason}.`)
  console.log(`${passed} passed, 0 failed, 1 skipped`)
  process.exit(0)
}

/** A client that reaches an engine and can build with BuildKit, which reads Dockerfile.dockerignore. */
async function client(): Promise<string> {
  let reason = 'Docker does not answer'
  for (const each of CLIENTS) {
    try {
      await run(each, ['version'])
      reason = 'this Docker builds without BuildKit'
      await run(each, ['build', '--help'])
      return each
    } catch {
      // another one may be there
    }
  }
  return skip(reason)
}

/** The arguments of a build that name its image of Node; `undefined` if the build could install nothing. */
async function baseImage(docker: string): Promise<readonly string[] | undefined> {
  const text = readFileSync(dockerfile, 'utf8')
  const [, version = ''] = /^ARG NODE=(\S+)$/m.exec(text) ?? []
  const [, suffix = ''] = /^FROM node:\$\{NODE\}(\S*)/m.exec(text) ?? []
  if (await pulled(docker, `node:${version}${suffix}`)) return []
  // a name that Docker's registry does not have, so that the real image stays the real one
  const local = `local-${process.pid}`
  const name = `node:${local}${suffix}`
  isOfficial = false
  console.log(
    `SKIPPED: the image of Node of the Dockerfile: no registry. Here the Node of this machine, ${process.version}, is ${name}.`,
  )
  images.push(name)
  importLocalNode(docker, name)
  // the network of an engine without a firewall leads nowhere
  const network = ['--network', 'host']
  await run(docker, ['run', '--rm', name, 'npm', '--version'])
  try {
    await run(docker, ['run', '--rm', ...network, name, 'npm', 'view', 'ioredis', 'version'])
  } catch {
    return undefined
  }
  return ['--build-arg', `NODE=${local}`, ...network]
}

async function build(docker: string, base: readonly string[]): Promise<void> {
  images.push(image)
  await run(docker, ['build', '--progress', 'plain', '--file', dockerfile, '--tag', image, ...base, root], BUILD_MS)
}

/** Whether the image is there, or could be fetched; one that the registry does not have is an error. */
async function pulled(docker: string, name: string): Promise<boolean> {
  try {
    await run(docker, ['image', 'inspect', name]).catch(() => run(docker, ['pull', name], PULL_MS))
    return true
  } catch (error) {
    if (/manifest unknown|manifest for .* not found/i.test(String(error))) throw error
    return false
  }
}

/** @returns the name of its container; the service shares its network, so its port is published there */
async function startRedis(docker: string): Promise<string> {
  const name = `${own}-redis`
  const { services } = parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8')) as { services: { redis: Instance } }
  const redis = process.env['REDIS_IMAGE'] || services.redis.image
  if (!(await pulled(docker, redis)))
    throw new Error(`the image ${redis} cannot be fetched; name another one with REDIS_IMAGE`)
  containers.push(name)
  await run(docker, ['run', '--detach', '--name', name, '--publish', '127.0.0.1::8080', redis], PULL_MS)
  return name
}

interface Instance {
  readonly image: string
  readonly read_only: boolean
  readonly tmpfs: readonly string[]
  readonly cap_drop: readonly string[]
  readonly security_opt: readonly string[]
}

async function startHealthy(docker: string, name: string, redis: string): Promise<void> {
  const compose = parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8')) as { 'x-instance': Instance }
  const { read_only, tmpfs, cap_drop, security_opt } = compose['x-instance']
  const rights = [
    ...(read_only ? ['--read-only'] : []),
    ...tmpfs.flatMap((each) => ['--tmpfs', each]),
    ...cap_drop.flatMap((each) => ['--cap-drop', each]),
    ...security_opt.flatMap((each) => ['--security-opt', each]),
  ]
  const settings = { REDELAYED_REDIS: 'redis://127.0.0.1:6379', REDELAYED_JOURNAL: 'sqlite:/data/journal.db' }
  const variables = Object.entries(settings).flatMap(([key, value]) => ['--env', `${key}=${value}`])
  containers.push(name)
  const begun = Date.now()
  const ends = Math.ceil((begun + HEALTHY_MS) / 1_000)
  await run(docker, [
    'run',
    '--detach',
    '--name',
    name,
    '--network',
    `container:${redis}`,
    ...rights,
    ...variables,
    image,
  ])
  const since = Math.floor(begun / 1_000)
  const events = ['events', '--since', `${since}`, '--until', `${ends}`, '--filter', `container=${name}`]
  const status = await firstMatch(docker, [...events, '--format', '{{.Action}}'], /health_status: (\w+)|^(die)$/m)
  if (status !== 'healthy') throw new Error(`the service did not become healthy: ${status ?? 'it never said'}`)
  console.log(`        healthy after ${((Date.now() - begun) / 1_000).toFixed(1)} s`)
}

/** Pushes a message and receives it, with the key that the service has printed at its first start. */
async function deliver(docker: string, service: string, redis: string): Promise<void> {
  const [key = ''] = /\brdk_[0-9a-f]{12}_[\w-]{43}\b/.exec(await run(docker, ['logs', service])) ?? []
  const address = (await run(docker, ['port', redis, '8080/tcp'])).split('\n', 1)[0] ?? ''
  const ask = async (path: string, body: object): Promise<string> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' }
    const response = await fetch(`http://${address}/v1/topics/orders/${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return text
  }
  await ask('messages', { delay: 100, body: { order: 7 } })
  const { messages } = JSON.parse(await ask('receive', { wait: 10_000 })) as { messages: { body: unknown }[] }
  if (JSON.stringify(messages.map(({ body }) => body)) !== '[{"order":7}]')
    throw new Error(`received ${JSON.stringify(messages)}`)
}

async function cleanUp(docker: string): Promise<void> {
  for (const name of containers.splice(0).reverse())
    await run(docker, ['rm', '--force', '--volumes', name]).catch(() => undefined)
  for (const name of images.splice(0).reverse()) await run(docker, ['rmi', '--force', name]).catch(() => undefined)
}

async function check<T>(what: string, does: () => Promise<T>): Promise<T> {
  const begun = performance.now()
  try {
    const result = await does()
    passed++
    console.log(`ok      ${what}  (${((performance.now() - begun) / 1_000).toFixed(1)} s)`)
    return result
  } catch (error) {
    throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

/** @returns what it printed */
function run(command: string, args: readonly string[], limit = COMMAND_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, DOCKER_BUILDKIT: '1' }
    const child = spawn(command, args, { env, timeout: limit, stdio: ['ignore', 'pipe', 'pipe'] })
    let [output, printed] = ['', '']
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString()
      printed += bytes.toString()
    })
    child.stderr.on('data', (bytes: Buffer) => void (output += bytes.toString()))
    child.once('error', reject)
    child.once('close', (code, signal) => {
      if (code === 0) resolve(printed.trim())
      else reject(new Error(`docker ${args[0]} ended with ${signal ?? code}:\n${output.slice(-4_000)}`))
    })
  })
}

/** The first group of the first match in the output of a command, which is ended then; `undefined` if it ends before. */
function firstMatch(command: string, args: readonly string[], pattern: RegExp): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    let found: string | undefined
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString()
      found ??= pattern.exec(output)?.slice(1).find(Boolean)
      if (found !== undefined) child.kill()
    })
    child.once('error', reject)
    child.once('close', () => resolve(found))
  })
}
