import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../scripts/redis.js'
import { eventually } from '../../support/events.js'
import { Quota } from './quota.js'

export type Kind = 'sqlite' | 'postgres' | 'mariadb'

/** A database of the bench's own that can be killed, stopped and filled. */
export interface SqlServer {
  readonly kind: Kind
  /** A new, empty database. */
  fresh(): Promise<string>
  /** SIGKILL of all its processes; `undefined` where it lives in a member. */
  readonly kill?: () => Promise<void>
  readonly restart?: () => Promise<void>
  readonly pause?: (on: boolean) => void
  /** `undefined` where the disk cannot be filled. */
  readonly quota: Quota | undefined
  stop(): Promise<void>
}

/** The servers refuse to run as root; Debian has this user and group. */
const UNPRIVILEGED = 65_534
const START_MS = 90_000
const STOP_MS = 15_000
const MARIADB = { server: '/usr/sbin/mariadbd', install: '/usr/bin/mariadb-install-db' }

export function isThere(kind: Kind): boolean {
  if (kind === 'sqlite') return true
  return kind === 'postgres' ? postgresBin() !== undefined : existsSync(MARIADB.server) && existsSync(MARIADB.install)
}

/** For a report. */
export function versionOf(kind: Kind): string {
  if (kind === 'sqlite') return 'SQLite'
  const server = kind === 'postgres' ? join(postgresBin() ?? '', 'postgres') : MARIADB.server
  const { stdout } = spawnSync(server, ['--version'], { encoding: 'utf8' })
  return `${kind === 'postgres' ? 'PostgreSQL' : 'MariaDB'} ${/\d+\.\d+(\.\d+)?/.exec(stdout)?.[0] ?? 'of an unknown version'}`
}

export function startSql(kind: Kind): Promise<SqlServer> {
  if (kind === 'sqlite') return startSqlite()
  return kind === 'postgres' ? startPostgres() : startMariadb()
}

