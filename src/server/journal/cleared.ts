import type { JournalDatabase } from '../database/database.js'
import type { Bytes } from '../database/tables.js'
import { isNewer, type ChangeTime, type Draft } from './apply-change.js'
import type { AttachedQueue } from './attached-queue.js'
import { hasClear } from './journal-batches.js'
import type { JournalBatch } from './journalled-queue.js'
import { idParts } from './positions.js'
import type { Row } from './rows.js'

/** The most rows cleared by one statement. */
const CLEARED = 1_000

/**
 * Marks rows as removed if the batch says that Redis cleared all messages of the queue; otherwise does nothing. There can be millions:
 * their rows are written before the entry, in batches. After an interruption it is repeated with the entry, as it touches no row with a later change.
 */
export async function removeClearedRows(
  database: JournalDatabase,
  { key }: AttachedQueue,
  generation: number,
  batch: JournalBatch | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (batch === undefined || !hasClear(batch)) return
  const time = { ...idParts(batch.position.id), generation, at: batch.at }
  for (let after: Bytes | null = null; ;) {
    signal?.throwIfAborted()
    const rows: readonly { id: Bytes }[] = await database.run((sql) => {
      const query = sql
        .selectFrom('redelayed_messages')
        .select('id')
        .where('queue', '=', key)
        .where('state', '=', 'open')
        .orderBy('id')
        .limit(CLEARED)
      return (after === null ? query : query.where('id', '>', after)).execute()
    })
    const ids = rows.map(({ id }) => id)
    if (ids.length > 0)
      await database.run((sql) =>
        sql
          .updateTable('redelayed_messages')
          .set(removedAt(time))
          .where('queue', '=', key)
          .where('id', 'in', ids)
          .where('state', '=', 'open')
          .where((is) =>
            is.or([
              is('generation', '<', generation),
              is.and([is('generation', '=', generation), is('change_ms', '<', time.ms)]),
              is.and([
                is('generation', '=', generation),
                is('change_ms', '=', time.ms),
                is('change_seq', '<', time.seq),
              ]),
            ]),
          )
          .execute(),
      )
    after = ids.at(-1) ?? null
    if (ids.length < CLEARED) return
  }
}

/** Marks drafts of the page that is being written as removed, as `removeClearedRows` does with rows. */
export function clearDrafts(drafts: Map<string, Draft>, time: ChangeTime): void {
  for (const [id, draft] of drafts) {
    if (draft.row.state === 'open' && !isNewer(draft.row, time))
      drafts.set(id, { ...draft, row: { ...draft.row, ...removedAt(time) } })
  }
}

function removedAt({ at, generation, ms, seq }: ChangeTime): Partial<Row> {
  return { state: 'removed', updated_at: at, generation, change_ms: ms, change_seq: seq }
}
