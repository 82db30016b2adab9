import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { accessSync, constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, connect, type AddressInfo } from 'node:net'
import { delimiter, join, resolve } from 'node:path'
import { RedelayedError } from 'redelayed'

/** A Redis server that the service started itself. */
export interface OwnRedis {
  readonly url: string
  /** A description for people. */
  readonly what: string
  /** Whether it keeps its data when it stops. */
  readonly isDurable: boolean
  /** Rejects when the server ends by itself. */
  readonly ended: Promise<never>
  stop(): Promise<void>
}

interface Access {
  readonly port: number
  readonly password: string
}

/** The stored record of a folder's server, whether it runs or not. */
interface Running extends Access {
  readonly pid: number
  /** The service that started it, or uses it now. */
  readonly owner: number
}

const HOST = '127.0.0.1'
const START_MS = 60_000
const STOP_MS = 10_000

/**
 * Starts a `redis-server` or `valkey-server` from PATH, which writes each change to `dataDir`. Only this user can reach it: it listens on
 * the loopback address and has a random password. If an earlier run left a server on the same folder running, that one is used.
 *
 * @throws RedelayedError the server does not start
 */
export async function startOwnRedis(dataDir: string): Promise<OwnRedis | undefined> {
  const program = programOnPath(['redis-server', 'valkey-server'])
  if (program === undefined) return undefined
  const dir = resolve(dataDir, 'redis')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const note = join(dir, 'running.json')
  const what = `${program}, data in ${dir}`
  const left = readNote(note)
  const write = (pid: number, { port, password }: Access): void => {
    writeFileSync(note, JSON.stringify({ pid, owner: process.pid, port, password } satisfies Running), { mode: 0o600 })
  }
  if (left !== undefined && (await becomesReady(left))) {
    if (isAlive(left.owner))
      throw new RedelayedError(
        'ERR_OWN_REDIS',
        `process ${left.owner} uses the Redis in ${dir}: stop it, or give this service another --data-dir`,
      )
    write(left.pid, left)
    return adopted(left, what)
  }
  // The folder keeps its port: a server binds it before it reads its data, so that two can never write the same files.
  const { port, password } = left ?? { port: await freePort(), password: randomBytes(24).toString('base64url') }
  const running = await launch(program, dir, { port, password }, (pid) => {
    write(pid, { port, password })
  })
  return {
    url: urlOf({ port, password }),
    what,
    isDurable: true,
    ended: running.ended,
    stop: () => stop(running.child),
  }
}

/** Starts the emulator in this process, if it is installed. It keeps no data when it stops. */
export async function startEmulator(): Promise<OwnRedis | undefined> {
  const name = 'js-redis-server'
  const module = (await import(name).catch(() => undefined)) as
    { createRedisServer(options: { port: number }): Promise<{ port: number; close(): Promise<void> }> } | undefined
  if (module === undefined) return undefined
  const server = await module.createRedisServer({ port: 0 })
  return {
    url: `redis://${HOST}:${server.port}`,
    what: 'js-redis-server, an emulator in this process',
    isDurable: false,
    ended: new Promise<never>(() => undefined),
    stop: () => server.close(),
  }
}

function programOnPath(names: readonly string[]): string | undefined {
  const dirs = (process.env['PATH'] ?? '').split(delimiter).filter((dir) => dir !== '')
  return names.flatMap((name) => dirs.map((dir) => join(dir, name))).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function launch(
  program: string,
  dir: string,
  { port, password }: Access,
  onStarted: (pid: number) => void,
): Promise<{ child: ChildProcess; ended: Promise<never> }> {
  // The configuration goes through stdin: everyone can see arguments. Detached, so that a Ctrl-C reaches only the service, which stops its
  // Redis last.
  const child = spawn(program, ['-'], { cwd: dir, stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  if (child.pid !== undefined) onStarted(child.pid)
  let output = ''
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-2_000)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  child.stdin.on('error', () => undefined)
  child.stdin.end(
    [
      `port ${port}`,
      `bind ${HOST}`,
      `requirepass ${password}`,
      'appendonly yes',
      'appendfsync everysec',
      'save ""',
      '',
    ].join('\n'),
  )
  const ended = new Promise<never>((_, reject) => {
    const fail = (why: string): void =>
      reject(new RedelayedError('ERR_OWN_REDIS', `${program} ${why}:\n${output.trim()}`))
    child.once('error', (error) => fail(`does not start (${error.message})`))
    child.once('exit', (code, signal) => fail(`has ended (${signal ?? code})`))
  })
  ended.catch(() => undefined)
  if (!(await Promise.race([becomesReady({ port, password }, START_MS), ended]))) {
    child.kill('SIGKILL')
    throw new RedelayedError('ERR_OWN_REDIS', `${program} does not answer:\n${output.trim()}`)
  }
  return { child, ended }
}

/** Waits up to `ms` for a server that starts; while it loads its data the wait is extended. */
async function becomesReady(access: Access, ms = 0): Promise<boolean> {
  for (let until = Date.now() + ms; ;) {
    const state = await stateOf(access)
    if (state === 'ready') return true
    if (state === 'loading') until = Date.now() + START_MS
    if (Date.now() >= until) return false
    await new Promise((go) => setTimeout(go, 20))
  }
}

function adopted(left: Running, what: string): OwnRedis {
  return {
    url: urlOf(left),
    what: `${what} (it was still running)`,
    isDurable: true,
    ended: new Promise<never>(() => undefined),
    stop: async () => {
      const socket = connect(left.port, HOST)
      socket.on('error', () => undefined)
      socket.write(`AUTH ${left.password}\r\nSHUTDOWN\r\n`)
      const until = Date.now() + STOP_MS
      while (Date.now() < until && (await stateOf(left)) !== 'none') await new Promise((go) => setTimeout(go, 50))
      socket.destroy()
    },
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((go) => child.once('exit', go))
  const lastResort = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  child.kill('SIGTERM')
  await exited
  clearTimeout(lastResort)
}

/** The state of the server on a port, checked with its password. */
function stateOf({ port, password }: Access): Promise<'ready' | 'loading' | 'none'> {
  return new Promise((go) => {
    const socket = connect(port, HOST)
    const end = (state: 'ready' | 'loading' | 'none'): void => {
      socket.destroy()
      go(state)
    }
    socket.setTimeout(5_000, () => end('none'))
    socket.once('error', () => end('none'))
    socket.once('close', () => end('none'))
    socket.once('connect', () => socket.write(`AUTH ${password}\r\nPING\r\n`))
    let got = ''
    socket.on('data', (chunk: Buffer) => {
      got += chunk.toString('latin1')
      if (got.startsWith('+OK\r\n+PONG')) end('ready')
      else if (/^-/m.test(got)) end(got.includes('-LOADING') ? 'loading' : 'none')
    })
  })
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function readNote(path: string): Running | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Running
  } catch {
    return undefined
  }
}

function urlOf({ port, password }: Access): string {
  return `redis://:${password}@${HOST}:${port}`
}

function freePort(): Promise<number> {
  const server = createServer()
  return new Promise((go, fail) => {
    server.once('error', fail)
    server.listen(0, HOST, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => go(port))
    })
  })
}
