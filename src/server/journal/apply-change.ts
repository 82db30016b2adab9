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

/** A row as the changes of some batches make it. */
export interface Draft {
  readonly row: Row
  /**
   * `own`: the row has its content, which is written; `updated`: the same, and the row in the database has the message with its content of before;
   * `kept`: that in the database stays; `missing`: Redis has to be asked; `older`: for all of the message, as the row can be newer than what Redis,
   * which went back in time, made its changes of.
   */
  readonly content: 'own' | 'updated' | 'kept' | 'missing' | 'older'
  /** Of a row with its own content: with the smallest one that the message had before in these changes. */
  readonly before?: Row | undefined
  /** The attempts with which the message came, where it came with some: the stream does not say the failures of these. Those of a dead letter are of its queue. */
  readonly cameWith?: number | undefined
}

/** When a change was made, and its place in the order of all changes. */
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

/** What the journal knows of the queue of a change. */
export interface ChangedQueue {
  readonly key: Bytes
  /** Its messages begin with the failures of another queue, and count their own attempts from one again. */
  readonly isForDeadLetters: boolean
}

/**
 * What a change makes of a message's row; `undefined` where there is none and the change makes none. An older change leaves the row as it is.
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
  // Of the message before it, which a Redis that went back in time has again: what was accepted has yet to come there.
  if (draft.row.state === 'accepted' && isOfReusedId(draft.row, time.generation)) return draft
  const shown = { updated_at: time.at, generation: time.generation, change_ms: time.ms, change_seq: time.seq }
  const row = { ...draft.row, ...shown }
  const final = FINAL.get(change.change)
  // a repair removes what a snapshot brought back: it stays what it was
  if (final === 'removed' && FINAL_STATES.includes(row.state)) return { ...draft, row }
  // of what is final nothing is to be asked for
  const ended: Draft = draft.content === 'older' ? { ...draft, content: 'kept' } : draft
  if (final !== undefined) return { ...ended, row: { ...row, ...failureIn(queue, row, change, time), state: final } }
  const isOlder = draft.content === 'older' || (draft.content === 'kept' && draft.row.generation < time.generation)
  const next = changed(queue, isOlder ? { ...draft, content: 'older' } : draft, row, change, time)
  return isOlder && next.row !== draft.row ? { ...next, content: 'older' } : next
}

/** What a change makes of a message that stays open; `row`: as it is, with the change's stamp. */
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
      // a message that becomes visible later also expires so much later
      const shifted = row.expires_at === null ? null : row.expires_at + dueAt - row.due_at
      const expires = change.expiresAt ?? (shifted && Math.max(0, Math.min(shifted, Number.MAX_SAFE_INTEGER)))
      return { ...draft, row: { ...row, state: 'open', due_at: dueAt, priority, expires_at: expires } }
    }
    case 'updated': {
      const isInDatabase = draft.content === 'kept' || draft.content === 'updated'
      const { content, ...updated } = contentIn({ ...row, state: 'open' }, change, 'missing')
      return {
        ...updated,
        content: content === 'own' && isInDatabase ? 'updated' : content,
        before: smallest(draft),
        cameWith: draft.cameWith,
      }
    }
    default:
      return draft
  }
}

function smallest({ row, content, before }: Draft): Row | undefined {
  if (content !== 'own') return undefined
  return before === undefined || before.payload.length > row.payload.length ? row : before
}

/** A message begins, or begins anew under its id. */
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
  // the content of an accepted row is that of the message; so is that of an open one that was restored with its due time
  const isSame =
    draft !== undefined &&
    (wasAccepted || (base.state === 'open' && base.due_at === row.due_at && base.priority === row.priority))
  const begun = {
    ...contentIn(row, change, isSame ? (draft?.content ?? 'kept') : 'missing'),
    cameWith: queue.isForDeadLetters ? Infinity : change.attempt,
  }
  // what was accepted is in the database with its content, and stays there where that of a later change is too large
  return wasAccepted && begun.content === 'own' && draft?.content !== 'own' ? { ...begun, content: 'updated' } : begun
}

function contentIn(row: Row, change: JournalChange, otherwise: Draft['content']): Draft {
  if (change.payload === undefined) return { row, content: otherwise }
  return {
    row: {
      ...row,
      payload: change.payload,
      ...headerColumns(change.headers),
      expires_at: change.expiresAt ?? null,
      delivery_limit: change.deliveryLimit ?? null,
      message_group: groupColumn(change.group),
    },
    content: 'own',
  }
}

/** A failure has the time of the script in Redis's history, and that of its entry in the stream. */
const APART_MS = 5

function failureIn(
  { isForDeadLetters }: ChangedQueue,
  row: Row,
  { change, error, attempt = row.attempts }: JournalChange,
  { at }: ChangeTime,
): Partial<Row> {
  // a failure without a reason is one in Redis, too; of what died without one, its last attempt was noted before
  if (change !== 'failed' && (change !== 'dead' || error === undefined)) return {}
  const known = failuresOf(row.failures)
  const reason = error ?? ''
  // the time in the stream can be later than that of Redis's history
  const isThis = (failure: FailedAttempt): boolean =>
    failure.attempt === attempt && failure.reason === reason && Math.abs(failure.at.getTime() - at) <= APART_MS
  // An attempt that fails again, of a Redis that went back in time, takes the place of what Redis has forgotten; and this failure can be among
  // those that Redis was asked for.
  const before = known.filter((failure) => (isForDeadLetters ? !isThis(failure) : failure.attempt < attempt))
  return { failures: failureBytes([...before, { attempt, at: new Date(at), reason }]) }
}
