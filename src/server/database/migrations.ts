import { Migrator, sql, type ColumnDataType, type Kysely, type Migration, type RawBuilder } from 'kysely'
import { JournalError } from '../errors.js'
import type { JournalTables } from './tables.js'

export type DatabaseKind = 'sqlite' | 'postgres' | 'mysql'

type Type = ColumnDataType | RawBuilder<unknown>

/** The column types of the three databases. */
interface Types {
  /** The type of ids and names, which are compared byte by byte. */
  readonly name: Type
  readonly payload: Type
  /** 16 bytes. */
  readonly digest: Type
  readonly number: Type
  readonly serial: Type
}

const TYPES: Readonly<Record<DatabaseKind, Types>> = {
  sqlite: { name: sql`blob`, payload: sql`blob`, digest: sql`blob`, number: 'integer', serial: 'integer' },
  postgres: { name: 'bytea', payload: 'bytea', digest: 'bytea', number: 'bigint', serial: 'bigserial' },
  mysql: {
    name: sql`varbinary(768)`,
    payload: sql`longblob`,
    digest: sql`varbinary(16)`,
    number: 'bigint',
    serial: 'bigint',
  },
}

function migrationsFor(kind: DatabaseKind): Record<string, Migration> {
  const { name, payload, digest, number, serial } = TYPES[kind]
  /** Creates an index unless it exists. MySQL commits each statement of a migration by itself, so a repeated migration can find it. */
  const index = async (db: Kysely<never>, called: string, table: string, columns: string[]): Promise<void> => {
    if (kind === 'mysql' && (await hasIndex(db, called))) return
    const create = db.schema.createIndex(called).on(table).columns(columns)
    await (kind === 'mysql' ? create : create.ifNotExists()).execute()
  }
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
        await index(db, 'redelayed_messages_state', 'redelayed_messages', ['state', 'updated_at'])
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
        await index(db, 'redelayed_message_flow_message', 'redelayed_message_flow', ['queue', 'id'])
        await index(db, 'redelayed_message_flow_at', 'redelayed_message_flow', ['at'])
        await db.schema
          .createTable('redelayed_positions')
          .ifNotExists()
          .addColumn('queue', name, (column) => column.notNull().primaryKey())
          .addColumn('generation', number, (column) => column.notNull())
          .addColumn('epoch', 'varchar(64)')
          .addColumn('change_ms', number, (column) => column.notNull())
          .addColumn('change_seq', number, (column) => column.notNull())
          .addColumn('reread_until', number, (column) => column.notNull())
          .addColumn('config', payload)
          .addColumn('repair', 'integer', (column) => column.notNull())
          .addColumn('repair_stage', 'varchar(16)', (column) => column.notNull())
          .addColumn('repair_id', name)
          .addColumn('repair_owner', 'varchar(64)', (column) => column.notNull())
          .addColumn('repair_until', number, (column) => column.notNull())
          .execute()
      },
    },
    '0002-digest': {
      async up(db: Kysely<never>) {
        if (kind === 'mysql' && (await hasColumn(db, 'redelayed_positions', 'digest'))) return
        await db.schema.alterTable('redelayed_positions').addColumn('digest', 'varchar(96)').execute()
      },
    },
    '0003-biz-key': {
      async up(db: Kysely<never>) {
        if (kind !== 'mysql' || !(await hasColumn(db, 'redelayed_messages', 'biz_key')))
          await db.schema.alterTable('redelayed_messages').addColumn('biz_key', digest).execute()
        const [called, columns] = ['redelayed_messages_biz_key', ['queue', 'biz_key', 'id']] as const
        // a partial index, if the database has them: most messages have no business key
        const some = sql`biz_key is not null`
        if (kind === 'mysql') await index(db, called, 'redelayed_messages', [...columns])
        else
          await db.schema
            .createIndex(called)
            .ifNotExists()
            .on('redelayed_messages')
            .columns([...columns])
            .where(some as never)
            .execute()
      },
    },
    '0004-group': {
      async up(db: Kysely<never>) {
        if (kind === 'mysql' && (await hasColumn(db, 'redelayed_messages', 'message_group'))) return
        await db.schema.alterTable('redelayed_messages').addColumn('message_group', name).execute()
      },
    },
  }
}

async function hasIndex(db: Kysely<never>, called: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from information_schema.statistics where table_schema = database() and index_name = ${called} limit 1
  `.execute(db)
  return rows.length > 0
}

async function hasColumn(db: Kysely<never>, table: string, column: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from information_schema.columns
    where table_schema = database() and table_name = ${table} and column_name = ${column} limit 1
  `.execute(db)
  return rows.length > 0
}

const TABLE = 'redelayed_migrations'

/** The migrations that a database still needs, in order. @throws JournalError ERR_JOURNAL_SCHEMA_NEWER */
export async function pendingMigrations(db: Kysely<JournalTables>, kind: DatabaseKind): Promise<string[]> {
  const known = Object.keys(migrationsFor(kind))
  const tables = await db.introspection.getTables()
  const schema = await schemaOf(db, kind)
  if (!tables.some((table) => table.name === TABLE && (schema === undefined || table.schema === schema))) return known
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

/** The schema in which PostgreSQL creates the tables; other schemas can have journals of their own. */
async function schemaOf(db: Kysely<JournalTables>, kind: DatabaseKind): Promise<string | undefined> {
  if (kind !== 'postgres') return undefined
  const { rows } = await sql<{ name: string | null }>`select current_schema() as name`.execute(db)
  const name = rows[0]?.name
  if (name) return name
  throw new JournalError('ERR_JOURNAL_ACCESS', 'the search_path of its user names no existing schema: create one')
}

/** Brings the tables to this version; resolves with the names of the migrations done. */
export async function migrate(db: Kysely<JournalTables>, kind: DatabaseKind): Promise<string[]> {
  if ((await pendingMigrations(db, kind)).length === 0) return []
  const schema = await schemaOf(db, kind)
  const migrator = new Migrator({
    db,
    ...(schema !== undefined && { migrationTableSchema: schema }),
    provider: { getMigrations: async () => migrationsFor(kind) },
    migrationTableName: TABLE,
    migrationLockTableName: `${TABLE}_lock`,
  })
  const { error, results = [] } = await migrator.migrateToLatest()
  if (error !== undefined) throw error as Error
  return results.map(({ migrationName }) => migrationName)
}
