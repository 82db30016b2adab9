import type { JournalDatabase } from '../database/database.js'
import type { Bytes } from '../database/tables.js'

const BATCH = 1_000

/** Removes all rows of a queue from SQL, in batches that lock little; its position last, so that the call can be repeated. */
export async function forgetQueue(database: JournalDatabase, queue: Bytes, signal?: AbortSignal): Promise<void> {
  for (let isMore = true; isMore;) {
    signal?.throwIfAborted()
    isMore = await database.run(async (sql) => {
      const rows = await sql
        .selectFrom('redelayed_messages')
        .select('id')
        .where('queue', '=', queue)
        .limit(BATCH)
        .execute()
      const ids = rows.map(({ id }) => id)
      if (ids.length > 0)
        await sql.deleteFrom('redelayed_messages').where('queue', '=', queue).where('id', 'in', ids).execute()
      return ids.length === BATCH
    })
  }
  for (let isMore = true; isMore;) {
    signal?.throwIfAborted()
    isMore = await database.run(async (sql) => {
      const rows = await sql
        .selectFrom('redelayed_message_flow')
        .select('seq')
        .where('queue', '=', queue)
        .limit(BATCH)
        .execute()
      const places = rows.map(({ seq }) => seq)
      if (places.length > 0) await sql.deleteFrom('redelayed_message_flow').where('seq', 'in', places).execute()
      return places.length === BATCH
    })
  }
  await database.run((sql) => sql.deleteFrom('redelayed_positions').where('queue', '=', queue).execute())
}
