import { expect } from 'chai'
import { JournalDatabase } from '../database/database.js'
import { parseJournalUrl } from '../config/journal-options.js'
import { toBytes, toText } from '../database/tables.js'
import type { AttachedQueue } from '../journal/attached-queue.js'
import { claimed } from '../journal/claim.js'
import { newRow, writersOf } from '../journal/rows.js'
import { startSqlite } from './support/databases.js'

describe('the rows that a restore may put back', () => {
  it('are those that it has claimed, and none of an attempt that was not committed', async () => {
    const server = startSqlite()
    const sql = await JournalDatabase.open(parseJournalUrl(await server.fresh()), { migrate: true })
    try {
      const key = toBytes('mails')
      const rows = ['a', 'b'].map((id) => newRow(key, id, { generation: 1, ms: 0, seq: 0 }, 1_000))
      await sql.transaction((tx) => writersOf(sql).fresh.write(tx, rows))
      let attempts = 0
      // like a conflict: the other transaction claims one of the rows, and this one is repeated
      const repeating = {
        transaction: async <R>(action: Parameters<typeof sql.transaction<R>>[0]): Promise<R> => {
          attempts++
          const undone = sql.transaction(async (tx) => {
            await action(tx)
            throw new Error('deadlock')
          })
          await undone.catch(() => undefined)
          await sql.run((db) =>
            db.updateTable('redelayed_messages').set({ updated_at: 9_000 }).where('id', '=', toBytes('a')).execute(),
          )
          return sql.transaction(action)
        },
      } as unknown as JournalDatabase
      const attached = { key, clock: { now: () => 10_000 } } as unknown as AttachedQueue
      const mine = await claimed(repeating, attached, rows, 5_000)
      expect(mine.map(({ id }) => toText(id))).to.deep.equal(['b'])
      expect(attempts).to.equal(1)
    } finally {
      await sql.close()
      await server.stop()
    }
  })
})
