import type { JournalDatabase } from '../database/database.js'
import type { AttachedQueue } from './attached-queue.js'
import type { Drain } from './drain.js'
import { messageOf, type Row } from './rows.js'

const PAGE = 500

/**
 * Adds what was accepted long ago and never came to Redis, because the instance that accepted it has died or could not reach Redis. The change
 * stream is read to its end in between: what is still only accepted then was not added, and no consumer has handled it.
 */
export async function adopt(
  database: JournalDatabase,
  drain: Drain,
  attached: AttachedQueue,
  olderThanMs: number,
): Promise<number> {
  const before = attached.clock.now() - olderThanMs
  const lost = (): Promise<Row[]> =>
    database.run((sql) =>
      sql
        .selectFrom('redelayed_messages')
        .selectAll()
        .where('queue', '=', attached.key)
        .where('state', '=', 'accepted')
        .where('updated_at', '<', before)
        .limit(PAGE)
        .execute(),
    )
  if ((await lost()).length === 0) return 0
  if ((await drain.run(attached)).hasForgotten) return 0
  const rows = await lost()
  if (rows.length === 0) return 0
  const outcomes = await attached.queue.restoreMany(rows.map(messageOf))
  const present = rows.filter((_, at) => outcomes[at] === 'present').map(({ id }) => id)
  if (present.length > 0) {
    await database.run((sql) =>
      sql
        .updateTable('redelayed_messages')
        .set({ state: 'open' })
        .where('queue', '=', attached.key)
        .where('id', 'in', present)
        .where('state', '=', 'accepted')
        .execute(),
    )
  }
  await drain.run(attached)
  return outcomes.filter((outcome) => outcome === 'restored').length
}
