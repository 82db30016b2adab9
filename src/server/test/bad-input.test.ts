import { expect } from 'chai'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { InvalidArgumentError } from 'redelayed'
import { createJournal, JournalError, type Journal, type JournalOptions, type JournalQueue } from '../index.js'
import { parseJournalUrl } from '../config/journal-options.js'
import { JournalDatabase } from '../database/database.js'
import { asJournalError } from '../database/failures.js'
import { freePort } from '../../../scripts/redis.js'
import { DATABASES, startOrSkip, statement, type TestServer } from './support/databases.js'
import type { RestoreProgress } from '../journal/repair.js'
import { eventually } from './support/eventually.js'
import { FakeQueue, NEVER_PRUNED } from './support/fake-queue.js'

describe('a journal that cannot be opened', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'journal-bad-'))
  })
  afterEach(() => {
    chmodSync(dir, 0o700)
    rmSync(dir, { recursive: true, force: true })
  })

  async function codeOf(url: string): Promise<string> {
    const error = await createJournal({ url }).then(
      (journal) => journal.close(),
      (thrown: unknown) => thrown,
    )
    expect(error).to.be.instanceOf(JournalError)
    return (error as JournalError).code
  }

  for (const url of ['', 'journal.db', 'sqlite:', 'oracle://host/db', 'http://host', 'postgres:', 'mysql://[']) {
    it(`says which URLs there are when it gets "${url}"`, async () => {
      expect(await codeOf(url)).to.equal('ERR_JOURNAL_URL')
    })
  }

  it('does not repeat a URL, which can have a password', async () => {
    const error = await createJournal({ url: 'oracle://ada:secret@host/db' }).catch((thrown: unknown) => thrown)
    expect((error as Error).message)
      .to.include('oracle')
      .and.not.include('secret')
  })

  for (const options of [
    { mode: 'maybe' },
    { url: 'sqlite:x', lingerMs: -1 },
    { url: 'sqlite:x', sweepMs: 0.5 },
    { other: 1 },
    {},
  ]) {
    it(`refuses the options ${JSON.stringify(options)}`, async () => {
      const error = await createJournal(options as never).catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(InvalidArgumentError)
    })
  }

  it('refuses a file that is not a database, and leaves it as it is', async () => {
    const path = join(dir, 'notes.txt')
    const notes = 'these are notes, and no database '.repeat(200)
    writeFileSync(path, notes)
    expect(await codeOf(`sqlite:${path}`)).to.equal('ERR_JOURNAL_NOT_A_DATABASE')
    expect(readFileSync(path, 'utf8') === notes, 'the content').to.equal(true)
    expect(readdirSync(dir)).to.deep.equal(['notes.txt'])
  })

  it('refuses a file that another journal has, and takes it when that is closed', async () => {
    const url = `sqlite:${join(dir, 'journal.db')}`
    const first = await createJournal({ url })
    expect(await codeOf(url)).to.equal('ERR_JOURNAL_LOCKED')
    await first.close()
    await (await createJournal({ url })).close()
  })

  it('says that the disk is full, and continues when it is not', async () => {
    const database = await JournalDatabase.open(parseJournalUrl(`sqlite:${join(dir, 'full.db')}`), { migrate: true })
    try {
      await database.run((db) => sql.raw('pragma max_page_count = 60').execute(db))
      const write = (): Promise<unknown> =>
        database.transaction((db) => sql.raw('create table big as select zeroblob(1000000) as bytes').execute(db))
      const error = await write().catch((thrown: unknown) => thrown)
      expect((error as JournalError).code).to.equal('ERR_JOURNAL_FULL')
      await database.run((db) => sql.raw('pragma max_page_count = 100000').execute(db))
      await write()
    } finally {
      await database.close()
    }
  })

  it('refuses a missing folder', async () => {
    expect(await codeOf(`sqlite:${join(dir, 'missing', 'journal.db')}`)).to.equal('ERR_JOURNAL_ACCESS')
    expect(existsSync(join(dir, 'missing'))).to.equal(false)
  })

  for (const scheme of ['postgres', 'mysql']) {
    it(`says that no ${scheme} server answers`, async () => {
      expect(await codeOf(`${scheme}://ada@127.0.0.1:${await freePort()}/db`)).to.equal('ERR_JOURNAL_UNAVAILABLE')
    })
  }

  it('needs no database where it is off', async () => {
    const journal = await createJournal({ mode: 'off' })
    expect(journal.mode).to.equal('off')
    await journal.close()
  })
})

