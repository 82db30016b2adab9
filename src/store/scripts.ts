import { InternalError } from '../errors.js'
import * as generated from './scripts/generated.js'
import {
  asArray,
  asBytes,
  asBytesArray,
  asBytesOrNull,
  asFlag,
  asInteger,
  asLargeInteger,
  asLargeIntegerOrNull,
  asNow,
  asNumber,
  asText,
  asTime,
} from './replies.js'
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
  /** The server's error about the order list; the script moved the messages regardless. */
  readonly orderError: string
  /** For how many microseconds the script worked, at most a second; 0 on a server whose scripts cannot measure that. */
  readonly workedUs: number
  /** The leader, which holds the lease of the queue; `none`: no client does. */
  readonly leader: 'self' | 'other' | 'none'
  /** When the lease ends, 0 when no client holds it. */
  readonly leaseUntil: number
  /** Elements of the order list that were not in the schedule and were set aside. */
  readonly orphans: number
  /** The server's error about the quarantine list; the script did the rest regardless. */
  readonly quarantineError: string
  /** Unreadable entries that were postponed, because the quarantine list cannot take them. */
  readonly postponed: number
  /** The large entries that the next transfers need not read again; see the script. */
  readonly largeHead: string
  readonly largeFirst: string
  /** How many elements of buckets were moved to the schedule, plus the emptied buckets. */
  readonly promoted: number
  /** The server's error about the wheel; the script did the rest regardless. */
  readonly wheelError: string
}

/** The result of a search that walks page by page. */
export interface PageReply {
  readonly found: boolean
  /** Where to go on, `null` when the search is over. */
  readonly next: number | null
}

/** The position of an element in a list, as found on one page. */
export interface IndexReply {
  /** `null` when it is not on this page. */
  readonly index: number | null
  /** Where to go on, `null` when the search is over. */
  readonly next: number | null
}

/** The result for one page of a list. */
export interface FilterListReply {
  readonly removed: number
  /** How many elements at the right end to skip next, `null` if this was the last page. */
  readonly next: number | null
  /** The positions of the found elements in the arguments. */
  readonly found: readonly number[]
}

/** The result for one page of a schedule. */
export interface FilterScheduleReply {
  readonly removed: number
  /** The entry after which the next page starts, `null` if this was the last page. */
  readonly next: { readonly afterScore: string; readonly after: Buffer } | null
  readonly found: readonly number[]
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
  /** The rank of the bucket from which to go on counting, `null` when all are counted. */
  readonly more: number | null
}

/** The counts of some buckets of a wheel. */
export interface WheelCountReply {
  readonly pending: number
  readonly overdue: number
  readonly more: number | null
}

export interface WheelInspectReply {
  /** The number of buckets that the wheel lacked. */
  readonly lacking: number
  readonly expiring: readonly { readonly key: string; readonly inMs: number }[]
  /** Keys of buckets of another type than a list. */
  readonly noLists: readonly string[]
  /** Keys of cancelled ids of another type than a set. */
  readonly noSets: readonly string[]
}

/** A pending entry by its due time, as Redis writes it, and its first bytes up to the end of its id. */
export interface EntryName {
  readonly due: string
  readonly prefix: Buffer
}

/** The entries of one page of a schedule. */
export interface InspectScheduleReply {
  /** Where the next page starts, `null` when this was the last one. */
  readonly next: { readonly due: string; readonly skip: number } | null
  readonly negative: number
  readonly malformed: number
  readonly malformedDue: number
  readonly old: number
  /** The entries that should be in the order list. */
  readonly ordered: readonly EntryName[]
}

/** The elements of one page of an order list. */
export interface InspectOrderReply {
  readonly examined: number
  readonly orphans: number
  /** The first bytes of the other elements, up to the end of their ids. */
  readonly prefixes: readonly Buffer[]
}

