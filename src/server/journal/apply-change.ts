import type { FailedAttempt } from 'redelayed'
import { FINAL_STATES, type Bytes } from '../database/tables.js'
import type { JournalChange } from './journalled-queue.js'
import {
  failureBytes,
  failuresOf,
  groupColumn,
  headerColumns,
  isOfReusedId,
  newRow,
  type Row,
  type Stamp,
} from './rows.js'

/** A row with the changes of some batches applied. */
export interface Draft {
  readonly row: Row
  /**
   * What the drain writes. `insert`: the row with its content; `replace`: the same, and the database has the message with its earlier
   * content; `state-only`: the content in the database stays; `fetch-content`: Redis has to be asked for the content; `fetch-all`: for the
   * whole message, because Redis went back in time and the row can be newer than the message that Redis changed.
   */
  readonly write: 'insert' | 'replace' | 'state-only' | 'fetch-content' | 'fetch-all'
  /** With `insert`: the row with the smallest payload that the message had earlier in these changes. */
  readonly before?: Row | undefined
  /** The attempts that the message came with: the stream does not have their failures. A dead letter comes with those of its queue. */
  readonly cameWith?: number | undefined
}

/** The time of a change, and its place in the order of all changes. */
export interface ChangeTime extends Stamp {
  readonly at: number
}

/** Whether a row already shows a change that is newer than this one. */
export function isNewer(row: Row, { generation, ms, seq }: Stamp): boolean {
  if (row.generation !== generation) return row.generation > generation
  if (row.change_ms !== ms) return row.change_ms > ms
  return row.change_seq > seq
}

const FINAL = new Map<string, Row['state']>([
  ['acknowledged', 'handled'],
  ['dead', 'dead'],
  ['expired', 'expired'],
  ['removed', 'removed'],
  ['moved', 'moved'],
])

/** The queue of a change. */
export interface ChangedQueue {
  readonly key: Bytes
  /** Its messages begin with the failures of another queue, and count their own attempts from one again. */
  readonly isForDeadLetters: boolean
}

/**
 * Applies a change to the row of a message; `undefined` if there is no row and the change makes none. An older change leaves the row as it
 * is.
 */
export function applyChange(
  queue: ChangedQueue,
  draft: Draft | undefined,
  change: JournalChange,
  time: ChangeTime,
): Draft | undefined {
  if (draft !== undefined && isNewer(draft.row, time)) return draft
  if (change.change === 'added' || change.change === 'redriven') return begun(queue, draft, change, time)
  if (draft === undefined) return undefined
  // The change is of an earlier message, which a Redis that went back in time has again: the accepted one has yet to come there.
  if (draft.row.state === 'accepted' && isOfReusedId(draft.row, time.generation)) return draft
  const shown = { updated_at: time.at, generation: time.generation, change_ms: time.ms, change_seq: time.seq }
  const row = { ...draft.row, ...shown }
  const final = FINAL.get(change.change)
  // a repair removes messages that a snapshot brought back: the row keeps its final state
  if (final === 'removed' && FINAL_STATES.includes(row.state)) return { ...draft, row }
  // a final message needs nothing more from Redis
  const ended: Draft = draft.write === 'fetch-all' ? { ...draft, write: 'state-only' } : draft
  if (final !== undefined) return { ...ended, row: { ...row, ...failureIn(queue, row, change, time), state: final } }
  const isOlder =
    draft.write === 'fetch-all' || (draft.write === 'state-only' && draft.row.generation < time.generation)
  const next = changed(queue, isOlder ? { ...draft, write: 'fetch-all' } : draft, row, change, time)
  return isOlder && next.row !== draft.row ? { ...next, write: 'fetch-all' } : next
}

