import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownBySql, sqlBin, SqlServerProcess, type SqlKind } from '../../support/sql-server.js'
import { Quota } from './quota.js'

export type Kind = 'sqlite' | SqlKind

/** A database of the bench's own that can be killed, stopped and filled. */
export interface SqlServer {
  readonly kind: Kind
  /** A new, empty database. */
  fresh(): Promise<string>
  /** SIGKILL of all its processes; `undefined` where it lives in a member. */
  readonly kill?: () => Promise<void>
  readonly restart?: () => Promise<void>
  /** Starts the database if it has ended by itself. */
  readonly revive?: () => Promise<void>
  readonly hasEnded?: () => boolean
  readonly pause?: (on: boolean) => void
  /** `undefined` where the disk cannot be filled. */
  readonly quota: Quota | undefined
  stop(): Promise<void>
}

const ARGS = {
  postgres: ['-c', 'max_wal_size=128MB'],
  mariadb: ['--innodb-log-file-size=32M', '--innodb-buffer-pool-size=64M'],
}

export function isThere(kind: Kind): boolean {
  return kind === 'sqlite' || sqlBin(kind) !== undefined
}

/** For a report. */
export function versionOf(kind: Kind): string {
  if (kind === 'sqlite') return 'SQLite'
  const { stdout } = spawnSync(sqlBin(kind) ?? '', ['--version'], { encoding: 'utf8' })
  return `${kind === 'postgres' ? 'PostgreSQL' : 'MariaDB'} ${/\d+\.\d+(\.\d+)?/.exec(stdout)?.[0] ?? 'of an unknown version'}`
}

export async function startSql(kind: Kind): Promise<SqlServer> {
  if (kind === 'sqlite') return startSqlite()
  // only the tables lie on the disk that is filled: without room for its log the server ends
  const quota = Quota.make('tables', 256)
  const server = await SqlServerProcess.start(kind, ARGS[kind])
  const create = kind === 'postgres' ? await databasesAt(server, quota) : tablesAt(server, quota)
  let count = 0
  return {
    kind,
    quota,
    async fresh() {
      const name = `journal_${count++}`
      if (count > 1) await drop(server, `journal_${count - 2}`)
      return create(name)
    },
    kill: () => server.kill(),
    restart: () => server.restart(),
    revive: () => server.revive(),
    hasEnded: () => !server.isAlive,
    pause: (on) => server.pause(on),
    async stop() {
      await server.stop()
      quota?.remove()
    },
  }
}

function startSqlite(): SqlServer {
  const quota = Quota.make('sqlite', 256)
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

async function drop(server: SqlServerProcess, name: string): Promise<void> {
  if (server.kind === 'postgres') await server.execute(`drop database if exists ${name} with (force)`)
  else await server.execute(`drop database if exists ${name}`).catch(() => undefined)
}

type Create = (name: string) => Promise<string>

/** Makes databases of PostgreSQL in a table space on the disk that is filled. */
async function databasesAt(server: SqlServerProcess, quota: Quota | undefined): Promise<Create> {
  if (quota === undefined) return (name) => server.create(name)
  const tables = join(quota.path, 'tables')
  mkdirSync(tables)
  ownBySql(tables)
  await server.execute(`create tablespace small location '${tables}'`)
  return (name) => server.create(name, ' tablespace small')
}

/** Makes databases of MariaDB, whose folders it moves to the disk that is filled. */
function tablesAt(server: SqlServerProcess, quota: Quota | undefined): Create {
  return async (name) => {
    const url = await server.create(name)
    if (quota === undefined) return url
    const [here, there] = [join(server.data, name), join(quota.path, name)]
    cpSync(here, there, { recursive: true })
    for (const path of [there, ...readdirSync(there).map((file) => join(there, file))]) ownBySql(path)
    rmSync(here, { recursive: true })
    symlinkSync(there, here)
    return url
  }
}
