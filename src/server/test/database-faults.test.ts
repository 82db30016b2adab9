import { expect } from 'chai'
import { readFileSync, readdirSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import { sql } from 'kysely'
import { parseJournalUrl } from '../config/journal-options.js'
import { JournalDatabase } from '../database/database.js'
import { JournalError } from '../errors.js'
import { startMariadb, startPostgres, startSqlite, statement, type TestServer } from './support/databases.js'
import { eventually } from './support/eventually.js'

/** Short, so that a stopped server is given up soon. */
const STATEMENT_MS = 400

async function codeOf(action: Promise<unknown>): Promise<string> {
  const error: unknown = await action.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).to.be.instanceOf(JournalError)
  return (error as JournalError).code
}

/** Stops a process and waits until it has stopped: on a busy machine its threads run on for a moment. */
async function halt(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  await eventually(() => {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      expect(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')).to.match(/\) [Tt] /)
    }
  })
}

function insert(text: string) {
  return (db: Parameters<Parameters<JournalDatabase['run']>[0]>[0]) =>
    sql`insert into plain (name) values (${text})`.execute(db)
}

async function namesIn(database: JournalDatabase): Promise<string[]> {
  const { rows } = await database.run((db) => sql<{ name: string }>`select name from plain order by name`.execute(db))
  return rows.map(({ name }) => name)
}

for (const [kind, start] of [
  ['PostgreSQL', startPostgres],
  ['MariaDB', startMariadb],
] as const) {
  describe(`${kind} that stops answering`, function () {
    this.timeout(60_000)
    let server: TestServer
    let url: string
    /** One connection, so that the statements after a fault would meet its leftovers. */
    let database: JournalDatabase
    let other: JournalDatabase

    before(async function () {
      const started = await start()
      if (started === undefined) return this.skip()
      server = started
      url = await server.fresh()
      await statement(url, 'create table plain (name varchar(20))')
      other = new JournalDatabase(parseJournalUrl(url))
      // its connection, and the timer that ends it, are there before the tests
      await namesIn(other)
    })
    after(async () => {
      await other?.close()
      await server?.stop()
    })
    beforeEach(() => {
      const target = parseJournalUrl(url)
      database = new JournalDatabase({ ...target, connections: 1 } as typeof target, STATEMENT_MS)
    })
    afterEach(() => database.close())

    /** The process that has to stop: PostgreSQL has one for each connection. */
    async function pidOf(): Promise<number> {
      if (server.kind === 'mysql') return server.pid as number
      const { rows } = await database.run((db) => sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db))
      return rows[0]?.pid as number
    }

    it('ends a transaction in time, and leaves the next statement its own commit', async () => {
      const pid = await pidOf()
      await halt(pid)
      const code = await codeOf(database.transaction(insert('late')))
      process.kill(pid, 'SIGCONT')
      expect(code).to.equal('ERR_JOURNAL_UNAVAILABLE')
      await database.run(insert('next'))
      await database.close()
      expect(await namesIn(other)).to.deep.equal(['next'])
    })

    it('gives up a transaction that was under way: no lock of it is left', async () => {
      await other.run(insert('row'))
      const pid = await pidOf()
      const code = await codeOf(
        database.transaction(async (db) => {
          await sql`update plain set name = 'locked' where name = 'row'`.execute(db)
          await halt(pid)
          await insert('late')(db)
        }),
      )
      process.kill(pid, 'SIGCONT')
      expect(code).to.equal('ERR_JOURNAL_UNAVAILABLE')
      await other.run((db) => sql`update plain set name = 'free' where name = 'row'`.execute(db))
      expect(await namesIn(other)).to.deep.equal(['free', 'next'])
    })

    const sockets = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length

    const connectionIn = async (db: Parameters<Parameters<JournalDatabase['run']>[0]>[0]) => {
      const query =
        server.kind === 'mysql'
          ? sql<{ id: number }>`select connection_id() as id`
          : sql<{ id: number }>`select pg_backend_pid() as id`
      return (await query.execute(db)).rows[0]?.id as number
    }

    it('fails the next statement only, when it ends a connection between two of a transaction', async () => {
      const transaction = database.transaction(async (db) => {
        const id = await connectionIn(db)
        const open = sockets()
        const end = server.kind === 'mysql' ? sql`kill ${sql.lit(id)}` : sql`select pg_terminate_backend(${id})`
        await other.run((sqlOfOther) => end.execute(sqlOfOther))
        // the end of the connection arrives while no statement is under way
        await eventually(() => expect(sockets()).to.equal(open - 1))
        await insert('unsent')(db)
      })
      expect(await codeOf(transaction)).to.equal('ERR_JOURNAL_UNAVAILABLE')
      await database.run(connectionIn)
      expect(await namesIn(other)).to.not.include('unsent')
    })

    it('fails only the statement, and keeps the connection, when the server itself refuses it', async () => {
      const connection = () => database.run(connectionIn)
      const first = await connection()
      expect(await codeOf(database.run((db) => sql`select no_such_column from plain`.execute(db)))).to.equal(
        'ERR_JOURNAL_QUERY',
      )
      expect(await connection()).to.equal(first)
    })

    it('gives a connection in time, or says that none is free', async () => {
      const pid = await pidOf()
      let isFree = (): void => undefined
      const held = database.transaction(() => new Promise<void>((resolve) => (isFree = resolve)))
      expect(await codeOf(database.run(insert('waiting')))).to.equal('ERR_JOURNAL_UNAVAILABLE')
      isFree()
      await held
      expect(pid).to.be.greaterThan(0)
    })
  })
}