/** Applies a change to a message that stays open; `row`: the row before it, with the stamp of the change. */
function changed(queue: ChangedQueue, draft: Draft, row: Row, change: JournalChange, time: ChangeTime): Draft {
  const { dueAt = row.due_at, attempt = row.attempts, priority = row.priority } = change
  switch (change.change) {
    case 'polled':
    case 'released':
    case 'failed':
      return {
        ...draft,
        row: {
          ...row,
          ...failureIn(queue, row, change, time),
          state: 'open',
          due_at: dueAt,
          attempts: attempt,
          priority,
        },
      }
    case 'rescheduled': {
      // a message that becomes visible later also expires that much later
      const shifted = row.expires_at === null ? null : row.expires_at + dueAt - row.due_at
      const expires = change.expiresAt ?? (shifted && Math.max(0, Math.min(shifted, Number.MAX_SAFE_INTEGER)))
      return { ...draft, row: { ...row, state: 'open', due_at: dueAt, priority, expires_at: expires } }
    }
    case 'updated': {
      const isInDatabase = draft.write === 'state-only' || draft.write === 'replace'
      const { write, ...updated } = contentIn({ ...row, state: 'open' }, change, 'fetch-content')
      return {
        ...updated,
        write: write === 'insert' && isInDatabase ? 'replace' : write,
        before: smallest(draft),
        cameWith: draft.cameWith,
      }
    }
    default:
      return draft
  }
}

function smallest({ row, write, before }: Draft): Row | undefined {
  if (write !== 'insert') return undefined
  return before === undefined || before.payload.length > row.payload.length ? row : before
}

/** A message is added, or added anew under its id. */
function begun(queue: ChangedQueue, draft: Draft | undefined, change: JournalChange, time: ChangeTime): Draft {
  const base = draft?.row ?? newRow(queue.key, change.id, time, time.at)
  const wasAccepted = draft?.row.state === 'accepted'
  const row: Row = {
    ...base,
    state: 'open',
    due_at: change.dueAt ?? base.due_at,
    priority: change.priority ?? base.priority,
    attempts: change.attempt ?? 0,
    failures: wasAccepted || (change.attempt ?? 0) > 0 ? base.failures : null,
    updated_at: time.at,
    generation: time.generation,
    change_ms: time.ms,
    change_seq: time.seq,
  }
  // an accepted row has the content of the message; so has an open one that was restored with its due time
  const isSame =
    draft !== undefined &&
    (wasAccepted || (base.state === 'open' && base.due_at === row.due_at && base.priority === row.priority))
  const begun = {
    ...contentIn(row, change, isSame ? (draft?.write ?? 'state-only') : 'fetch-content'),
    cameWith: queue.isForDeadLetters ? Infinity : change.attempt,
  }
  // the database has an accepted row with its content, which stays if the content of a later change is too large
  return wasAccepted && begun.write === 'insert' && draft?.write !== 'insert' ? { ...begun, write: 'replace' } : begun
}

function contentIn(row: Row, change: JournalChange, otherwise: Draft['write']): Draft {
  if (change.payload === undefined) return { row, write: otherwise }
  return {
    row: {
      ...row,
      payload: change.payload,
      ...headerColumns(change.headers),
      expires_at: change.expiresAt ?? null,
      delivery_limit: change.deliveryLimit ?? null,
      message_group: groupColumn(change.group),
    },
    write: 'insert',
  }
}

/** The most by which the time of a failure in Redis's history differs from that of its entry in the stream. */
const APART_MS = 5

function failureIn(
  { isForDeadLetters }: ChangedQueue,
  row: Row,
  { change, error, attempt = row.attempts }: JournalChange,
  { at }: ChangeTime,
): Partial<Row> {
  // Redis records a failure without a reason too; if a message died without one, its last failure was recorded before
  if (change !== 'failed' && (change !== 'dead' || error === undefined)) return {}
  const known = failuresOf(row.failures)
  const reason = error ?? ''
  // the time in the stream can be later than that of Redis's history
  const isThis = (failure: FailedAttempt): boolean =>
    failure.attempt === attempt && failure.reason === reason && Math.abs(failure.at.getTime() - at) <= APART_MS
  // An attempt that fails again after Redis went back in time replaces the failures that Redis has forgotten; and this failure can be among
  // those that Redis was asked for.
  const before = known.filter((failure) => (isForDeadLetters ? !isThis(failure) : failure.attempt < attempt))
  return { failures: failureBytes([...before, { attempt, at: new Date(at), reason }]) }
}
