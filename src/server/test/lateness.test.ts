import { expect } from 'chai'
import { setTimeout as sleep } from 'node:timers/promises'
import { CompiledQuery } from 'kysely'
import { parseJournalUrl } from '../config/journal-options.js'
import { JournalDatabase } from '../database/database.js'
import { toBytes } from '../database/tables.js'
import { newRow, writersOf } from '../journal/rows.js'
import { startSqlite } from './support/databases.js'

const PER_SECOND = 5_000
/** A busy machine commits fewer: in each round so much of what it could commit just before. */
const SHARE = 0.5
/** Of the rate that is aimed at, so much has to be committed. */
const REACHED = 0.9
const MOST_ROWS = 500
const EVERY_MS = 10
const ROUND_MS = 1_500
const CALIBRATION_MS = 400
const ROUNDS = 8

/** How late timers of 2 ms are, sorted, until `isOver` resolves. */
async function lateness(isOver: Promise<unknown>): Promise<number[]> {
  const found: number[] = []
  let goesOn = true
  void isOver.finally(() => (goesOn = false)).catch(() => undefined)
  while (goesOn) {
    const due = performance.now() + 2
    await sleep(2)
    found.push(performance.now() - due)
  }
  await isOver
  return found.sort((a, b) => a - b)
}

function p99(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length * 0.99)] ?? Infinity
}

describe('timers of a process with a journal in SQLite', function () {
  this.timeout(120_000)
  const server = startSqlite()
  let database: JournalDatabase
  let count = 0

  before(async () => {
    database = await JournalDatabase.open(parseJournalUrl(await server.fresh()), { migrate: true })
  })
  after(async () => {
    await database?.close()
    await server.stop()
  })

  /** As many rows a second as are asked for, or as the machine can; resolves with how many were committed in a second. */
  async function commit(forMs: number, perSecond: number): Promise<number> {
    const { accepted } = writersOf(database)
    const [startedAt, from] = [performance.now(), count]
    for (let elapsed = 0; elapsed < forMs; elapsed = performance.now() - startedAt) {
      const due = Math.floor((perSecond * Math.min(forMs, elapsed + EVERY_MS)) / 1_000) - (count - from)
      const rows = Array.from({ length: Math.max(1, Math.min(MOST_ROWS, due)) }, () => ({
        ...newRow(toBytes('mails'), `message-${count++}`, { generation: 1, ms: 0, seq: 0 }, Date.now()),
        payload: Buffer.alloc(100, 'x'),
      }))
      const isBehind = due >= MOST_ROWS
      await Promise.all([database.transaction((sql) => accepted.write(sql, rows)), sleep(isBehind ? 0 : EVERY_MS)])
    }
    return ((count - from) / (performance.now() - startedAt)) * 1_000
  }

  /** Rows a second that are asked for and that were committed, and the lateness in ms of 99 of 100 timers without and with them. */
  interface Round {
    readonly asked: number
    readonly committed: number
    readonly without: number
    readonly with: number
  }

  async function play(): Promise<Round> {
    const possible = await commit(CALIBRATION_MS, Infinity)
    const asked = Math.min(PER_SECOND, SHARE * possible)
    const without = p99(await lateness(sleep(ROUND_MS)))
    const commits = commit(ROUND_MS, asked)
    return { asked, without, with: p99(await lateness(commits)), committed: await commits }
  }

  it('are not later while it commits 5,000 rows a second, or half of what a busy machine can', async () => {
    const rounds: Round[] = []
    while (rounds.length < ROUNDS) {
      const round = await play()
      rounds.push(round)
      if (round.committed >= REACHED * round.asked && round.with <= 1.5 * round.without + 3) return
    }
    // other processes make timers late, too, but not each time just while there are commits
    expect.fail(JSON.stringify(rounds))
  })

  it('are not held up by a statement that takes long, as they are by one in their own thread', async () => {
    const slow = CompiledQuery.raw(
      'with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000) select count(*) as count from n',
    )
    const longest: { readonly took: number; readonly late: number }[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const startedAt = performance.now()
      let took = 0
      const query = database.run((sql) => sql.executeQuery(slow)).then(() => (took = performance.now() - startedAt))
      const late = (await lateness(query)).at(-1) ?? Infinity
      longest.push({ took, late })
      if (late < took / 2) return
    }
    expect.fail(`in ms: ${JSON.stringify(longest)}`)
  })
})
