// Finds or starts the Redis that tests, demo and benchmarks run against, so that a newcomer needs to set up nothing.
// Order for tests: a given URL, a server on PATH, Docker, apt as root. For the demo: a given URL, a server on PATH, the
// in-process emulator, Docker. It starts everything on a free loopback port with a directory of its own, and stops only
// what it started.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Redis } from 'ioredis'
import { reservePort } from './reserved-ports.js'

const HOST = '127.0.0.1'
const READY_TIMEOUT_MS = 10_000
const STOP_TIMEOUT_MS = 5_000

const running = new Set<ChildProcess>()

type RedisKind = 'given' | 'server' | 'emulator' | 'docker'

export interface FoundRedis {
  url: string
  kind: RedisKind
  version: string
  serverBin?: string
  protocol?: 2
  stop(): Promise<void>
}

type Only = 'url' | 'server' | 'docker' | 'emulator'

interface ServerOptions {
  bin: string
  args?: string[]
  dir?: string
  port?: number
  env?: NodeJS.ProcessEnv
}

export interface RedisServer {
  url: string
  port: number
  dir: string
  readonly pid: number
  readonly process: ChildProcess
  stop(): Promise<void>
  kill(signal?: NodeJS.Signals): Promise<void>
  restart(args?: string[]): Promise<void>
}

/** @param options `only` forces one way (`server` includes apt); `url` goes before REDIS_URL. */
export async function findRedis({
  allowEmulator = false,
  url,
  only,
  log = console.log,
}: { allowEmulator?: boolean; url?: string; only?: Only; log?: (line: string) => void } = {}): Promise<FoundRedis> {
  const tried: string[] = []
  const given = url ?? process.env.REDIS_URL
  const wanted = (way: Only) => only === undefined || only === way
  const serverBin = findServerBin()

  if (wanted('url') && given) return useGiven(given, serverBin)
  if (wanted('url')) tried.push('REDIS_URL is not set')

  if (wanted('server') && serverBin) return useServer(serverBin)
  if (wanted('server')) tried.push('there is no redis-server or valkey-server on PATH')

  if (only === 'emulator' || (allowEmulator && only === undefined)) {
    const found = await useEmulator(log).catch(
      (error: unknown) => void tried.push(`the emulator did not start: ${firstLine(error)}`),
    )
    if (found) return found
  }
  if (wanted('docker')) {
    const found = await useDocker(serverBin).catch((error: unknown) => void tried.push(`Docker: ${firstLine(error)}`))
    if (found) return found
  }
  if (wanted('server') && !allowEmulator) {
    const installed = installWithApt(log)
    if (installed) return useServer(installed)
  }
  throw new Error(`No Redis to run against: ${tried.join('; ')}.\n${installHint()}`)
}

/**
 * Starts one server on its own port and directory, and waits until it answers.
 * @param options `args` stand last, so they win; without `dir` a temporary one is made and deleted.
 */
export async function startServer({ bin, args = [], dir, port, env = {} }: ServerOptions): Promise<RedisServer> {
  const ownDir = dir === undefined
  const home = dir ?? mkdtempSync(join(tmpdir(), 'redelayed-redis-'))
  mkdirSync(home, { recursive: true })
  let usedPort = port ?? (await freePort())
  const start = async () => {
    for (;;) {
      try {
        return await launch(bin, args, home, usedPort, env)
      } catch (error) {
        if (port !== undefined || !/address already in use/i.test(String(error))) throw error
        usedPort = await freePort() // another process was faster
      }
    }
  }
  let child = await start().catch((error: unknown) => {
    if (ownDir) rmSync(home, { recursive: true, force: true })
    throw error
  })
  const url = `redis://${HOST}:${usedPort}`

  const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
    if (hasEnded(child)) return
    child.kill(signal)
    if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await ended(child)
  }
  return {
    url,
    port: usedPort,
    dir: home,
    get pid() {
      return child.pid as number
    },
    get process() {
      return child
    },
    kill,
    async stop() {
      if (!hasEnded(child)) {
        child.kill('SIGCONT')
        const lastResort = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
        await kill('SIGTERM')
        clearTimeout(lastResort)
      }
      if (ownDir) rmSync(home, { recursive: true, force: true })
    },
    async restart(others = args) {
      if (!hasEnded(child)) {
        child.kill('SIGCONT')
        await kill('SIGTERM')
      }
      child = await launch(bin, others, home, usedPort, env)
    },
  }
}