/** The result of rescheduling an entry of a wheel. */
export interface WheelRescheduleReply {
  /** The new due time, or a negative code; `null` if there is no such entry, or it was not found yet. */
  readonly due: number | null
  /** Where to go on in the bucket, `null` after its end. */
  readonly from: number | null
}

/** The results of many entries. */
export interface OfferManyReply {
  /** The time to which the delays were added, epoch milliseconds. */
  readonly now: number
  /** The replies of `offer` for entries that were not simply added, by the number of the entry. */
  readonly others: ReadonlyMap<number, number>
}

/** The catalogue: every script with the decoder of its reply. */
export const cancelOrReschedule = script(generated.cancelOrReschedule, asLargeIntegerOrNull)
export const checkOrdered = script(generated.checkOrdered, asFlag)
export const contains = script(generated.contains, asIndex)
export const copy = script(generated.copy, asFlag)
export const drain = script(generated.drain, asBytesArray)
export const expire = script(generated.expire, asFlag)
export const expireTime = script(generated.expireTime, asLargeInteger)
export const find = script(generated.find, asPage)
export const move = script(generated.move, asBytesArray)
export const offer = script(generated.offer, asLargeInteger)
export const offerMany = script(generated.offerMany, asOfferManyReply)
export const persist = script(generated.persist, asFlag)
export const poll = script(generated.poll, asBytesArray)
export const pollLast = script(generated.pollLast, asBytesOrNull)
export const rename = script(generated.rename, asInteger)
export const filterList = script(generated.filterList, asFilterListReply)
export const filterSchedule = script(generated.filterSchedule, asFilterScheduleReply)
export const stats = script(generated.stats, asStatsReply)
export const inspectOrder = script(generated.inspectOrder, asInspectOrderReply)
export const inspectSchedule = script(generated.inspectSchedule, asInspectScheduleReply)
export const transfer = script(generated.transfer, asTransferReply)
export const wheelCancel = script(generated.wheelCancel, asInteger)
export const wheelClear = script(generated.wheelClear, asWheelClearReply)
export const wheelCount = script(generated.wheelCount, asWheelCountReply)
export const wheelInspect = script(generated.wheelInspect, asWheelInspectReply)
export const wheelOffer = script(generated.wheelOffer, asOfferManyReply)
export const wheelPromote = script(generated.wheelPromote, asFlag)
export const wheelReschedule = script(generated.wheelReschedule, asWheelRescheduleReply)

function asOfferManyReply(reply: unknown): OfferManyReply {
  const [now, ...pairs] = asArray(reply).map(asLargeInteger)
  if (now === undefined || pairs.length % 2 !== 0) throw new InternalError('offer-reply', 'something is missing')
  const others = new Map<number, number>()
  for (let i = 0; i + 1 < pairs.length; i += 2) others.set(pairs[i] as number, pairs[i + 1] as number)
  return { now, others }
}

function asPage(reply: unknown): PageReply {
  const [found, next] = asArray(reply).map(asInteger)
  return { found: found === 1, next: next === undefined || next < 0 ? null : next }
}

function asIndex(reply: unknown): IndexReply {
  const [index = -1, next = -1] = asArray(reply).map(asInteger)
  return { index: index < 0 ? null : index, next: next < 0 ? null : next }
}

function asFilterListReply(reply: unknown): FilterListReply {
  const [removed = 0, next = -1, ...found] = asArray(reply).map(asInteger)
  return { removed, next: next < 0 ? null : next, found }
}

function asFilterScheduleReply(reply: unknown): FilterScheduleReply {
  const [removed, over, score, after, ...found] = asArray(reply)
  const next = asInteger(over) === 1 ? null : { afterScore: asText(score), after: asBytes(after) }
  return { removed: asInteger(removed), next, found: found.map(asInteger) }
}

function asStatsReply(reply: unknown): StatsReply {
  const [now, pending, overdue, nextDue, delivered, quarantined, subscribers, more] = asArray(reply)
  return {
    now: asNow(now),
    pending: asInteger(pending),
    overdue: asInteger(overdue),
    nextDue: asText(nextDue) === '' ? null : asNumber(nextDue),
    delivered: asInteger(delivered),
    quarantined: asInteger(quarantined),
    subscribers: asInteger(subscribers),
    more: asRank(more),
  }
}

