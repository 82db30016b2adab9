import type { Generated } from 'kysely'

/** Bytes: a `Buffer` from PostgreSQL and MySQL, a `Uint8Array` from the thread of SQLite. */
export type Bytes = Uint8Array

/**
 * The state of a message. `accepted`: the row is committed, but Redis is not known to have the message; `open`: Redis has it, waiting or in
 * flight. The others are final.
 */
export type RowState = 'accepted' | 'open' | 'handled' | 'dead' | 'expired' | 'removed' | 'moved' | 'refused'

export const OPEN_STATES: readonly RowState[] = ['accepted', 'open']
export const FINAL_STATES: readonly RowState[] = ['handled', 'dead', 'expired', 'removed', 'moved', 'refused']

/**
 * A message: everything needed to restore it, and its latest state. Names and ids are bytes, so that no collation treats two ids as equal.
 * `generation`, `change_ms` and `change_seq` identify the change that the row shows; an older change does not overwrite it.
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
  /** Its group, if it has one. */
  message_group: Bytes | null
  /** JSON. */
  headers: Bytes | null
  /** See `bizKeyDigest`: searches by business key use it. */
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

/** The history of messages, a row for each change. */
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

/** For each queue, the place in its change stream up to which this database has it. */
export interface PositionTable {
  queue: Bytes
  /** Increases each time the journal finds that Redis has forgotten something. */
  generation: number
  epoch: string | null
  change_ms: number
  change_seq: number
  /** `<ms>-<seq> <digest>` of the last entry in this database; another entry with the same id has another digest. */
  digest: string | null
  /** Entries of the stream up to this time may already be in the flow table: Redis went back to before it. */
  reread_until: number
  /** JSON: the queue's configuration, which Redis can lose too. */
  config: Bytes | null
  /** 1 while a repair puts back what Redis lacks. */
  repair: number
  /** The progress of the repair. */
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