describe('the thread of SQLite', function () {
  this.timeout(60_000)

  it('is replaced when it has ended; an unanswered commit can be in the file', async () => {
    const server = startSqlite()
    const made: Worker[] = []
    const note = (worker: Worker): number => made.push(worker)
    process.on('worker', note)
    const database = new JournalDatabase(parseJournalUrl(await server.fresh()))
    try {
      await database.run((db) => sql`create table plain (name varchar(20))`.execute(db))
      await database.transaction(insert('before'))
      const [first] = made
      const failed = await database
        .transaction(async (db) => {
          await insert('during')(db)
          void first?.terminate() // before the answer to the commit
        })
        .catch((error: unknown) => error)
      expect(failed).to.include({ code: 'ERR_JOURNAL_UNAVAILABLE', outcome: 'unknown' })
      await database.transaction(insert('after'))
      const names = await namesIn(database)
      expect(names.filter((name) => name !== 'during')).to.deep.equal(['after', 'before'])
      expect(made).to.have.lengthOf(2)
    } finally {
      process.off('worker', note)
      await database.close()
      await server.stop()
    }
  })
})

describe('a statement that is larger than MariaDB takes', function () {
  this.timeout(60_000)

  it('reports it, although the server closes the connection', async function () {
    const server = await startMariadb()
    if (server === undefined) return this.skip()
    const url = await server.fresh()
    await statement(url, 'set global max_allowed_packet = 1048576')
    const database = new JournalDatabase(parseJournalUrl(url))
    try {
      await database.run((db) => sql`create table plain (name longtext)`.execute(db))
      // its answer is lost if it closes the connection while the statement is still being sent
      let code = await codeOf(database.transaction(insert('x'.repeat(2 << 20))))
      for (let again = 0; again < 20 && code === 'ERR_JOURNAL_UNAVAILABLE'; again++)
        code = await codeOf(database.transaction(insert('x'.repeat(2 << 20))))
      expect(code).to.equal('ERR_JOURNAL_TOO_LARGE')
      await database.transaction(insert('small'))
      expect(await namesIn(database)).to.deep.equal(['small'])
    } finally {
      await database.close()
      await server.stop()
    }
  })
})

describe('tables of a journal', function () {
  this.timeout(60_000)

  it('are made again where MariaDB was interrupted between two of its statements', async function () {
    const server = await startMariadb()
    if (server === undefined) return this.skip()
    try {
      const url = await server.fresh()
      const first = await JournalDatabase.open(parseJournalUrl(url), { migrate: true })
      await first.close()
      // as if the process had died after the first index
      for (const table of ['redelayed_positions', 'redelayed_message_flow', 'redelayed_migrations'])
        await statement(url, `drop table ${table}`)
      const second = await JournalDatabase.open(parseJournalUrl(url), { migrate: true })
      expect(await second.pendingMigrations()).to.deep.equal([])
      await second.close()
    } finally {
      await server.stop()
    }
  })

  it('are made beside those of another schema of PostgreSQL', async function () {
    const server = await startPostgres()
    if (server === undefined) return this.skip()
    try {
      const url = await server.fresh()
      const first = await JournalDatabase.open(parseJournalUrl(url), { migrate: true })
      await statement(url, 'create schema second')
      const within = `${url}?options=${encodeURIComponent('-c search_path=second')}`
      const second = await JournalDatabase.open(parseJournalUrl(within), { migrate: true })
      expect(await second.pendingMigrations()).to.deep.equal([])
      await statement(url, 'drop table public.redelayed_positions')
      const { rows } = await second.run((db) => sql`select * from redelayed_positions`.execute(db))
      expect(rows).to.deep.equal([])
      await second.close()
      await first.close()

      const nowhere = `${url}?options=${encodeURIComponent('-c search_path=third')}`
      expect(await codeOf(JournalDatabase.open(parseJournalUrl(nowhere), { migrate: true }))).to.equal(
        'ERR_JOURNAL_ACCESS',
      )
    } finally {
      await server.stop()
    }
  })

  it('say that the disk is full, when SQLite has undone the transaction by itself', async () => {
    const server = startSqlite()
    const database = await JournalDatabase.open(parseJournalUrl(await server.fresh()), { migrate: true })
    try {
      await database.run((db) => sql`create table plain (name varchar(20))`.execute(db))
      await database.run((db) => sql`pragma max_page_count = 30`.execute(db))
      const big = 'x'.repeat(1_000_000)
      expect(await codeOf(database.transaction(insert(big)))).to.equal('ERR_JOURNAL_FULL')
      await database.transaction(insert('small'))
      expect(await namesIn(database)).to.deep.equal(['small'])
    } finally {
      await database.close()
      await server.stop()
    }
  })
})
