import { EMPTY } from '../database/tables.js'
import type { JournalBatch, JournalChange } from './journalled-queue.js'
import { groupColumn, headerColumns, type Row } from './rows.js'

/** The content that SQL has of an accepted message before Redis has it. */
export type Content = Pick<Row, 'payload' | 'headers' | 'expires_at' | 'delivery_limit' | 'message_group'>

/**
 * SQL already has the content of accepted messages: if the first change of a message adds it to Redis with the same content, the content is
 * not written again. Removes each id of the batch from `accepted`, since only the first change of a message can match.
 */
export function withoutKnown(batch: JournalBatch, accepted: Map<string, Content>): JournalBatch {
  if (accepted.size === 0) return batch
  const changes = batch.changes.map((change): JournalChange => {
    const known = accepted.get(change.id)
    accepted.delete(change.id)
    if (known === undefined || change.change !== 'added' || !isOf(change, known)) return change
    return { ...change, payload: undefined }
  })
  return { ...batch, changes }
}

function isOf({ payload, headers, expiresAt, deliveryLimit, group }: JournalChange, known: Content): boolean {
  return (
    payload !== undefined &&
    (expiresAt ?? null) === known.expires_at &&
    (deliveryLimit ?? null) === known.delivery_limit &&
    Buffer.compare(groupColumn(group) ?? EMPTY, known.message_group ?? EMPTY) === 0 &&
    Buffer.compare(payload, known.payload) === 0 &&
    Buffer.compare(headerColumns(headers).headers ?? EMPTY, known.headers ?? EMPTY) === 0
  )
}
