import { entryId, payloadOf } from '../codecs/entry.js'
import { encodeTicket, type Ticket } from '../codecs/ticket.js'
import type { ScheduledEntry, StatsReply } from '../store/delayed-store.js'

/** What a delayed queue holds at one moment. Times are epoch milliseconds by the clock that decides what is due. */
export interface DelayedQueueStats {
  /** When this was counted. */
  readonly now: number
  /** Messages held back, also those of Java; with both values of `layout`. */
  readonly pending: number
  /** Those of them that are due and not moved yet. More than a few for more than a moment: no client delivers the queue. */
  readonly overdue: number
  /** By how many milliseconds the most overdue one is late; 0 when none is. */
  readonly oldestOverdueMs: number
  /** The earliest due time, in the past when it is overdue; `null` when nothing is pending. */
  readonly nextDue: number | null
  /** Messages in the destination queue, ready to be taken. */
  readonly delivered: number
  /** Entries that could not be read and were set aside; see `readQuarantine`. */
  readonly quarantined: number
  /** Clients that deliver the queue, of Java too; in a cluster those connected to the node that answered. */
  readonly subscribers: number
}

/** One pending message and when it will be delivered. */
export interface ScheduledMessage<T> {
  readonly value: T
  /** Epoch milliseconds by the Redis clock. */
  readonly due: number
  /** To cancel or reschedule it with, also when Java offered it; `null` for entries with odd ids or due times. */
  readonly ticket: Ticket | null
}

/** Derives from the counts what people ask for first. */
export function toStats(reply: StatsReply): DelayedQueueStats {
  const { now, overdue, nextDue } = reply
  return { ...reply, oldestOverdueMs: overdue > 0 && nextDue !== null ? Math.max(0, now - Math.max(0, nextDue)) : 0 }
}

/** Throws a `DecodeError` for an entry that cannot be read. */
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
