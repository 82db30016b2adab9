/** PostgreSQL and MariaDB for tests: a server of a test's own in a folder of its own, which can be killed and stopped for a while. */
import { spawn, type ChildProcess } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../scripts/redis.js'
import { eventually } from './events.js'

export type SqlKind = 'postgres' | 'mariadb'

/** The servers refuse to run as root; Debian has this user and group. */
const UNPRIVILEGED = 65_534
const START_MS = 90_000
const STOP_MS = 15_000
const MARIADB = { server: '/usr/sbin/mariadbd', install: '/usr/bin/mariadb-install-db' }
/** The `mysqld` of a MySQL, by hand: it takes the place of MariaDB. */
const MYSQLD = process.env['REDELAYED_TEST_MYSQLD']
/** The shutdown that does not wait for its clients. */
const STOP_SIGNAL = { postgres: 'SIGINT', mariadb: 'SIGTERM' } as const

/** The path of the server, where it is installed. */
export function sqlBin(kind: SqlKind): string | undefined {
  if (kind === 'mariadb' && MYSQLD !== undefined) return MYSQLD
  if (kind === 'mariadb') return existsSync(MARIADB.server) && existsSync(MARIADB.install) ? MARIADB.server : undefined
  const base = '/usr/lib/postgresql'
  const version = existsSync(base) ? readdirSync(base).sort().at(-1) : undefined
  const bin = version === undefined ? undefined : join(base, version, 'bin/postgres')
  return bin !== undefined && existsSync(bin) ? bin : undefined
}

/** The end of a server's log that is printed when the server ends by itself. */
const LOG_CHARS = 4_000

/** Gives a file to the user of the servers. */
export function ownBySql(path: string): void {
  if (process.getuid?.() === 0) chownSync(path, UNPRIVILEGED, UNPRIVILEGED)
}

export class SqlServerProcess {
  readonly kind: SqlKind
  readonly data: string
  readonly #dir: string
  readonly #port: number
  readonly #install: readonly string[]
  readonly #args: readonly string[]
  readonly #killAll = (): void => this.#signal('SIGKILL')
  #child: ChildProcess | undefined
  #isToEnd = false

  /** `args`: further ones of the server. */
  static async start(kind: SqlKind, args: readonly string[] = []): Promise<SqlServerProcess> {
    const server = new SqlServerProcess(kind, await freePort(), args)
    await server.#makeData()
    await server.restart()
    return server
  }