describe('the errors of the drivers', () => {
  const cases: readonly [code: string, message: string, expected: string][] = [
    ['28P01', 'password authentication failed', 'ERR_JOURNAL_ACCESS'],
    ['42501', 'permission denied', 'ERR_JOURNAL_ACCESS'],
    ['53100', 'could not extend file', 'ERR_JOURNAL_FULL'],
    ['57P01', 'terminating connection', 'ERR_JOURNAL_UNAVAILABLE'],
    ['08006', 'connection failure', 'ERR_JOURNAL_UNAVAILABLE'],
    ['ER_ACCESS_DENIED_ERROR', 'Access denied', 'ERR_JOURNAL_ACCESS'],
    ['ER_NET_PACKET_TOO_LARGE', "Got a packet bigger than 'max_allowed_packet' bytes", 'ERR_JOURNAL_TOO_LARGE'],
    ['ER_ERROR_ON_WRITE', 'Error writing file (Errcode: 28 "No space left on device")', 'ERR_JOURNAL_FULL'],
    ['PROTOCOL_CONNECTION_LOST', 'Connection lost', 'ERR_JOURNAL_UNAVAILABLE'],
    ['SQLITE_FULL', 'database or disk is full', 'ERR_JOURNAL_FULL'],
    ['', 'timeout exceeded when trying to connect', 'ERR_JOURNAL_UNAVAILABLE'],
    ['42601', 'syntax error', 'ERR_JOURNAL_QUERY'],
  ]
  const advice: Readonly<Record<string, RegExp>> = {
    ERR_JOURNAL_ACCESS: /check user, password, database and rights/,
    ERR_JOURNAL_FULL: /make room on its disk or raise its quota; nothing was written/,
    ERR_JOURNAL_UNAVAILABLE: /try again/,
    ERR_JOURNAL_TOO_LARGE: /raise max_allowed_packet\); nothing was written/,
    ERR_JOURNAL_QUERY: /nothing was written/,
  }
  for (const [code, message, expected] of cases) {
    it(`takes ${code || message} for ${expected}, and says what to do`, () => {
      const error = asJournalError(Object.assign(new Error(message), { code }))
      expect(error.code).to.equal(expected)
      expect(error.message)
        .to.include(message)
        .and.match(advice[expected] ?? /^$/)
      expect(error.isTemporary).to.equal(expected === 'ERR_JOURNAL_UNAVAILABLE')
    })
  }
})

const HOUR = 3_600_000