/** The path of a program on PATH. */
export function which(name: string): string | undefined {
  for (const dir of (process.env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const path = join(dir, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // not in this folder
    }
  }
  return undefined
}

/** @returns the server to spawn: REDIS_SERVER_BIN, or the first one on PATH */
export function findServerBin(): string | undefined {
  return process.env.REDIS_SERVER_BIN || which('redis-server') || which('valkey-server')
}

/**
 * Below the ports that systems give to outgoing connections and to `listen(0)`, which could take the port of a server that restarts.
 */
const PORTS = { from: 10_000, to: 20_000 }

/** A node of a cluster listens on the port that is so much higher, too. */
const BUS_OFFSET = 10_000

/** A port that no process listens on now, that a node of a cluster can have, and that no other process gets while this one lives. */
export async function freePort({ from, to } = PORTS): Promise<number> {
  for (;;) {
    const port = randomInt(from, to)
    if ((await isFree(port)) && (await isFree(port + BUS_OFFSET)) && reservePort(port)) return port
  }
}

export function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, HOST, () => server.close(() => resolve(true)))
  })
}

/** @returns one line for people */
export function describe({ kind, version, url, serverBin }: FoundRedis): string {
  const where = withoutPassword(url)
  if (kind === 'given') return `Redis: ${version} at ${where}, as given`
  if (kind === 'server') return `Redis: ${version}, own ${serverBin} at ${where}`
  if (kind === 'docker') return `Redis: ${version}, own container at ${where}`
  return `Redis: js-redis-server (emulator) at ${where}`
}

async function useGiven(url: string, serverBin: string | undefined): Promise<FoundRedis> {
  const version = await ping(url, READY_TIMEOUT_MS).catch((error: unknown) => {
    throw new Error(`The given Redis ${withoutPassword(url)} does not answer: ${firstLine(error)}`)
  })
  return { url, kind: 'given', version, ...(serverBin && { serverBin }), stop: async () => {} }
}

async function useServer(serverBin: string): Promise<FoundRedis> {
  const server = await startServer({ bin: serverBin })
  return { url: server.url, kind: 'server', version: await ping(server.url), serverBin, stop: () => server.stop() }
}

async function useEmulator(log: (line: string) => void): Promise<FoundRedis> {
  const { createRedisServer } = await import('js-redis-server')
  const server = await createRedisServer({ port: 0 })
  log(
    'Using js-redis-server, an emulator in this process: good for a look, not for measurements or data you want to keep.',
  )
  const url = `redis://${HOST}:${server.port}`
  return { url, kind: 'emulator', version: await ping(url), protocol: 2, stop: () => server.close() }
}

async function useDocker(serverBin: string | undefined): Promise<FoundRedis> {
  const { GenericContainer, Wait } = await import('testcontainers')
  const container = await new GenericContainer(process.env.REDIS_IMAGE || 'redis:7-alpine')
    .withExposedPorts(6379)
    .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/))
    .start()
  const stop = async () => void (await container.stop())
  const url = `redis://${container.getHost()}:${container.getMappedPort(6379)}`
  try {
    return { url, kind: 'docker', version: await ping(url), ...(serverBin && { serverBin }), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function installWithApt(log: (line: string) => void): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !which('apt-get')) return undefined
  log('No redis-server found: installing it with apt-get')
  // RUNLEVEL=1 keeps the package from starting a system-wide server
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', 'redis-server']]) {
    const { status } = spawnSync('apt-get', ['-qq', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
    if (status !== 0) return undefined
  }
  return findServerBin()
}

async function launch(
  bin: string,
  args: string[],
  dir: string,
  port: number,
  env: NodeJS.ProcessEnv,
): Promise<ChildProcess> {
  const defaults = ['--port', `${port}`, '--bind', HOST, '--dir', dir, '--save', '', '--appendonly', 'no']
  // A sentinel reads a file, which must be the first argument, and knows none of the options above but the port.
  const sentinel = args.includes('--sentinel')
  const child = spawn(bin, sentinel ? [...args, '--port', `${port}`] : [...defaults, ...args], {
    cwd: dir,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const keep = (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4000))
  child.stdout?.on('data', keep)
  child.stderr?.on('data', keep)
  unref(child)

  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`${bin} ended with code ${code}:\n${output.trim()}`)))
  })
  const giveUp = new AbortController()
  failed.catch(() => giveUp.abort())
  try {
    const answer = await Promise.race([ask(`redis://${HOST}:${port}`, READY_TIMEOUT_MS, giveUp.signal), failed])
    // the server of another process, which was faster on this port
    if (answer.pid !== undefined && answer.pid !== child.pid) throw new Error(`${HOST}:${port}: address already in use`)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  return child
}

