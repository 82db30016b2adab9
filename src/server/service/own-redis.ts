import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, connect, type AddressInfo } from 'node:net'
import { delimiter, join, resolve } from 'node:path'
import { RedelayedError } from 'redelayed'

/** A Redis of the service's own. */
export interface OwnRedis {
  readonly url: string
  /** For people: what it is. */
  readonly what: string
  /** Whether it keeps its data when it stops. */
  readonly isDurable: boolean
  /** Rejects when the server ends by itself. */
  readonly ended: Promise<never>
  stop(): Promise<void>
}

/** What is known of a server that runs on a folder. */
interface Running {
  readonly pid: number
  readonly port: number
  readonly password: string
}

const HOST = '127.0.0.1'
const START_MS = 60_000
const STOP_MS = 10_000

/**
 * Starts a `redis-server` or `valkey-server` of PATH, which writes each change into `dataDir`. Only this user can reach it: it listens on the loopback
 * address and has a random password. A server that an earlier run left behind on the same folder is used on.
 *
 * @throws RedelayedError it does not start
 */
export async function startOwnRedis(dataDir: string): Promise<OwnRedis | undefined> {
  const program = programOnPath(['redis-server', 'valkey-server'])
  if (program === undefined) return undefined
  const dir = resolve(dataDir, 'redis')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const note = join(dir, 'running.json')
  const what = `${program}, data in ${dir}`
  const left = readNote(note)
  if (left !== undefined && (await answers(left))) return adopted(left, what, note)
  const running = await launch(program, dir)
  writeFileSync(note, JSON.stringify(running.note), { mode: 0o600 })
  return {
    url: urlOf(running.note),
    what,
    isDurable: true,
    ended: running.ended,
    stop: async () => {
      await stop(running.child)
      rmSync(note, { force: true })
    },
  }
}

/** The emulator in this process, where it is installed. It forgets everything. */
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
): Promise<{ note: Running; child: ChildProcess; ended: Promise<never> }> {
  const port = await freePort()
  const password = randomBytes(24).toString('base64url')
  // the configuration comes by stdin: arguments are for all to see
  const child = spawn(program, ['-'], { cwd: dir, stdio: ['pipe', 'pipe', 'pipe'] })
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
  const note = { pid: child.pid ?? 0, port, password }
  const until = Date.now() + START_MS
  while (!(await Promise.race([answers(note), ended]))) {
    if (Date.now() > until) {
      child.kill('SIGKILL')
      throw new RedelayedError('ERR_OWN_REDIS', `${program} does not answer:\n${output.trim()}`)
    }
    await new Promise((go) => setTimeout(go, 20))
  }
  return { note, child, ended }
}

function adopted(left: Running, what: string, note: string): OwnRedis {
  return {
    url: urlOf(left),
    what: `${what} (it was still running)`,
    isDurable: true,
    ended: new Promise<never>(() => undefined),
    stop: async () => {
      process.kill(left.pid, 'SIGTERM')
      const until = Date.now() + STOP_MS
      while (Date.now() < until && (await answers(left))) await new Promise((go) => setTimeout(go, 50))
      rmSync(note, { force: true })
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

/** Whether the server on a port answers, to its password, that it has loaded its data. */
function answers({ port, password }: Running): Promise<boolean> {
  return new Promise((go) => {
    const socket = connect(port, HOST)
    const end = (isThere: boolean): void => {
      socket.destroy()
      go(isThere)
    }
    socket.setTimeout(1_000, () => end(false))
    socket.once('error', () => end(false))
    socket.once('close', () => end(false))
    socket.once('connect', () => socket.write(`AUTH ${password}\r\nPING\r\n`))
    let got = ''
    socket.on('data', (chunk: Buffer) => {
      got += chunk.toString('latin1')
      if (got.startsWith('+OK\r\n+PONG')) end(true)
      else if (got.includes('-')) end(false)
    })
  })
}

function readNote(path: string): Running | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Running
  } catch {
    return undefined
  }
}

function urlOf({ port, password }: Running): string {
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
