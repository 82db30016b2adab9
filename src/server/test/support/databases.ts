import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseJournalUrl } from '../../config/journal-options.js'
import { JournalDatabase } from '../../database/database.js'

/** A database of one test file's own. */
export interface TestServer {
  readonly kind: 'sqlite' | 'postgres' | 'mysql'
  /** Of the server's process, which a test may stop and let go on. */
  readonly pid: number | undefined
  /** The URL of a new, empty database. */
  fresh(): Promise<string>
  stop(): Promise<void>
}

/** The user and group of the servers, which refuse to run as root; Debian has them. */
const UNPRIVILEGED = 65_534
const START_MS = 60_000

export function startSqlite(): TestServer {
  const dir = mkdtempSync(join(tmpdir(), 'journal-sqlite-'))
  let count = 0
  return {
    kind: 'sqlite',
    pid: undefined,
    fresh: async () => `sqlite:${join(dir, `journal-${count++}.db`)}`,
    stop: async () => rmSync(dir, { recursive: true, force: true }),
  }
}

/** `undefined` where PostgreSQL is not installed. */
export async function startPostgres(): Promise<TestServer | undefined> {
  const bin = postgresBin()
  if (bin === undefined) return undefined
  const dir = privateDir('postgres')
  const port = await freePort()
  run(
    join(bin, 'initdb'),
    ['-D', join(dir, 'data'), '-U', 'journal', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C'],
    dir,
  )
  const child = start(
    join(bin, 'postgres'),
    ['-D', join(dir, 'data'), '-p', String(port), '-k', dir, '-h', '127.0.0.1', '-F'],
    dir,
  )
  const url = (database: string): string => `postgres://journal@127.0.0.1:${port}/${database}`
  let count = 0
  await answering(url('postgres'))
  return {
    kind: 'postgres',
    pid: child.pid,
    async fresh() {
      const name = `journal_${count++}`
      await statement(url('postgres'), `create database ${name}`)
      return url(name)
    },
    stop: () => stop(child, dir, 'SIGINT'),
  }
}

/** `undefined` where MariaDB is not installed. */
export async function startMariadb(): Promise<TestServer | undefined> {
  const [server, install] = ['/usr/sbin/mariadbd', '/usr/bin/mariadb-install-db']
  if (!existsSync(server) || !existsSync(install)) return undefined
  const dir = privateDir('mariadb')
  const port = await freePort()
  run(
    install,
    ['--no-defaults', `--datadir=${join(dir, 'data')}`, '--auth-root-authentication-method=normal', '--skip-test-db'],
    dir,
  )
  const child = start(
    server,
    [
      '--no-defaults',
      `--datadir=${join(dir, 'data')}`,
      `--socket=${join(dir, 'socket')}`,
      `--pid-file=${join(dir, 'pid')}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      '--skip-name-resolve',
      '--max-allowed-packet=128M',
      '--innodb-log-file-size=512M',
      '--innodb-flush-log-at-trx-commit=2',
    ],
    dir,
  )
  const url = (database: string): string => `mysql://root@127.0.0.1:${port}/${database}`
  let count = 0
  await answering(url('mysql'))
  return {
    kind: 'mysql',
    pid: child.pid,
    async fresh() {
      const name = `journal_${count++}`
      // the collation that takes ids for equal that differ in case or in spaces at the end
      await statement(url('mysql'), `create database ${name} character set utf8mb4 collate utf8mb4_general_ci`)
      return url(name)
    },
    stop: () => stop(child, dir, 'SIGTERM'),
  }
}

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Runs one statement outside the journal's tables. */
export async function statement(url: string, text: string): Promise<void> {
  const { sql } = await import('kysely')
  const database = new JournalDatabase(parseJournalUrl(url))
  try {
    await database.run((db) => sql.raw(text).execute(db))
  } finally {
    await database.close()
  }
}

function postgresBin(): string | undefined {
  const base = '/usr/lib/postgresql'
  const version = existsSync(base) ? readdirSync(base).sort().at(-1) : undefined
  const bin = version === undefined ? undefined : join(base, version, 'bin')
  return bin !== undefined && existsSync(join(bin, 'postgres')) ? bin : undefined
}

function identity(): { uid: number; gid: number } | Record<string, never> {
  return process.getuid?.() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}
}

function privateDir(name: string): string {
  const dir = mkdtempSync(join(tmpdir(), `journal-${name}-`))
  mkdirSync(join(dir, 'home'))
  if (process.getuid?.() === 0) for (const path of [dir, join(dir, 'home')]) chownSync(path, UNPRIVILEGED, UNPRIVILEGED)
  return dir
}

function run(command: string, args: readonly string[], dir: string): void {
  const { status, stderr, stdout } = spawnSync(command, args, {
    cwd: dir,
    encoding: 'utf8',
    ...identity(),
    env: environment(dir),
  })
  if (status !== 0) throw new Error(`${command} failed: ${stdout}${stderr}`)
}

function start(command: string, args: readonly string[], dir: string): ChildProcess {
  return spawn(command, args, { cwd: dir, stdio: 'ignore', ...identity(), env: environment(dir) })
}

function environment(dir: string): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: join(dir, 'home'), LC_ALL: 'C', TZ: 'UTC' }
}

async function answering(url: string): Promise<void> {
  for (const until = Date.now() + START_MS; ;) {
    try {
      await statement(url, 'select 1')
      return
    } catch (error) {
      if (Date.now() > until) throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

async function stop(child: ChildProcess, dir: string, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
    await ended
    clearTimeout(timer)
  }
  rmSync(dir, { recursive: true, force: true })
}
