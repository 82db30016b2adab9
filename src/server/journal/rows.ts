import type { FailedAttempt, RawMessage } from 'redelayed'
import { BIZ_KEY_HEADER, bizKeyDigest } from '../database/biz-key.js'
import type { JournalDatabase } from '../database/database.js'
import { EMPTY, toBytes, type Bytes, type FlowTable, type MessageTable } from '../database/tables.js'
import { Upsert } from '../database/upsert.js'

export type Row = MessageTable
export type FlowRow = Omit<FlowTable, 'seq'>

/** The change that a row shows. The newer of two has the greater generation, or else the greater id in the stream. */
export interface Stamp {
  readonly generation: number
  readonly ms: number
  readonly seq: number
}

/** Invalid UTF-8 would decode to another id. */
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const KEYS = ['queue', 'id'] as const
/** The columns that change while a message is stored. */
export const STATE = [
  'state',
  'due_at',
  'priority',
  'attempts',
  'expires_at',
  'failures',
  'updated_at',
  'generation',
  'change_ms',
  'change_seq',
] as const
const CONTENT = ['delivery_limit', 'message_group', 'headers', 'biz_key', 'payload', 'accepted_at'] as const
const COLUMNS = [...KEYS, ...STATE, ...CONTENT] as const
const STAMP: readonly string[] = ['generation', 'change_ms', 'change_seq']

/** All columns of a row but its content. */
export const STATE_COLUMNS = [...KEYS, ...STATE, 'accepted_at', 'delivery_limit', 'message_group'] as const

/** All columns of a row but its queue, which the reader knows. */
export const ROW_COLUMNS = ['id', ...STATE, ...CONTENT] as const

/** The ways in which the journal writes rows. */
export interface Writers {
  /** The whole row. */
  readonly whole: Upsert<Row>
  /** The state of an existing row; its content stays. */
  readonly states: Upsert<Row>
  /** An accepted message: if an earlier message has a row with this id, the change that the row shows stays. */
  readonly accepted: Upsert<Row>
  /** A message whose id has no row; fails if there is one. */
  readonly fresh: Upsert<Row>
  readonly flow: Upsert<FlowRow>
}

export function writersOf({ kind, mostBytes }: JournalDatabase): Writers {
  const messages = (updated: readonly (keyof Row)[]): Upsert<Row> =>
    new Upsert<Row>(kind, 'redelayed_messages', { columns: COLUMNS, keys: KEYS, updated }, mostBytes)
  return {
    whole: messages([...STATE, ...CONTENT]),
    states: messages(STATE),
    accepted: messages([...STATE, ...CONTENT].filter((name) => !STAMP.includes(name))),
    fresh: messages([]),
    flow: new Upsert<FlowRow>(kind, 'redelayed_message_flow', {
      columns: ['queue', 'id', 'change', 'at', 'attempt', 'client', 'error'],
    }),
  }
}

export function newRow(queue: Bytes, id: string, { ms, seq, generation }: Stamp, at: number): Row {
  return {
    queue,
    id: toBytes(id),
    state: 'accepted',
    due_at: at,
    priority: 0,
    attempts: 0,
    expires_at: null,
    delivery_limit: null,
    message_group: null,
    headers: null,
    biz_key: null,
    payload: EMPTY,
    failures: null,
    accepted_at: at,
    updated_at: at,
    generation,
    change_ms: ms,
    change_seq: seq,
  }
}

/**
 * Whether an earlier message had the id of an accepted row, in an older generation: the row keeps the stamp of that message, which was
 * final. A Redis that went back in time since can have that older message again.
 */
export function isOfReusedId(row: Pick<Row, 'generation'>, generation: number): boolean {
  return row.generation > 0 && row.generation < generation
}

/** The message of a row. @throws TypeError, SyntaxError: another program has written the row */
export function messageOf(row: Row): RawMessage {
  return {
    id: strict.decode(row.id),
    dueAt: row.due_at,
    priority: row.priority,
    attempts: row.attempts,
    headers: headersOf(row.headers),
    payload: row.payload,
    expiresAt: row.expires_at,
    deliveryLimit: row.delivery_limit,
    ...(row.message_group !== null && { group: strict.decode(row.message_group) }),
    failures: failuresOf(row.failures),
  }
}

/** The columns of a row that a message in Redis fills. */
export function contentOf(
  message: RawMessage,
): Pick<
  Row,
  | 'due_at'
  | 'priority'
  | 'attempts'
  | 'expires_at'
  | 'delivery_limit'
  | 'message_group'
  | 'headers'
  | 'biz_key'
  | 'payload'
  | 'failures'
> {
  return {
    due_at: message.dueAt,
    priority: message.priority,
    attempts: message.attempts,
    expires_at: message.expiresAt,
    delivery_limit: message.deliveryLimit,
    message_group: groupColumn(message.group),
    ...headerColumns(message.headers),
    payload: message.payload,
    failures: failureBytes(message.failures),
  }
}

export function headerColumns(headers: Readonly<Record<string, string>> | undefined): Pick<Row, 'headers' | 'biz_key'> {
  if (headers === undefined || Object.keys(headers).length === 0) return { headers: null, biz_key: null }
  const bizKey = headers[BIZ_KEY_HEADER]
  return {
    headers: toBytes(JSON.stringify(headers)),
    biz_key: bizKey === undefined ? null : bizKeyDigest(bizKey),
  }
}

export function groupColumn(group: string | undefined): Bytes | null {
  return group === undefined ? null : toBytes(group)
}

export function headersOf(bytes: Bytes | null): Record<string, string> {
  return bytes === null ? {} : (JSON.parse(strict.decode(bytes)) as Record<string, string>)
}

/** The most failed attempts kept of a message. */
export const MOST_FAILURES = 100

export function failureBytes(failures: readonly FailedAttempt[]): Bytes | null {
  if (failures.length === 0) return null
  return toBytes(
    JSON.stringify(failures.slice(-MOST_FAILURES).map(({ attempt, at, reason }) => [attempt, at.getTime(), reason])),
  )
}

export function failuresOf(bytes: Bytes | null): FailedAttempt[] {
  if (bytes === null) return []
  const lines = JSON.parse(strict.decode(bytes)) as [number, number, string][]
  return lines.map(([attempt, at, reason]) => ({ attempt, at: new Date(at), reason }))
}