async function startSqlite(): Promise<SqlServer> {
  const quota = Quota.make('sqlite', 48)
  const dir = quota?.path ?? mkdtempSync(join(tmpdir(), 'journal-sqlite-'))
  let count = 0
  return {
    kind: 'sqlite',
    quota,
    fresh: async () => `sqlite:${join(dir, `journal-${count++}.db`)}`,
    async stop() {
      quota?.remove()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function startPostgres(): Promise<SqlServer> {
  const bin = postgresBin()
  if (bin === undefined) throw new Error('there is no PostgreSQL')
  const dir = privateDir('postgres')
  // only the tables lie on the disk that is filled: without room for its log the server ends
  const quota = Quota.make('tables', 64)
  const port = await freePort()
  const data = join(dir, 'data')
  const init = ['-D', data, '-U', 'journal', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C']
  run(join(bin, 'initdb'), init, dir)
  const server = new Server(
    join(bin, 'postgres'),
    ['-D', data, '-p', String(port), '-k', dir, '-h', '127.0.0.1', '-F', '-c', 'max_wal_size=128MB'],
    dir,
  )
  const url = (database: string): string => `postgres://journal@127.0.0.1:${port}/${database}`
  const execute = (text: string): Promise<void> => executePostgres(url('postgres'), text)
  const answers = (): Promise<void> => eventually(() => execute('select 1'), START_MS, 100)
  server.start()
  await answers()
  let space = ''
  if (quota !== undefined) {
    const tables = join(quota.path, 'tables')
    mkdirSync(tables)
    own(tables)
    await execute(`create tablespace small location '${tables}'`)
    space = ' tablespace small'
  }
  let count = 0
  return {
    kind: 'postgres',
    quota,
    async fresh() {
      const name = `journal_${count++}`
      if (count > 1) await execute(`drop database if exists journal_${count - 2} with (force)`)
      await execute(`create database ${name}${space}`)
      return url(name)
    },
    kill: () => server.kill(),
    async restart() {
      server.start()
      await answers()
    },
    pause: (on) => server.pause(on),
    async stop() {
      await server.stop('SIGINT')
      quota?.remove()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function startMariadb(): Promise<SqlServer> {
  const dir = privateDir('mariadb')
  // only the tables lie on the disk that is filled
  const quota = Quota.make('tables', 64)
  const port = await freePort()
  const data = join(dir, 'data')
  run(
    MARIADB.install,
    ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'],
    dir,
  )
  const server = new Server(
    MARIADB.server,
    [
      '--no-defaults',
      `--datadir=${data}`,
      `--socket=${join(dir, 'socket')}`,
      `--pid-file=${join(dir, 'pid')}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      '--skip-name-resolve',
      '--innodb-log-file-size=32M',
      '--innodb-buffer-pool-size=64M',
      '--innodb-flush-log-at-trx-commit=2',
    ],
    dir,
  )
  const url = (database: string): string => `mysql://root@127.0.0.1:${port}/${database}`
  const execute = (text: string): Promise<void> => executeMysql(url('mysql'), text)
  const answers = (): Promise<void> => eventually(() => execute('select 1'), START_MS, 100)
  server.start()
  await answers()
  let count = 0
  return {
    kind: 'mariadb',
    quota,
    async fresh() {
      const name = `journal_${count++}`
      if (count > 1) await execute(`drop database if exists journal_${count - 2}`).catch(() => undefined)
      await execute(`create database ${name} character set utf8mb4 collate utf8mb4_general_ci`)
      if (quota !== undefined) {
        const [here, there] = [join(data, name), join(quota.path, name)]
        cpSync(here, there, { recursive: true })
        for (const path of [there, ...readdirSync(there).map((file) => join(there, file))]) own(path)
        rmSync(here, { recursive: true })
        symlinkSync(there, here)
      }
      return url(name)
    },
    kill: () => server.kill(),
    async restart() {
      server.start()
      await answers()
    },
    pause: (on) => server.pause(on),
    async stop() {
      await server.stop('SIGTERM')
      quota?.remove()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** A server of several processes, perhaps. */
class Server {
  readonly #command: string
  readonly #args: readonly string[]
  readonly #dir: string
  readonly #killAll = (): void => this.#signal('SIGKILL')
  #child: ChildProcess | undefined

  constructor(command: string, args: readonly string[], dir: string) {
    this.#command = command
    this.#args = args
    this.#dir = dir
    process.once('exit', this.#killAll)
  }

  start(): void {
    this.#child = spawn(this.#command, this.#args, {
      cwd: this.#dir,
      stdio: 'ignore',
      ...identity(),
      env: environment(this.#dir),
    })
  }

  async kill(): Promise<void> {
    this.#signal('SIGKILL')
    await this.#ended()
  }

  pause(on: boolean): void {
    this.#signal(on ? 'SIGSTOP' : 'SIGCONT')
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    process.removeListener('exit', this.#killAll)
    this.#signal('SIGCONT')
    this.#child?.kill(signal)
    const timer = setTimeout(this.#killAll, STOP_MS)
    await this.#ended()
    clearTimeout(timer)
  }

  /** PostgreSQL's backends are in sessions of their own. */
  #signal(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid
    if (pid === undefined || !this.#isAlive) return
    for (const each of [pid, ...childrenOf(pid)]) {
      try {
        process.kill(each, signal)
      } catch {
        // it has just ended
      }
    }
  }

  get #isAlive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  async #ended(): Promise<void> {
    const child = this.#child
    if (child !== undefined && this.#isAlive) await new Promise((resolve) => child.once('exit', resolve))
  }
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const text = readFileSync(`/proc/${name}/stat`, 'utf8')
        return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]) === pid
      } catch {
        return false // it has just ended
      }
    })
    .map(Number)
}

async function executePostgres(connectionString: string, text: string): Promise<void> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query(text)
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function executeMysql(uri: string, text: string): Promise<void> {
  const { createConnection } = await import('mysql2/promise')
  const connection = await createConnection({ uri, connectTimeout: 5_000 })
  try {
    await connection.query(text)
  } finally {
    connection.destroy()
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

function own(path: string): void {
  if (process.getuid?.() === 0) chownSync(path, UNPRIVILEGED, UNPRIVILEGED)
}

function privateDir(name: string, base = tmpdir()): string {
  const dir = mkdtempSync(join(base, `journal-${name}-`))
  chmodSync(dir, 0o755)
  mkdirSync(join(dir, 'home'))
  for (const path of [dir, join(dir, 'home')]) own(path)
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

function environment(dir: string): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: join(dir, 'home'), LC_ALL: 'C', TZ: 'UTC' }
}
