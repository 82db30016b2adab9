// The thread with the one connection to a SQLite file: its calls block, and must not delay timers of the service.
import { createRequire } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import { pack, unpack, type Packed } from './packed.js'
import { OPENED, type SqliteReply, type SqliteRequest } from './sqlite-protocol.js'

interface Statement {
  all(...parameters: unknown[]): unknown[]
  run(...parameters: unknown[]): { changes: number | bigint }
  /** Only libsql has it: makes rows arrays, which takes half the time of objects. */
  raw?(isRaw: boolean): unknown
  columns?(): { name: string }[]
}

interface Database {
  exec(sql: string): unknown
  prepare(sql: string): Statement
  close(): void
}

/** The most prepared statements that are kept. */
const MOST_STATEMENTS = 200
/** How long to wait until another process releases the file, in milliseconds. */
const LOCK_WAIT_MS = 2_000
/** SQLite's primary result codes; `node:sqlite` gives numbers, `libsql` names. */
const CODES = new Map<number, string>([
  [3, 'SQLITE_PERM'],
  [5, 'SQLITE_BUSY'],
  [6, 'SQLITE_LOCKED'],
  [8, 'SQLITE_READONLY'],
  [10, 'SQLITE_IOERR'],
  [11, 'SQLITE_CORRUPT'],
  [13, 'SQLITE_FULL'],
  [14, 'SQLITE_CANTOPEN'],
  [18, 'SQLITE_TOOBIG'],
  [19, 'SQLITE_CONSTRAINT'],
  [26, 'SQLITE_NOTADB'],
])

function open(path: string): Database {
  process.emitWarning = () => undefined // that `node:sqlite` is experimental
  const builtin = process.getBuiltinModule('node:sqlite' as never) as
    { DatabaseSync: new (path: string) => Database } | undefined
  if (builtin !== undefined) {
    isBuiltin = true
    return new builtin.DatabaseSync(path)
  }
  const Libsql = createRequire(import.meta.url)('libsql') as new (path: string) => Database
  return new Libsql(path)
}

const port = parentPort
if (port === null) throw new Error('this module runs in a worker thread')
const statements = new Map<string, Statement>()
let database: Database | undefined
let isBuiltin = false

function prepare(sql: string): Statement {
  const known = statements.get(sql)
  if (known !== undefined) return known
  if (database === undefined) throw new Error('the database is closed')
  const made = database.prepare(sql)
  if (!isBuiltin && isQuery(sql)) made.raw?.(true)
  if (statements.size >= MOST_STATEMENTS) statements.delete(statements.keys().next().value ?? '')
  statements.set(sql, made)
  return made
}

function isQuery(sql: string): boolean {
  return /^\s*(select|pragma|with|values|explain)\b/i.test(sql) || /\breturning\b/i.test(sql)
}

function answer({ call, sql, parameters }: SqliteRequest): SqliteReply {
  const values = unpack(parameters)
  const statement = prepare(sql)
  // libsql would take a single argument of bytes for an object of named parameters; an array is unambiguous
  const given = isBuiltin ? values : [values]
  if (!isQuery(sql)) return { call, ...nothing(), changes: Number(statement.run(...given).changes) }
  const rows = statement.all(...given)
  if (isBuiltin) return { call, ...cellsOfObjects(rows as Record<string, unknown>[]), changes: 0 }
  const columns = (statement.columns?.() ?? []).map(({ name }) => name)
  return { call, columns, cells: pack(cellsOf(rows as unknown[][])), changes: 0 }
}

function nothing(): { columns: string[]; cells: Packed } {
  return { columns: [], cells: pack([]) }
}

function cellsOfObjects(rows: readonly Record<string, unknown>[]): { columns: string[]; cells: Packed } {
  const columns = Object.keys(rows[0] ?? {})
  return { columns, cells: pack(rows.flatMap((row) => columns.map((name) => row[name]))) }
}

/** libsql gives bytes as an `ArrayBuffer`. */
function cellsOf(rows: readonly (readonly unknown[])[]): unknown[] {
  const cells: unknown[] = []
  for (const row of rows) for (const cell of row) cells.push(cell instanceof ArrayBuffer ? new Uint8Array(cell) : cell)
  return cells
}

function failed(call: number, thrown: unknown): SqliteReply {
  const {
    message = String(thrown),
    code = '',
    errcode,
  } = thrown as { message?: string; code?: string; errcode?: number }
  const name = errcode === undefined ? code : (CODES.get(errcode & 255) ?? `SQLITE_${errcode}`)
  return { call, error: { message, code: name } }
}

function attempt(call: number, action: () => SqliteReply): void {
  let reply: SqliteReply
  try {
    reply = action()
  } catch (thrown) {
    reply = failed(call, thrown)
  }
  port?.postMessage(reply, 'cells' in reply ? [reply.cells.buffer] : [])
}

port.on('message', (request: SqliteRequest | 'close') => {
  if (request !== 'close') {
    attempt(request.call, () => answer(request))
    return
  }
  statements.clear()
  database?.close()
  database = undefined
  port.close()
})

attempt(OPENED, () => {
  database = open((workerData as { path: string }).path)
  database.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_MS}`)
  // The lock belongs to the operating system and ends with the process: while it lives, a second process is refused.
  database.exec('PRAGMA locking_mode = EXCLUSIVE')
  database.exec('PRAGMA journal_mode = WAL')
  database.exec('PRAGMA synchronous = FULL')
  database.exec('BEGIN EXCLUSIVE')
  database.exec('COMMIT')
  return { call: OPENED, ...nothing(), changes: 0 }
})
