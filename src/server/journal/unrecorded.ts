import type { JournalDatabase, SqlTransaction } from '../database/database.js'
import { toBytes, toText } from '../database/tables.js'
import { JournalError } from '../errors.js'
import type { AttachedQueue } from './attached-queue.js'
import type { StoredRawMessage } from './journalled-queue.js'
import { contentOf, newRow, type Row, type Writers } from './rows.js'

const PAGE = 500
/** A queue that just came back empty has few messages; if it keeps no changes for another reason, at most about this many are read. */
const MOST = 10_000
const MOST_BYTES = 64 * 1024 * 1024

interface Unrecorded {
  readonly messages: readonly StoredRawMessage[]
  /** About how many messages were not read. */
  readonly leftOut: number
}

/**
 * The messages of a queue that began anew and did not record them: those that came, such as dead letters, before a journal saw that it was
 * empty. The queue must already keep its changes, so that every later change is recorded.
 */
export async function unrecorded({ queue }: AttachedQueue): Promise<Unrecorded> {
  const found: StoredRawMessage[] = []
  let bytes = 0
  for await (const page of queue.listAllRaw({ pageSize: PAGE })) {
    found.push(...page)
    bytes += page.reduce((sum, { payload }) => sum + payload.length, 0)
    if (found.length >= MOST || bytes >= MOST_BYTES)
      return { messages: found, leftOut: Math.max(0, (await queue.size()) - found.length) }
  }
  return { messages: found, leftOut: 0 }
}

export function leftOutError(count: number): JournalError {
  return new JournalError(
    'ERR_JOURNAL_LEFT_OUT',
    `the journal reads at most about ${MOST} messages or 64 MiB of a queue that began anew, and left out about ${count}: Redis alone can have those; "redelayed-server journal verify" lists them`,
  )
}

/** Writes rows for messages that have none, in the transaction that begins the generation, so that later changes find them. */
export async function takeIn(
  sql: SqlTransaction,
  { kind }: JournalDatabase,
  writers: Writers,
  { key, clock }: AttachedQueue,
  generation: number,
  messages: readonly StoredRawMessage[],
): Promise<void> {
  for (let from = 0; from < messages.length; from += PAGE) {
    const some = messages.slice(from, from + PAGE)
    const ids = some.map(({ id }) => toBytes(id))
    const query = sql.selectFrom('redelayed_messages').select('id').where('queue', '=', key).where('id', 'in', ids)
    const known = new Set((await (kind === 'sqlite' ? query : query.forUpdate()).execute()).map(({ id }) => toText(id)))
    const rows = some.flatMap((message): Row[] =>
      known.has(message.id)
        ? []
        : [
            {
              ...newRow(key, message.id, { generation, ms: 0, seq: 0 }, clock.now()),
              ...contentOf(message),
              state: 'open',
            },
          ],
    )
    await writers.whole.write(sql, rows)
  }
}
