import { Worker } from 'node:worker_threads'
import {
  CompiledQuery,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
} from 'kysely'
import { pack, unpack } from './packed.js'
import { OPENED, type SqliteReply, type SqliteRequest } from './sqlite-protocol.js'

/** SQLite with one connection in a thread of its own. */
export function sqliteDialect(path: string): Dialect {
  return {
    createDriver: () => new SqliteThreadDriver(path),
    createAdapter: () => new SqliteAdapter(),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
  }
}

/** Starts the thread. In the sources it is TypeScript, so the thread has to register `tsx` first. */
function startThread(path: string): Worker {
  const isSource = import.meta.url.endsWith('.ts')
  const module = new URL(`./sqlite-worker${isSource ? '.ts' : '.js'}`, import.meta.url)
  const options = { workerData: { path } }
  if (!isSource) return new Worker(module, options)
  const text = `import('tsx/esm/api').then(({ register }) => (register(), import(${JSON.stringify(module.href)})))`
  return new Worker(text, { ...options, eval: true })
}

/** Hands its one connection to one user after the other. */
class SqliteThreadDriver implements Driver {
  readonly #path: string
  #connection: SqliteThread | undefined
  #last: Promise<void> = Promise.resolve()
  #release: (() => void) | undefined

  constructor(path: string) {
    this.#path = path
  }

  async init(): Promise<void> {
    this.#connection = await SqliteThread.open(this.#path)
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.#last
    let release = (): void => undefined
    this.#last = new Promise((resolve) => (release = resolve))
    await before
    this.#release = release
    try {
      // a thread that ran out of memory is replaced; its commits are in the file
      if (this.#connection === undefined || this.#connection.hasEnded)
        this.#connection = await SqliteThread.open(this.#path)
      return this.#connection
    } catch (error) {
      release()
      throw error
    }
  }

  async releaseConnection(): Promise<void> {
    this.#release?.()
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await connection.executeQuery(CompiledQuery.raw('rollback'))
    } catch (error) {
      // some failures, such as a full disk, have already rolled back; the caller must see those
      if (!/no transaction is active/.test(String(error))) throw error
    }
  }

  async destroy(): Promise<void> {
    await this.#connection?.close()
  }
}

interface Call {
  readonly resolve: (result: QueryResult<never>) => void
  readonly reject: (error: Error) => void
}

class SqliteThread implements DatabaseConnection {
  readonly #worker: Worker
  readonly #calls = new Map<number, Call>()
  readonly #ended: Promise<void>
  #next = OPENED + 1
  #failure: Error | undefined

  static async open(path: string): Promise<SqliteThread> {
    const thread = new SqliteThread(startThread(path))
    try {
      await new Promise<unknown>((resolve, reject) => thread.#calls.set(OPENED, { resolve, reject }))
    } catch (error) {
      await thread.close()
      throw error
    }
    return thread
  }

  private constructor(worker: Worker) {
    this.#worker = worker
    this.#ended = new Promise((resolve) => {
      worker.on('exit', () => {
        const error = new Error('the thread of the SQLite connection has ended')
        this.#fail(Object.assign(error, { code: 'EPIPE' }))
        resolve()
      })
    })
    worker.on('error', ({ message }) => {
      this.#fail(Object.assign(new Error(`the thread of the SQLite connection failed: ${message}`), { code: 'EPIPE' }))
    })
    worker.on('message', (reply: SqliteReply) => this.#settle(reply))
  }

  get hasEnded(): boolean {
    return this.#failure !== undefined
  }

  executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure)
        return
      }
      const call = this.#next++
      this.#calls.set(call, { resolve: resolve, reject })
      this.#worker.ref()
      const packed = pack(parameters)
      this.#worker.postMessage({ call, sql, parameters: packed } satisfies SqliteRequest, [packed.buffer])
    })
  }

  // eslint-disable-next-line require-yield -- nothing here streams
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('streaming is not supported')
  }

  async close(): Promise<void> {
    this.#worker.ref()
    this.#worker.postMessage('close')
    await this.#ended
  }

  #settle(reply: SqliteReply): void {
    const call = this.#calls.get(reply.call)
    this.#calls.delete(reply.call)
    if (this.#calls.size === 0) this.#worker.unref()
    if ('error' in reply) call?.reject(Object.assign(new Error(reply.error.message), { code: reply.error.code }))
    else call?.resolve({ rows: rowsOf(reply.columns, unpack(reply.cells)), numAffectedRows: BigInt(reply.changes) })
  }

  #fail(error: Error): void {
    this.#failure ??= error
    for (const { reject } of this.#calls.values()) reject(this.#failure)
    this.#calls.clear()
  }
}

function rowsOf(columns: readonly string[], cells: readonly unknown[]): never[] {
  const rows: Record<string, unknown>[] = []
  for (let from = 0; from < cells.length; from += columns.length) {
    const row: Record<string, unknown> = {}
    for (let at = 0; at < columns.length; at++) row[columns[at] as string] = cells[from + at]
    rows.push(row)
  }
  return rows as never[]
}
