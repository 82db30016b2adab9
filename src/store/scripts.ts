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
  asNumber,
  asText,
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
  /** How long the script worked by the server's clock; 0 where that stands still during a script. */
  readonly workedUs: number
  /** Who holds the lease of the queue, which is the leader's; `none`: no client does. */
  readonly leader: 'self' | 'other' | 'none'
  /** When the lease ends, 0 when no client holds it. */
  readonly leaseUntil: number
  /** Elements of the order list in no schedule that were set aside. */
  readonly orphans: number
  /** The server's error about the quarantine list; the script did the rest regardless. */
  readonly quarantineError: string
  /** Unreadable entries that are due later, because the quarantine list cannot take them. */
  readonly postponed: number
  /** What the next transfers have to know of large entries, so that they do not read these again; see the script. */
  readonly largeHead: string
  readonly largeFirst: string
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

/** What one page of a list held. */
export interface FilterListReply {
  readonly removed: number
  /** How many elements at the right end to pass over next, `null` when this was the last page. */
  readonly next: number | null
  /** Which of the elements were found, by their positions in the arguments. */
  readonly found: readonly number[]
}

/** What one page of a schedule held. */
export interface FilterScheduleReply {
  readonly removed: number
  /** Behind which entry the next page starts, `null` when this was the last one. */
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
}

/** A pending entry by its due time, as Redis writes it, and the bytes it begins with up to the end of its id. */
export interface EntryName {
  readonly due: string
  readonly prefix: Buffer
}

/** What one page of a schedule is made of. */
export interface InspectScheduleReply {
  /** Where the next page starts, `null` when this was the last one. */
  readonly next: { readonly due: string; readonly skip: number } | null
  readonly negative: number
  readonly malformed: number
  readonly malformedDue: number
  readonly old: number
  /** Those that should be in the order list. */
  readonly ordered: readonly EntryName[]
}

/** What one page of an order list is made of. */
export interface InspectOrderReply {
  readonly examined: number
  readonly orphans: number
  /** What the others begin with, up to the end of their ids. */
  readonly prefixes: readonly Buffer[]
}

/** What became of many entries. */
export interface OfferManyReply {
  /** The time that their delays were added to, epoch milliseconds. */
  readonly now: number
  /** By the number of an entry, for those that were not simply added, what `offer` answers. */
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

function asTransferReply(reply: unknown): TransferReply {
  const [moved, next, now, lateness, malformed, negative, subscribers, orderError, workedUs, leader, ...rest] =
    asArray(reply)
  const [leaseUntil, orphans, quarantineError, postponed, largeHead, largeFirst] = rest
  return {
    moved: asInteger(moved),
    next: asText(next) === '' ? null : asNumber(next),
    now: asNumber(now),
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
    largeHead: asText(largeHead),
    largeFirst: asText(largeFirst),
  }
}
