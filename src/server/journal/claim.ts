import type { JournalDatabase } from '../database/database.js'
import { toText } from '../database/tables.js'
import type { AttachedQueue } from './attached-queue.js'
import type { Row } from './rows.js'

/**
 * The rows that a restore may put back. A message that was just accepted is on its way to Redis, from the instance that accepted it or from
 * one that adopts: the restore leaves it to them. Rows that were accepted longer ago are claimed as adoption does, by renewing
 * `updated_at`.
 */
export async function claimed(
  database: JournalDatabase,
  { key, clock }: AttachedQueue,
  rows: readonly Row[],
  adoptAfterMs: number,
): Promise<readonly Row[]> {
  const before = clock.now() - adoptAfterMs
  const old = rows.filter(({ state, updated_at }) => state === 'accepted' && updated_at < before)
  let mine = new Set<string>()
  if (old.length > 0) {
    mine = await database.transaction(async (sql) => {
      // made here: after a conflict the transaction is repeated, and what the first attempt claimed does not count
      const own = new Set<string>()
      for (const { id } of old) {
        const { numUpdatedRows } = await sql
          .updateTable('redelayed_messages')
          .set({ updated_at: clock.now() })
          .where('queue', '=', key)
          .where('id', '=', id)
          .where('state', '=', 'accepted')
          .where('updated_at', '<', before)
          .executeTakeFirst()
        if (numUpdatedRows > 0n) own.add(toText(id))
      }
      return own
    })
  }
  return rows.filter(({ state, id }) => state !== 'accepted' || mine.has(toText(id)))
}
