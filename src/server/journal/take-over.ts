import type { JournalDatabase } from '../database/database.js'
import { toText, type Bytes } from '../database/tables.js'
import type { AttachedQueue } from './attached-queue.js'
import { contentOf, type Row, type Writers } from './rows.js'

const IDS = 500

/**
 * Gives rows that are only accepted the content of the messages that Redis has under their ids. Where the row has changed meanwhile, the change
 * stream says more, and nothing is written: a message that was handled does not come back.
 */
export async function takeOver(
  database: JournalDatabase,
  writers: Writers,
  { queue, key }: AttachedQueue,
  rows: readonly Row[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += IDS) {
    const some = rows.slice(from, from + IDS)
    const messages = await queue.getAllRaw(some.map(({ id }) => toText(id)))
    const found = some.flatMap((row, at): Row[] => {
      const message = messages[at]
      return message ? [{ ...row, ...contentOf(message), state: 'open' }] : []
    })
    if (found.length === 0) continue
    await database.transaction(async (sql) => {
      const query = sql
        .selectFrom('redelayed_messages')
        .select(['id', 'accepted_at'])
        .where('queue', '=', key)
        .where('id', 'in', found.map(idOf))
        .where('state', '=', 'accepted')
      const now = await (database.kind === 'sqlite' ? query : query.forUpdate()).execute()
      const acceptedAt = new Map(now.map(({ id, accepted_at }) => [toText(id), accepted_at]))
      await writers.accepted.write(
        sql,
        found.filter((row) => acceptedAt.get(toText(row.id)) === row.accepted_at),
      )
    })
  }
}

function idOf({ id }: Row): Bytes {
  return id
}
