import { expect } from 'chai'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { InvalidArgumentError } from 'redelayed'
import { createJournal, JournalError } from '../index.js'
import { parseJournalUrl } from '../config/journal-options.js'
import { JournalDatabase } from '../database/database.js'
import { asJournalError } from '../database/failures.js'
import { freePort } from '../../../scripts/redis.js'

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

  it('refuses a file that is no database, and leaves it as it is', async () => {
    const path = join(dir, 'notes.txt')
    writeFileSync(path, 'these are notes, and no database '.repeat(200))
    expect(await codeOf(`sqlite:${path}`)).to.equal('ERR_JOURNAL_NOT_A_DATABASE')
  })

  it('refuses a file that another journal has, and takes it when that is closed', async () => {
    const url = `sqlite:${join(dir, 'journal.db')}`
    const first = await createJournal({ url })
    expect(await codeOf(url)).to.equal('ERR_JOURNAL_LOCKED')
    await first.close()
    await (await createJournal({ url })).close()
  })

  it('says that the disk is full, and goes on when it is not', async () => {
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

  it('refuses a folder that is not there', async () => {
    expect(await codeOf(`sqlite:${join(dir, 'missing', 'journal.db')}`)).to.equal('ERR_JOURNAL_ACCESS')
    expect(existsSync(join(dir, 'missing'))).to.equal(false)
  })

  for (const scheme of ['postgres', 'mysql']) {
    it(`says that no ${scheme} server answers`, async () => {
      expect(await codeOf(`${scheme}://ada@127.0.0.1:${await freePort()}/db`)).to.equal('ERR_JOURNAL_UNAVAILABLE')
    })
  }

  it('needs no database where it is off', async () => {
    await (await createJournal({ mode: 'off' })).close()
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
  for (const [code, message, expected] of cases) {
    it(`takes ${code || message} for ${expected}`, () => {
      const error = asJournalError(Object.assign(new Error(message), { code }))
      expect(error.code).to.equal(expected)
      expect(error.isTemporary).to.equal(expected === 'ERR_JOURNAL_UNAVAILABLE')
    })
  }
})
