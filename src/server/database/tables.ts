import type { Generated } from 'kysely'

/** Bytes: a `Buffer` from PostgreSQL and MySQL, a `Uint8Array` from the thread of SQLite. */
export type Bytes = Uint8Array

/**
 * Where a message is. `accepted`: the row is committed, Redis is not known to have the message; `open`: Redis has it, waiting or in flight.
 * The others are final.
 */
export type RowState = 'accepted' | 'open' | 'handled' | 'dead' | 'expired' | 'removed' | 'moved' | 'refused'

export const OPEN_STATES: readonly RowState[] = ['accepted', 'open']
export const FINAL_STATES: readonly RowState[] = ['handled', 'dead', 'expired', 'removed', 'moved', 'refused']

/**
 * A message: everything needed to make it again, and its latest state. Names and ids are bytes, so that no collation takes two ids for one.
 * `generation`, `change_ms` and `change_seq` are the change that the row shows; an older one does not overwrite it.
 */
export interface MessageTable {
  queue: Bytes
  id: Bytes
  state: RowState
  due_at: number
  priority: number
  attempts: number
  expires_at: number | null
  delivery_limit: number | null
  /** Its group, where it has one. */
  message_group: Bytes | null
  /** JSON. */
  headers: Bytes | null
  /** See `bizKeyDigest`: a search finds the messages of a business key by it. */
  biz_key: Bytes | null
  payload: Bytes
  /** JSON: the failed attempts. */
  failures: Bytes | null
  accepted_at: number
  updated_at: number
  generation: number
  change_ms: number
  change_seq: number
}

/** What happened to the messages, a row for each change. */
export interface FlowTable {
  seq: Generated<number>
  queue: Bytes
  id: Bytes
  change: string
  at: number
  attempt: number | null
  client: string
  error: Bytes | null
}

/** How far each queue's change stream is in this database. */
export interface PositionTable {
  queue: Bytes
  /** Rises each time Redis was found to have forgotten something. */
  generation: number
  epoch: string | null
  change_ms: number
  change_seq: number
  /** `<ms>-<seq> <digest>` of the last entry that is in this database, which differs for another entry of the same id. */
  digest: string | null
  /** Entries of the stream until this time can be in the flow table already: Redis went back to before it. */
  reread_until: number
  /** JSON: the queue's configuration, which Redis can lose, too. */
  config: Bytes | null
  /** 1 while what Redis lacks is being put back. */
  repair: number
  /** How far that is. */
  repair_stage: string
  repair_id: Bytes | null
  repair_owner: string
  repair_until: number
}

export interface JournalTables {
  redelayed_messages: MessageTable
  redelayed_message_flow: FlowTable
  redelayed_positions: PositionTable
}

export const EMPTY: Bytes = Buffer.alloc(0)

export function toBytes(text: string): Buffer {
  return Buffer.from(text)
}

export function toText(bytes: Bytes): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}