for (const database of DATABASES) {
  const [name] = database
  describe(`what ${name} cannot take, or should not have`, function () {
    this.timeout(60_000)
    let server: TestServer
    let url: string
    const open: Journal[] = []

    before(async function () {
      server = await startOrSkip(this, database)
    })
    after(() => server?.stop())
    beforeEach(async () => {
      url = await server.fresh()
    })
    afterEach(async () => {
      await Promise.all(open.splice(0).map((journal) => journal.close()))
    })

    async function attached(options: JournalOptions = {}): Promise<{
      journal: Journal
      queue: FakeQueue
      mails: JournalQueue<string>
    }> {
      const journal = await createJournal({ url, sweepMs: 60_000, ...NEVER_PRUNED, ...options })
      open.push(journal)
      const queue = new FakeQueue('mails')
      const mails = await journal.attach<string>(queue)
      await eventually(() => expect(queue.isKept).to.equal(true))
      return { journal, queue, mails }
    }

    const caught = (action: Promise<unknown>): Promise<unknown> =>
      action.then(
        () => undefined,
        (thrown: unknown) => thrown,
      )

    it('is a database that the user may not see, or may not change', async function () {
      if (server.kind === 'sqlite') {
        const folder = url.slice('sqlite:'.length, url.lastIndexOf('/'))
        expect(await caught(createJournal({ url: `sqlite:${folder}` }))).to.include({ code: 'ERR_JOURNAL_ACCESS' })
        return
      }
      const guest = new URL(url)
      guest.username = 'guest'
      if (server.kind === 'postgres') {
        await statement(url, 'create role guest login')
        await statement(url, 'revoke create on schema public from public')
      } else {
        await statement(url, "create user if not exists 'guest'@'127.0.0.1'")
        expect(await caught(createJournal({ url: guest.href }))).to.include({ code: 'ERR_JOURNAL_ACCESS' })
        await statement(url, `grant select on ${guest.pathname.slice(1)}.* to 'guest'@'127.0.0.1'`)
      }
      const error = await caught(createJournal({ url: guest.href }))
      expect(error).to.be.instanceOf(JournalError).and.include({ code: 'ERR_JOURNAL_ACCESS', outcome: 'not-applied' })
      const missing = new URL(url)
      missing.pathname = '/nothing'
      expect(await caught(createJournal({ url: missing.href }))).to.include({ code: 'ERR_JOURNAL_ACCESS' })
      await (await createJournal({ url })).close() // and nothing of it was made
    })

    it('is a message that is too large: it is not accepted, and the others are', async function () {
      if (server.kind !== 'mysql') this.skip() // the others take a gigabyte
      await statement(url, 'set global max_allowed_packet = 1048576')
      try {
        const { queue, mails } = await attached()
        const [first, large, last] = await Promise.all([
          mails.add('x', { id: 'first' }),
          caught(mails.add('x'.repeat(2_000_000), { id: 'large' })),
          mails.add('x', { id: 'last' }),
        ])
        expect([first.outcome, last.outcome]).to.deep.equal(['added', 'added'])
        expect(large).to.be.instanceOf(JournalError).and.include({ code: 'ERR_JOURNAL_TOO_LARGE' })
        expect((large as Error).message).to.include('max_allowed_packet')
        expect([await mails.get('large'), queue.messages.has('large')]).to.deep.equal([null, false])
      } finally {
        await statement(url, 'set global max_allowed_packet = 134217728')
      }
    })

    it('is more than its disk has room for: it is not accepted, and continues when there is room', async function () {
      if (server.kind !== 'sqlite') this.skip() // servers have no quota that a test may set; the fault bench fills a disk of theirs
      const pages =
        (most: number): ((sql: Parameters<Parameters<JournalDatabase['run']>[0]>[0]) => Promise<unknown>) =>
        (db) =>
          sql.raw(`pragma max_page_count = ${most}`).execute(db)
      const { queue, mails, journal } = await attached()
      const database = databaseOf(journal)
      await database.run(pages(60))
      const error = await caught(mails.add('x'.repeat(500_000), { id: 'large' }))
      expect(error).to.be.instanceOf(JournalError).and.include({ code: 'ERR_JOURNAL_FULL', outcome: 'not-applied' })
      expect([await mails.get('large'), queue.messages.has('large')]).to.deep.equal([null, false])
      await database.run(pages(100_000))
      expect(await mails.add('x'.repeat(500_000), { id: 'large' })).to.include({ outcome: 'added' })
    })

    it('is an id that is not valid text, or empty, or too long', async () => {
      const { queue, mails } = await attached()
      for (const id of ['\ud800', 'a\udc00b', '', 'x'.repeat(513), 'ä'.repeat(257)])
        expect(await caught(mails.add('x', { id })), JSON.stringify(id.slice(0, 9))).to.be.instanceOf(
          InvalidArgumentError,
        )
      expect(queue.messages.size).to.equal(0)
    })

    it('is an id that must stay unique for longer than the queue keeps its mark', async () => {
      const { queue, mails } = await attached()
      expect(await caught(mails.add('x', { id: 'a', onceForMs: 366 * 24 * HOUR }))).to.be.instanceOf(
        InvalidArgumentError,
      )
      expect(queue.messages.size).to.equal(0)
      expect(await mails.add('x', { id: 'a', onceForMs: 365 * 24 * HOUR })).to.include({ outcome: 'added' })
    })

    it('is a row with bytes that are not valid text: it is skipped and reported, and the others are put back', async () => {
      const { journal, queue, mails } = await attached()
      await mails.addMany(
        ['a', 'bad-id', 'bad-headers', 'no-text', 'c', 'd', 'e'].map((id) => ({ payload: id, id, delay: HOUR })),
      )
      await mails.drain()
      const [hex, of] =
        server.kind === 'postgres'
          ? ["'\\xff61'::bytea", (id: string) => `'${id}'::bytea`]
          : ["x'ff61'", (id: string) => (server.kind === 'mysql' ? `'${id}'` : `cast('${id}' as blob)`)]
      await statementIn(journal, `update redelayed_messages set id = ${hex} where id = ${of('bad-id')}`)
      await statementIn(journal, `update redelayed_messages set headers = ${hex} where id = ${of('bad-headers')}`)
      const restoreMany = queue.restoreMany.bind(queue)
      queue.restoreMany = async (items, options) => {
        const list = [...items]
        if (list.some(({ id }) => id === 'no-text')) throw new InvalidArgumentError('headers.a', 'a text', 5)
        return restoreMany(list, options)
      }
      const progress: RestoreProgress[] = []
      journal.on('restoring', (each) => progress.push(each))
      const said: JournalError[] = []
      journal.on('error', (error) => said.push(error as JournalError))
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      queue.wipe()
      await restored
      expect([...queue.messages.keys()].sort()).to.deep.equal(['a', 'c', 'd', 'e'])
      expect(said.map(({ code }) => code)).to.deep.equal(Array.from({ length: 3 }, () => 'ERR_JOURNAL_ROW'))
      expect(said.map(({ message }) => message).join()).to.include('the row of "no-text" makes no message')
      expect(progress.at(-1)).to.include({ restored: 4, present: 0, refused: 3 })
      ;(queue.messages as Map<string, unknown>).clear()
      expect(await mails.restore(), 'by hand').to.deep.equal({ checked: 7, restored: 4, refused: 3 })
    })

    it('is not an id that differs from another one in case or in spaces at the end: each keeps its own end', async () => {
      const { journal, queue, mails } = await attached()
      const ids = ['order', 'Order', 'order ', 'order  ']
      await mails.addMany(ids.map((id) => ({ payload: id, id, delay: HOUR })))
      expect(await mails.cancel('Order')).to.equal(true)
      await mails.drain()
      const restored = new Promise((resolve) => journal.once('restored', resolve))
      queue.wipe()
      await restored
      expect([...queue.messages.keys()].sort()).to.deep.equal(['order', 'order ', 'order  '])
    })
  })
}

/** SQLite has one connection, which is the journal's. */
function databaseOf(journal: Journal): JournalDatabase {
  return journal.database as JournalDatabase
}

async function statementIn(journal: Journal, text: string): Promise<void> {
  await databaseOf(journal).run((db) => sql.raw(text).execute(db))
}
