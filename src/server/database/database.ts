import { Kysely, MysqlDialect, PostgresDialect, sql as text, type Dialect, type Transaction } from 'kysely'
import type { DatabaseTarget } from '../config/journal-options.js'
import { JournalError } from '../errors.js'
import { asJournalError, isConflict } from './failures.js'
import { STATEMENT_MS } from './limits.js'
import { migrate, pendingMigrations, type DatabaseKind } from './migrations.js'
import { sqliteDialect } from './sqlite-dialect.js'
import type { JournalTables } from './tables.js'

export type Sql = Kysely<JournalTables>
export type SqlTransaction = Transaction<JournalTables>

const MOST_ATTEMPTS = 5
const REST_BYTES = 192 * 1024

/** The journal's SQL database. It throws `JournalError`s. */
export class JournalDatabase {
  readonly kind: DatabaseKind
  readonly #sql: Sql
  #mostBytes = Infinity
  #isClosed = false

  /** @throws JournalError the database cannot be used; no connection stays open */
  static async open(target: DatabaseTarget, how: { readonly migrate: boolean }): Promise<JournalDatabase> {
    const database = new JournalDatabase(target)
    try {
      const pending = await database.pendingMigrations()
      if (pending.length > 0 && !how.migrate) {
        throw new JournalError(
          'ERR_JOURNAL_SCHEMA_OLDER',
          `its tables lack ${pending.join(', ')}; run "redelayed-server journal migrate"`,
        )
      }
      if (pending.length > 0) await database.migrate()
      await database.#readLimits()
    } catch (error) {
      await database.close().catch(() => undefined)
      throw error
    }
    return database
  }

  constructor(target: DatabaseTarget, statementMs = STATEMENT_MS) {
    this.kind = target.kind
    this.#sql = new Kysely<JournalTables>({ dialect: dialectFor(target, statementMs) })
  }

  /** The most bytes of a payload that one statement can write. MySQL closes the connection after a larger one, also for other callers. */
  get mostBytes(): number {
    return this.#mostBytes
  }

  /** Runs statements outside a transaction. */
  async run<R>(action: (sql: Sql) => Promise<R>): Promise<R> {
    this.#assertOpen()
    try {
      return await action(this.#sql)
    } catch (error) {
      throw asJournalError(error)
    }
  }

  /** Runs `action` in a transaction, and repeats it after a conflict with another one. */
  async transaction<R>(action: (sql: SqlTransaction) => Promise<R>): Promise<R> {
    for (let attempt = 1; ; attempt++) {
      this.#assertOpen()
      let isCommitted = false
      let cause: unknown
      try {
        const transaction = this.#sql.transaction()
        // on MySQL the default would lock gaps between rows
        const isolated = this.kind === 'mysql' ? transaction.setIsolationLevel('read committed') : transaction
        return await isolated.execute(async (sql) => {
          const result = await action(sql).catch((error: unknown) => {
            cause = error
            throw error
          })
          isCommitted = true
          return result
        })
      } catch (thrown) {
        // if the server closed the connection, the rollback fails too; its error does not say why
        const error = cause ?? thrown
        if (isConflict(error) && attempt < MOST_ATTEMPTS) continue
        const failed = asJournalError(error)
        // the connection broke before the answer to the commit
        if (isCommitted && failed.isTemporary && !isConflict(error)) throw withUnknownOutcome(failed)
        throw failed
      }
    }
  }

  pendingMigrations(): Promise<string[]> {
    return this.run((sql) => pendingMigrations(sql, this.kind))
  }

  migrate(): Promise<string[]> {
    return this.run((sql) => migrate(sql, this.kind))
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#sql.destroy()
  }

  async #readLimits(): Promise<void> {
    if (this.kind !== 'mysql') return
    const { rows } = await this.run((db) =>
      text<{ bytes: number }>`select @@session.max_allowed_packet as bytes`.execute(db),
    )
    // each byte is written as two digits; the rest is for ids, headers and the statement
    const bytes = Number(rows[0]?.bytes)
    if (bytes > 0) this.#mostBytes = Math.max(0, Math.floor(bytes / 2) - REST_BYTES)
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new JournalError('ERR_JOURNAL_CLOSED', 'the journal was closed')
  }
}

function withUnknownOutcome({ code, message, cause }: JournalError): JournalError {
  return new JournalError(code, `${message}; it may still have been written`, { cause, outcome: 'unknown' })
}

/** Loads only the driver of the database in use: each takes as long as the rest of a start. */
function dialectFor(target: DatabaseTarget, statementMs: number): Dialect {
  switch (target.kind) {
    case 'sqlite':
      return sqliteDialect(target.path)
    case 'postgres':
      return new PostgresDialect({
        pool: async () =>
          (await import('./postgres-pool.js')).postgresPool(target.url, target.connections, statementMs),
      })
    case 'mysql':
      return new MysqlDialect({
        pool: async () => (await import('./mysql-pool.js')).mysqlPool(target.url, target.connections, statementMs),
      })
  }
}