  private constructor(kind: SqlKind, port: number, args: readonly string[]) {
    const bin = sqlBin(kind)
    if (bin === undefined) throw new Error(`there is no ${kind}`)
    this.kind = kind
    this.#port = port
    this.#dir = mkdtempSync(join(tmpdir(), `journal-${kind}-`))
    mkdirSync(this.#home)
    for (const path of [this.#dir, this.#home]) ownBySql(path)
    this.data = join(this.#dir, 'data')
    const [install, start] = kind === 'postgres' ? this.#postgres(bin) : this.#mariadb(bin)
    this.#install = install
    this.#args = [...start, ...args]
    process.once('exit', this.#killAll)
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** False also where it has ended by itself. */
  get isAlive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  url(database: string): string {
    return this.kind === 'postgres'
      ? `postgres://journal@127.0.0.1:${this.#port}/${database}`
      : `mysql://root@127.0.0.1:${this.#port}/${database}`
  }

  /** Runs a statement outside the tests' databases. */
  execute(text: string): Promise<void> {
    return this.kind === 'postgres'
      ? executePostgres(this.url('postgres'), text)
      : executeMysql(this.url('mysql'), text)
  }

  /** A new, empty database, whose collation in MariaDB takes ids for equal that differ in case or in spaces at the end. */
  async create(name: string, clause = ''): Promise<string> {
    const collation = this.kind === 'mariadb' ? ' character set utf8mb4 collate utf8mb4_general_ci' : ''
    await this.execute(`create database ${name}${collation}${clause}`)
    return this.url(name)
  }

  async kill(): Promise<void> {
    this.#isToEnd = true
    this.#signal('SIGKILL')
    await this.#ended()
  }

  /** Starts it, and resolves when it answers. */
  async restart(): Promise<void> {
    const [command = '', ...args] = this.#args
    const child = spawn(command, args, { ...this.#environment(), stdio: ['ignore', 'ignore', 'pipe'] })
    this.#child = child
    this.#isToEnd = false
    let log = ''
    child.stderr.on('data', (bytes: Buffer) => (log = (log + bytes.toString()).slice(-LOG_CHARS)))
    child.once('close', (code, signal) => {
      // otherwise a test would only see that connections broke
      if (!this.#isToEnd) console.error(`${this.kind} ended by itself (${code ?? signal}):\n${log}`)
    })
    await eventually(() => this.execute('select 1'), START_MS, 100)
  }

  /** Starts it where it has ended by itself, as MariaDB can where its disk is full, or does so now. */
  async revive(): Promise<void> {
    await eventually(
      async () => {
        if (!this.isAlive) await this.restart()
        await this.execute('select 1')
      },
      START_MS,
      100,
    )
  }

  pause(on: boolean): void {
    this.#signal(on ? 'SIGSTOP' : 'SIGCONT')
  }

  async stop(): Promise<void> {
    this.#isToEnd = true
    process.removeListener('exit', this.#killAll)
    this.#signal('SIGCONT')
    this.#child?.kill(STOP_SIGNAL[this.kind])
    const timer = setTimeout(this.#killAll, STOP_MS)
    await this.#ended()
    clearTimeout(timer)
    rmSync(this.#dir, { recursive: true, force: true })
  }

  /** It takes seconds, in which others that start beside it must be able to count their time. */
  async #makeData(): Promise<void> {
    const [command = '', ...args] = this.#install
    const child = spawn(command, args, { ...this.#environment(), stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    const keep = (bytes: Buffer): void => void (output += bytes.toString())
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const status = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
    if (status !== 0) throw new Error(`${command} failed: ${output}`)
  }

  get #home(): string {
    return join(this.#dir, 'home')
  }

  #environment() {
    return {
      cwd: this.#dir,
      ...(process.getuid?.() === 0 && { uid: UNPRIVILEGED, gid: UNPRIVILEGED }),
      // MariaDB deletes the temporary tables of all servers in this folder when it starts
      env: { PATH: process.env['PATH'], HOME: this.#home, TMPDIR: this.#home, LC_ALL: 'C', TZ: 'UTC' },
    }
  }

  #postgres(bin: string): [install: string[], start: string[]] {
    return [
      [
        join(bin, '../initdb'),
        '-D',
        this.data,
        '-U',
        'journal',
        '-A',
        'trust',
        '--no-sync',
        '-E',
        'UTF8',
        '--locale=C',
      ],
      [bin, '-D', this.data, '-p', String(this.#port), '-k', this.#dir, '-h', '127.0.0.1', '-F'],
    ]
  }

  #mariadb(bin: string): [install: string[], start: string[]] {
    const start = [
      '--no-defaults',
      `--datadir=${this.data}`,
      `--socket=${join(this.#dir, 'socket')}`,
      `--pid-file=${join(this.#dir, 'pid')}`,
      `--port=${this.#port}`,
      '--bind-address=127.0.0.1',
      '--skip-name-resolve',
      '--innodb-flush-log-at-trx-commit=2',
    ]
    const install = ['--auth-root-authentication-method=normal', '--skip-test-db']
    if (MYSQLD !== undefined) {
      const rights = join(this.#dir, 'rights.sql')
      writeFileSync(rights, "create user root@'127.0.0.1';\ngrant all on *.* to root@'127.0.0.1' with grant option;\n")
      return [
        [bin, '--no-defaults', '--initialize-insecure', `--datadir=${this.data}`, `--init-file=${rights}`],
        [bin, ...start, '--skip-log-bin', '--mysqlx=OFF'],
      ]
    }
    return [
      [MARIADB.install, '--no-defaults', `--datadir=${this.data}`, ...install],
      [bin, ...start],
    ]
  }

  /** PostgreSQL's backends are in sessions of their own. */
  #signal(signal: NodeJS.Signals): void {
    const { pid } = this
    if (pid === undefined || !this.isAlive) return
    for (const each of [pid, ...childrenOf(pid)]) {
      try {
        process.kill(each, signal)
      } catch {
        // it has just ended
      }
    }
  }

  async #ended(): Promise<void> {
    const child = this.#child
    if (child !== undefined && this.isAlive) await new Promise((resolve) => child.once('exit', resolve))
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