function asRank(reply: unknown): number | null {
  const rank = asInteger(reply)
  return rank < 0 ? null : rank
}

function asWheelCountReply(reply: unknown): WheelCountReply {
  const [pending, overdue, more] = asArray(reply)
  return { pending: asInteger(pending), overdue: asInteger(overdue), more: asRank(more) }
}

function asWheelInspectReply(reply: unknown): WheelInspectReply {
  const [lacking, expires, noLists, noSets] = asArray(reply)
  const pairs = asArray(expires)
  const expiring: { key: string; inMs: number }[] = []
  for (let at = 0; at + 1 < pairs.length; at += 2)
    expiring.push({ key: asText(pairs[at]), inMs: asInteger(pairs[at + 1]) })
  return {
    lacking: asInteger(lacking),
    expiring,
    noLists: asArray(noLists).map(asText),
    noSets: asArray(noSets).map(asText),
  }
}

function asWheelRescheduleReply(reply: unknown): WheelRescheduleReply {
  if (Array.isArray(reply)) return { due: null, from: asInteger(reply[0]) }
  return { due: asLargeIntegerOrNull(reply), from: null }
}

function asWheelClearReply(reply: unknown): { deleted: number; isMore: boolean } {
  const [deleted, isMore] = asArray(reply)
  return { deleted: asInteger(deleted), isMore: asFlag(isMore) }
}

function asInspectScheduleReply(reply: unknown): InspectScheduleReply {
  const [due, skip, negative, malformed, malformedDue, old, ...ordered] = asArray(reply)
  return {
    next: asText(due) === '' ? null : { due: asText(due), skip: asInteger(skip) },
    negative: asInteger(negative),
    malformed: asInteger(malformed),
    malformedDue: asInteger(malformedDue),
    old: asInteger(old),
    ordered: Array.from({ length: ordered.length / 2 }, (_, i) => ({
      due: asText(ordered[2 * i]),
      prefix: asBytes(ordered[2 * i + 1]),
    })),
  }
}

function asInspectOrderReply(reply: unknown): InspectOrderReply {
  const [examined, orphans, ...prefixes] = asArray(reply)
  return { examined: asInteger(examined), orphans: asInteger(orphans), prefixes: prefixes.map(asBytes) }
}

function asLeader(reply: unknown): TransferReply['leader'] {
  const leader = asText(reply)
  return leader === 'self' || leader === 'other' ? leader : 'none'
}

/**
 * A time as the server wrote it, or nothing. The client sends it back with its next transfers, so a wrong one would make each of them fail.
 */
function asTimeText(reply: unknown): string {
  asTime(reply)
  return asText(reply)
}

function asTransferReply(reply: unknown): TransferReply {
  const [moved, next, now, lateness, malformed, negative, subscribers, orderError, workedUs, leader, ...rest] =
    asArray(reply)
  const [leaseUntil, orphans, quarantineError, postponed, largeHead, largeFirst, promoted, wheelError] = rest
  return {
    moved: asInteger(moved),
    next: asText(next) === '' ? null : asNumber(next),
    now: asNow(now),
    latenessMs: asNumber(lateness),
    malformed: asInteger(malformed),
    negative: asInteger(negative),
    subscribers: asInteger(subscribers),
    orderError: asText(orderError),
    workedUs: asInteger(workedUs),
    leader: asLeader(leader),
    leaseUntil: asNumber(leaseUntil),
    orphans: asInteger(orphans),
    quarantineError: asText(quarantineError),
    postponed: asInteger(postponed),
    largeHead: asTimeText(largeHead),
    largeFirst: asTimeText(largeFirst),
    promoted: asInteger(promoted),
    wheelError: asText(wheelError),
  }
}
