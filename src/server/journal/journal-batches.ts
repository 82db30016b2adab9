import { toBytes } from '../database/tables.js'
import type { AttachedQueue } from './attached-queue.js'
import type { JournalBatch, JournalChange } from './journalled-queue.js'
import { idParts } from './positions.js'
import { isInFlow, MOST_CLIENT } from './reread.js'
import type { FlowRow } from './rows.js'

const MOST_ERROR_BYTES = 2_000

/**
 * The entries without restored messages: a restore put back the message exactly as SQL has it, so SQL needs no write. A row that changed
 * meanwhile is newer, and the restore removes final messages later.
 */
export function withoutRestored(batch: JournalBatch): JournalBatch[] {
  const isOther = ({ change }: JournalChange): boolean => change !== 'restored'
  if (batch.changes.every(isOther)) return [batch]
  const changes = batch.changes.filter(isOther)
  return changes.length === 0 ? [] : [{ ...batch, changes }]
}

export function idsOf(batches: readonly JournalBatch[]): ReadonlySet<string> {
  return new Set(batches.flatMap(({ changes }) => changes.map(({ id }) => id)))
}

export function hasClear({ changes }: JournalBatch): boolean {
  return changes.some(({ change }) => change === 'cleared')
}

/** An entry that clears the queue is written alone: the entries before it are written first. */
export function upToClear(batches: readonly JournalBatch[]): readonly JournalBatch[] {
  const at = batches.findIndex(hasClear)
  return at < 0 ? batches : batches.slice(0, Math.max(1, at))
}

/** The time of an entry, from its id in the stream. */
export function timeOf(batch: JournalBatch | undefined): number {
  return batch === undefined ? Infinity : idParts(batch.position.id).ms
}

/** The rows of the flow table: one for each change that it has. */
export function flowOf({ key }: AttachedQueue, batches: readonly JournalBatch[]): FlowRow[] {
  return batches.flatMap(({ at, client, changes }) =>
    changes
      .filter(({ change }) => isInFlow(change))
      .map(({ id, change, attempt, error }) => ({
        queue: key,
        id: toBytes(id),
        change,
        at,
        attempt: attempt ?? null,
        client: client.slice(0, MOST_CLIENT),
        error: error === undefined ? null : toBytes(error).subarray(0, MOST_ERROR_BYTES),
      })),
  )
}
