import * as generated from './generated.js'
import { asArray, asBytesArray, asInteger, asLargeInteger, asLargeIntegerOrNull, asNumber, asText } from './replies.js'
import { script } from './script.js'

/** The reply of the transfer script. */
export interface TransferReply {
  /** How many messages were moved to the destination. */
  readonly moved: number
  /** The next due time, epoch milliseconds, `null` when nothing is left. At most `now` when more is due already. */
  readonly next: number | null
  /** The Redis clock when the script ran, in milliseconds with fractions. */
  readonly now: number
  /** How late the most overdue message was. */
  readonly latenessMs: number
  /** Unreadable entries that were set aside. */
  readonly malformed: number
  /** Entries with a negative due time that were set aside. */
  readonly negative: number
  /** Subscribers of the channel as this server knows them. */
  readonly subscribers: number
  /** What the server said about the order list while messages were moved regardless. */
  readonly orderError: string
}

/** The result of a search that walks page by page. */
export interface PageReply {
  readonly found: boolean
  /** Where to go on, `null` when the search is over. */
  readonly next: number | null
}

/** The reply of the stats script; times are epoch milliseconds. */
export interface StatsReply {
  readonly now: number
  readonly pending: number
  readonly overdue: number
  readonly nextDue: number | null
  readonly delivered: number
  readonly quarantined: number
  readonly subscribers: number
}

/** The catalogue: every script with the decoder of its reply. */
export const amend = script(generated.amend, asLargeIntegerOrNull)
export const contains = script(generated.contains, asPage)
export const drain = script(generated.drain, asBytesArray)
export const find = script(generated.find, asPage)
export const offer = script(generated.offer, asLargeInteger)
export const poll = script(generated.poll, asBytesArray)
export const stats = script(generated.stats, asStatsReply)
export const transfer = script(generated.transfer, asTransferReply)

function asPage(reply: unknown): PageReply {
  const [found, next] = asArray(reply).map(asInteger)
  return { found: found === 1, next: next === undefined || next < 0 ? null : next }
}

function asStatsReply(reply: unknown): StatsReply {
  const [now, pending, overdue, nextDue, delivered, quarantined, subscribers] = asArray(reply)
  return {
    now: asNumber(now),
    pending: asInteger(pending),
    overdue: asInteger(overdue),
    nextDue: asText(nextDue) === '' ? null : asNumber(nextDue),
    delivered: asInteger(delivered),
    quarantined: asInteger(quarantined),
    subscribers: asInteger(subscribers),
  }
}

function asTransferReply(reply: unknown): TransferReply {
  const [moved, next, now, lateness, malformed, negative, subscribers, orderError] = asArray(reply)
  return {
    moved: asInteger(moved),
    next: asText(next) === '' ? null : asNumber(next),
    now: asNumber(now),
    latenessMs: asNumber(lateness),
    malformed: asInteger(malformed),
    negative: asInteger(negative),
    subscribers: asInteger(subscribers),
    orderError: asText(orderError),
  }
}