/** Lets this process end while the server still runs (it is killed on the way out), and keeps it from counting as a leak. */
function unref(child: ChildProcess) {
  child.unref()
  for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref()
  if (running.size === 0) process.once('exit', killAll)
  running.add(child)
  child.once('exit', () => {
    running.delete(child)
    if (running.size === 0) process.removeListener('exit', killAll)
  })
}

function killAll() {
  for (const child of running) child.kill('SIGKILL')
}

function hasEnded(child: ChildProcess) {
  return child.exitCode !== null || child.signalCode !== null
}

function ended(child: ChildProcess): Promise<void> {
  child.ref()
  return new Promise((resolve) => {
    if (hasEnded(child)) resolve()
    else child.once('exit', () => resolve())
  })
}

/** The version of a server, once it answers. */
async function ping(url: string, timeoutMs?: number) {
  return (await ask(url, timeoutMs)).version
}

/**
 * Waits until a server answers and has loaded its data.
 * @returns without a process id where a password is wanted
 */
async function ask(
  url: string,
  timeoutMs = READY_TIMEOUT_MS,
  signal?: AbortSignal,
): Promise<{ version: string; pid: number | undefined }> {
  const deadline = performance.now() + timeoutMs
  const redis = new Redis(url, {
    protocol: 2,
    lazyConnect: true,
    connectTimeout: timeoutMs,
    maxRetriesPerRequest: null,
    retryStrategy: () => (performance.now() < deadline && !signal?.aborted ? 10 : null),
  })
  let lastError: Error | undefined
  redis.on('error', (error) => (lastError = error))
  try {
    await redis.connect().catch(() => {})
    const info = await withTimeout(redis.info('server'), deadline - performance.now(), () => lastError).catch(
      (error: unknown) => {
        if (/NOAUTH/.test(String(error))) return '' // it is up, and wants a password that only the caller knows
        throw error
      },
    )
    const version = /^valkey_version:(\S+)/m.exec(info)?.[1] ?? /^redis_version:(\S+)/m.exec(info)?.[1]
    const pid = /^process_id:(\d+)/m.exec(info)?.[1]
    return { version: version ?? 'unknown', pid: pid === undefined ? undefined : Number(pid) }
  } finally {
    // On a connection that has ended, disconnect() would only leave a timer of two seconds behind.
    if (redis.status !== 'end') redis.disconnect()
  }
}

async function withTimeout<T>(promise: Promise<T>, ms: number, reason: () => Error | undefined): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(reason() ?? new Error(`no answer within ${Math.round(ms)} ms`)), Math.max(0, ms))
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}

function firstLine(error: unknown) {
  return (error instanceof Error ? error.message || error.name : String(error)).split('\n')[0]
}

function withoutPassword(url: string) {
  return url.replace(/\/\/[^@/]*@/, '//')
}

function installHint() {
  if (process.platform === 'darwin') return 'Install one with `brew install redis`, start Docker, or set REDIS_URL.'
  if (process.platform === 'win32') return 'Start Docker Desktop or a Redis in WSL, or set REDIS_URL.'
  if (which('apt-get')) return 'Install one with `sudo apt-get install redis-server`, start Docker, or set REDIS_URL.'
  if (which('dnf')) return 'Install one with `sudo dnf install redis` (or valkey), start Docker, or set REDIS_URL.'
  if (which('apk')) return 'Install one with `apk add redis`, start Docker, or set REDIS_URL.'
  return 'Install redis-server or valkey-server, start Docker, or set REDIS_URL.'
}
