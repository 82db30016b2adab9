import { sql as raw } from 'kysely'
import type { JournalDatabase } from '../database/database.js'
import type { Bytes } from '../database/tables.js'
import type { AttachedQueue } from './attached-queue.js'
import type { Drain } from './drain.js'
import { restoreRows, type OnBadRow } from './restore-rows.js'
import { thatFit } from './row-pages.js'
import type { Row, Writers } from './rows.js'
import { takeOver } from './take-over.js'

const PAGE = 500

/**
 * Adds messages that were accepted long ago and never came to Redis, because the instance that accepted them died or could not reach Redis.
 * It reads the change stream to its end first: a message that is still only accepted then was not added, and no consumer has handled it. It
 * claims the rows, so that only one of several instances adds them.
 */
export async function adopt(
  database: JournalDatabase,
  writers: Writers,
  drain: Drain,
  attached: AttachedQueue,
  {
    olderThanMs,
    onBadRow,
    signal,
  }: { readonly olderThanMs: number; readonly onBadRow: OnBadRow; readonly signal?: AbortSignal | undefined },
): Promise<number> {
  const before = attached.clock.now() - olderThanMs
  let count = 0
  for (;;) {
    if (!(await isAnyLeft(database, attached.key, before))) return count
    if ((await drain.run(attached, { signal })).hasForgotten) return count
    const { rows, isEnd } = await claim(database, attached, before)
    const outcomes = await restoreRows(attached.queue, rows, onBadRow)
    const present = rows.filter((_, at) => outcomes[at] === 'present')
    const taken = await takeOver({ database, writers, drain, onBadRow }, attached, present, { signal })
    count += outcomes.filter((outcome) => outcome === 'restored').length
    count += taken.filter((outcome) => outcome === 'added').length
    if (isEnd) break
  }
  await drain.run(attached, { signal })
  return count
}

async function isAnyLeft(database: JournalDatabase, queue: Bytes, before: number): Promise<boolean> {
  const row = await database.run((sql) =>
    sql
      .selectFrom('redelayed_messages')
      .select('id')
      .where('queue', '=', queue)
      .where('state', '=', 'accepted')
      .where('updated_at', '<', before)
      .limit(1)
      .executeTakeFirst(),
  )
  return row !== undefined
}

/** Claims rows by renewing `updated_at`: other instances wait for them as long as for rows that were just accepted. */
function claim(
  database: JournalDatabase,
  { key, clock }: AttachedQueue,
  before: number,
): Promise<{ readonly rows: Row[]; readonly isEnd: boolean }> {
  return database.transaction(async (sql) => {
    const query = sql
      .selectFrom('redelayed_messages')
      .select(['id', raw<number>`length(payload)`.as('bytes')])
      .where('queue', '=', key)
      .where('state', '=', 'accepted')
      .where('updated_at', '<', before)
      .orderBy('updated_at')
      .limit(PAGE)
    const found = await (database.kind === 'sqlite' ? query : query.forUpdate()).execute()
    const ids = thatFit(found).map(({ id }) => id)
    if (ids.length === 0) return { rows: [], isEnd: true }
    const rows = await sql
      .selectFrom('redelayed_messages')
      .selectAll()
      .where('queue', '=', key)
      .where('id', 'in', ids)
      .execute()
    const now = clock.now()
    await sql
      .updateTable('redelayed_messages')
      .set({ updated_at: now })
      .where('queue', '=', key)
      .where('id', 'in', ids)
      .execute()
    for (const row of rows) row.updated_at = now
    return { rows, isEnd: found.length < PAGE && ids.length === found.length }
  })
}
