import { Migrator, sql, type ColumnDataType, type Kysely, type Migration, type RawBuilder } from 'kysely'
import { JournalError } from '../errors.js'
import type { JournalTables } from './tables.js'

export type DatabaseKind = 'sqlite' | 'postgres' | 'mysql'

type Type = ColumnDataType | RawBuilder<unknown>

/** What the three call the same thing. */
interface Types {
  /** Of ids and names: compared byte by byte. */
  readonly name: Type
  readonly payload: Type
  readonly number: Type
  readonly serial: Type
}

const TYPES: Readonly<Record<DatabaseKind, Types>> = {
  sqlite: { name: sql`blob`, payload: sql`blob`, number: 'integer', serial: 'integer' },
  postgres: { name: 'bytea', payload: 'bytea', number: 'bigint', serial: 'bigserial' },
  mysql: { name: sql`varbinary(768)`, payload: sql`longblob`, number: 'bigint', serial: 'bigint' },
}

function migrationsFor(kind: DatabaseKind): Record<string, Migration> {
  const { name, payload, number, serial } = TYPES[kind]
  return {
    '0001-messages': {
      async up(db: Kysely<never>) {
        await db.schema
          .createTable('redelayed_messages')
          .ifNotExists()
          .addColumn('queue', name, (column) => column.notNull())
          .addColumn('id', name, (column) => column.notNull())
          .addColumn('state', 'varchar(16)', (column) => column.notNull())
          .addColumn('due_at', number, (column) => column.notNull())
          .addColumn('priority', 'integer', (column) => column.notNull())
          .addColumn('attempts', number, (column) => column.notNull())
          .addColumn('expires_at', number)
          .addColumn('delivery_limit', number)
          .addColumn('headers', payload)
          .addColumn('payload', payload, (column) => column.notNull())
          .addColumn('failures', payload)
          .addColumn('accepted_at', number, (column) => column.notNull())
          .addColumn('updated_at', number, (column) => column.notNull())
          .addColumn('generation', number, (column) => column.notNull())
          .addColumn('change_ms', number, (column) => column.notNull())
          .addColumn('change_seq', number, (column) => column.notNull())
          .addPrimaryKeyConstraint('redelayed_messages_key', ['queue', 'id'])
          .execute()
        await db.schema
          .createIndex('redelayed_messages_state')
          .on('redelayed_messages')
          .columns(['state', 'updated_at'])
          .execute()
        await db.schema
          .createTable('redelayed_message_flow')
          .ifNotExists()
          .addColumn('seq', serial, (column) =>
            kind === 'postgres' ? column.primaryKey() : column.primaryKey().autoIncrement(),
          )
          .addColumn('queue', name, (column) => column.notNull())
          .addColumn('id', name, (column) => column.notNull())
          .addColumn('change', 'varchar(16)', (column) => column.notNull())
          .addColumn('at', number, (column) => column.notNull())
          .addColumn('attempt', number)
          .addColumn('client', 'varchar(64)', (column) => column.notNull())
          .addColumn('error', payload)
          .execute()
        await db.schema
          .createIndex('redelayed_message_flow_message')
          .on('redelayed_message_flow')
          .columns(['queue', 'id'])
          .execute()
        await db.schema.createIndex('redelayed_message_flow_at').on('redelayed_message_flow').column('at').execute()
        await db.schema
          .createTable('redelayed_positions')
          .ifNotExists()
          .addColumn('queue', name, (column) => column.notNull().primaryKey())
          .addColumn('generation', number, (column) => column.notNull())
          .addColumn('epoch', 'varchar(64)')
          .addColumn('change_ms', number, (column) => column.notNull())
          .addColumn('change_seq', number, (column) => column.notNull())
          .addColumn('repair', 'integer', (column) => column.notNull())
          .addColumn('repair_stage', 'varchar(16)', (column) => column.notNull())
          .addColumn('repair_id', name)
          .addColumn('repair_owner', 'varchar(64)', (column) => column.notNull())
          .addColumn('repair_until', number, (column) => column.notNull())
          .execute()
      },
    },
  }
}

const TABLE = 'redelayed_migrations'

/** Which migrations a database still needs, in order. @throws JournalError ERR_JOURNAL_SCHEMA_NEWER */
export async function pendingMigrations(db: Kysely<JournalTables>, kind: DatabaseKind): Promise<string[]> {
  const known = Object.keys(migrationsFor(kind))
  const tables = await db.introspection.getTables()
  if (!tables.some(({ name }) => name === TABLE)) return known
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(TABLE)}`.execute(db)
  const done = new Set(rows.map(({ name }) => name))
  const unknown = [...done].filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    throw new JournalError(
      'ERR_JOURNAL_SCHEMA_NEWER',
      `a newer version of redelayed-server has changed its tables (${unknown.join(', ')}); install that version, nothing was changed`,
    )
  }
  return known.filter((name) => !done.has(name))
}

/** Brings the tables to this version; resolves with the names of what was done. */
export async function migrate(db: Kysely<JournalTables>, kind: DatabaseKind): Promise<string[]> {
  if ((await pendingMigrations(db, kind)).length === 0) return []
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => migrationsFor(kind) },
    migrationTableName: TABLE,
    migrationLockTableName: `${TABLE}_lock`,
  })
  const { error, results = [] } = await migrator.migrateToLatest()
  if (error !== undefined) throw error as Error
  return results.map(({ migrationName }) => migrationName)
}
