import { entryId, payloadOf } from '../codecs/entry.js'
import { encodeTicket, type Ticket } from '../codecs/ticket.js'
import type { Counts, ScheduledEntry } from '../store/delayed-store.js'

/** What a delayed queue holds at one moment. Times are epoch milliseconds by the clock that decides what is due. */
export interface DelayedQueueStats {
  /** The time of the count. */
  readonly now: number
  /** Pending messages, also those of Java, with every `layout`. */
  readonly pending: number
  /** Pending messages that are due and not moved yet. If many stay overdue, no client delivers the queue. */
  readonly overdue: number
  /** How late the most overdue message is, in milliseconds; 0 when none is. */
  readonly oldestOverdueMs: number
  /** The earliest due time, in the past when that message is overdue; `null` when nothing is pending. */
  readonly nextDue: number | null
  /** Messages in the destination queue, ready to be taken. */
  readonly delivered: number
  /** Entries that could not be read and were set aside; see `readQuarantine`. */
  readonly quarantined: number
  /** Clients that deliver the queue, also of Java; in a cluster only those connected to the node that answered. */
  readonly subscribers: number
}

/** One pending message and when it will be delivered. */
export interface ScheduledMessage<T> {
  readonly value: T
  /** Epoch milliseconds by the Redis clock. */
  readonly due: number
  /** The ticket to cancel or reschedule the message, also one that Java offered; `null` for entries with unusual ids or due times. */
  readonly ticket: Ticket | null
}

/** Computes the statistics from the counts. */
export function toStats(reply: Counts): DelayedQueueStats {
  const { now, overdue, nextDue } = reply
  return { ...reply, oldestOverdueMs: overdue > 0 && nextDue !== null ? Math.max(0, now - Math.max(0, nextDue)) : 0 }
}

/** Decodes an entry; throws a `DecodeError` if it cannot be read. */
export function toScheduledMessage<T>(
  rawName: string,
  { entry, due }: ScheduledEntry,
  decode: (payload: Buffer) => T,
): ScheduledMessage<T> {
  const value = decode(payloadOf(entry))
  const id = entryId(entry)
  const hasTicket = id !== null && Number.isSafeInteger(due) && due >= 0
  return { value, due, ticket: hasTicket ? encodeTicket(rawName, id, due) : null }
}
