import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqlBin, SqlServerProcess, type SqlKind } from '../../../../test/support/sql-server.js'
import { parseJournalUrl } from '../../config/journal-options.js'
import { JournalDatabase } from '../../database/database.js'

/** A database server that only one test file uses. */
export interface TestServer {
  readonly kind: 'sqlite' | 'postgres' | 'mysql'
  /** The id of the server's process, which a test may stop and continue. */
  readonly pid: number | undefined
  /** The URL of a new, empty database. */
  fresh(): Promise<string>
  stop(): Promise<void>
}

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

/** `undefined` if PostgreSQL is not installed. */
export function startPostgres(): Promise<TestServer | undefined> {
  return start('postgres')
}

/** `undefined` if MariaDB is not installed. */
export function startMariadb(): Promise<TestServer | undefined> {
  return start('mariadb', ['--max-allowed-packet=128M', '--loose-innodb-log-file-size=512M'])
}

async function start(kind: SqlKind, args?: readonly string[]): Promise<TestServer | undefined> {
  if (sqlBin(kind) === undefined) return undefined
  const server = await SqlServerProcess.start(kind, args)
  let count = 0
  return {
    kind: kind === 'postgres' ? 'postgres' : 'mysql',
    pid: server.pid,
    fresh: () => server.create(`journal_${count++}`),
    stop: () => server.stop(),
  }
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

/** The databases that a journal can have. */
export const DATABASES: readonly [name: string, start: () => Promise<TestServer | undefined>][] = [
  ['SQLite', async () => startSqlite()],
  ['PostgreSQL', startPostgres],
  ['MariaDB', startMariadb],
]

/** For `before`: skips a database that is not installed, except in CI. */
export async function startOrSkip(test: Mocha.Context, [name, start]: (typeof DATABASES)[number]): Promise<TestServer> {
  test.timeout(120_000)
  const server = await start()
  if (server !== undefined) return server
  if (process.env.CI !== undefined) throw new Error(`${name} is not installed`)
  return test.skip()
}
