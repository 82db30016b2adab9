import { entryPrefix } from '../codecs/entry.js'
import { InternalError } from '../errors.js'
import type { QueueKeys } from '../keys.js'
import { scriptTime, type Settings } from '../options.js'
import { asArray, asBytes, asInteger, asNumber } from './replies.js'
import { run, runMany } from './run.js'
import type { ArgsOf } from './script.js'
import {
  cancelOrReschedule,
  checkOrdered,
  filterSchedule,
  find,
  inspectOrder,
  inspectSchedule,
  offer,
  offerMany,
  poll,
  pollLast,
  stats,
  wheelCount,
  wheelInspect,
  type EntryName,
  type FilterScheduleReply,
  type InspectOrderReply,
  type InspectScheduleReply,
  type OfferManyReply,
  type PageReply,
  type StatsReply,
  type WheelCountReply,
  type WheelInspectReply,
} from './scripts.js'
import type { Sender } from './sender.js'
import { waitedFor, type WaitedFor } from './durable-scripts.js'

export type { EntryName, InspectOrderReply, InspectScheduleReply } from './scripts.js'

/** The most entries that one script takes or examines. */
const PAGE = 500
/** The size of a page of entries in bytes. */
const PAGE_BYTES = 2 ** 20
/** How long one script may walk the order list before other clients' commands run; one removal can take longer. */
const BUDGET_US = 2_000

/** The time argument for the server's own clock. */
const SERVER_TIME = -1
/** The delay with which `cancelOrReschedule` removes the entry. */
const REMOVE = -1
const NO_MARK = Buffer.alloc(0)

/** Replies of the offer scripts instead of a due time; rescheduling also replies `DUE_TOO_LARGE`. */
export const COLLISION = -1
export const DUE_TOO_LARGE = -2
export const TOO_LATE_TO_REPEAT = -3

/** The `undeliveredUntilMs` of a first attempt. */
export const FIRST_ATTEMPT = -1

/** When an entry is due: after a delay from now, or at a time; both in milliseconds by the Redis clock. */
export type Due = { readonly delayMs: number } | { readonly atMs: number }

/** An entry on its way into the schedule. */
export interface OfferedEntry {
  readonly entry: Buffer
  readonly due: Due
  /** Before this server time an entry of an earlier attempt cannot have been delivered. */
  readonly undeliveredUntilMs: number
}

/** An entry of the schedule and its due time. */
export interface ScheduledEntry {
  readonly entry: Buffer
  readonly due: number
}

const durableOffer = waitedFor(offer)

/** What a queue holds; times are epoch milliseconds. */
export type Counts = Omit<StatsReply, 'more'>

/** Adds entries to a schedule, in a way that differs by layout. */
export interface OffersStore {
  /** Adds an entry; resolves with the due time, or with a reply such as `COLLISION`. */
  offer(offered: OfferedEntry): Promise<number>
  /** As `offer`, with one script per entry in one pipeline. */
  offerEach(offered: readonly OfferedEntry[]): Promise<(number | Error)[]>
  /** As `offerEach`, through a sender that waits until the writes are durable. */
  offerEachDurably(
    sender: Pick<Sender, 'pipeline'>,
    offered: readonly OfferedEntry[],
  ): Promise<(WaitedFor<number> | Error)[]>
  /** As `offer`, in one script that adds all entries or none. Either all have delays or all have dates. */
  offerTogether(offered: readonly OfferedEntry[]): Promise<number[]>
}

/** The layout of a queue's pending entries in Redis; see `DelayedQueueOptions`. */
export type Layout = 'redisson' | 'compact' | 'wheel'

interface DelayedStoreOptions {
  readonly layout?: Layout | undefined
  readonly settings?: Settings | undefined
}

/** The schedule and the order list of one delayed queue in Redis: one method per script, and the plain reads. */
export class DelayedStore implements OffersStore {
  readonly #sender: Sender
  readonly #keys: QueueKeys
  readonly #ordered: boolean
  readonly #settings: Settings | undefined

  /** Without `settings`, the server's clock decides. */
  constructor(sender: Sender, keys: QueueKeys, { layout = 'redisson', settings }: DelayedStoreOptions = {}) {
    this.#sender = sender
    this.#keys = keys
    this.#ordered = layout === 'redisson'
    this.#settings = settings
  }

  offer(offered: OfferedEntry): Promise<number> {
    return run(this.#sender, offer, this.#keys, this.#offerArgs(offered))
  }

  offerEach(offered: readonly OfferedEntry[]): Promise<(number | Error)[]> {
    return runMany(
      this.#sender,
      offer,
      this.#keys,
      offered.map((each) => this.#offerArgs(each)),
    )
  }

  offerEachDurably(
    sender: Pick<Sender, 'pipeline'>,
    offered: readonly OfferedEntry[],
  ): Promise<(WaitedFor<number> | Error)[]> {
    const args = offered.map((each) => this.#offerArgs(each))
    return runMany(sender, durableOffer, this.#keys, args)
  }

  async offerTogether(offered: readonly OfferedEntry[]): Promise<number[]> {
    const [first] = offered
    if (first === undefined) return []
    const reply = await run(this.#sender, offerMany, this.#keys, {
      channel: this.#keys.channel,
      nowMs: 'atMs' in first.due ? 0 : this.#nowMs(),
      ordered: this.#ordered,
      resent: first.undeliveredUntilMs !== FIRST_ATTEMPT,
      delays: delaysOf(offered),
      entries: offered.map(({ entry }) => entry),
    })
    return dueTimesOf(offered, reply)
  }

  #offerArgs({ entry, due, undeliveredUntilMs }: OfferedEntry): ArgsOf<(typeof offer)['source']> {
    return {
      channel: this.#keys.channel,
      nowMs: 'atMs' in due ? 0 : this.#nowMs(),
      delayMs: 'atMs' in due ? due.atMs : due.delayMs,
      entry,
      ordered: this.#ordered,
      undeliveredUntilMs,
    }
  }

  /** False when no entry has this id and due time. */
  async cancel(id: Buffer, due: number): Promise<boolean> {
    return (await this.#cancelOrReschedule(id, due, REMOVE)) !== null
  }

  /** The new due time or `DUE_TOO_LARGE`; `null` when no entry has this id and due time. */
  reschedule(id: Buffer, due: number, delayMs: number): Promise<number | null> {
    return this.#cancelOrReschedule(id, due, delayMs)
  }

  #cancelOrReschedule(id: Buffer, due: number, delayMs: number): Promise<number | null> {
    const args = { channel: this.#keys.channel, nowMs: this.#nowMs(), due, prefix: entryPrefix(id), delayMs }
    return run(this.#sender, cancelOrReschedule, this.#keys, args)
  }

  /** Takes the first entries, at most `limit` and at most a page; none if the queue is empty. */
  poll(limit: number): Promise<Buffer[]> {
    const args = { count: Math.min(PAGE, limit), bytes: PAGE_BYTES, ordered: this.#ordered, budgetUs: BUDGET_US }
    return run(this.#sender, poll, this.#keys, args)
  }

  /** Moves the last entry's payload to the front of the list `target`. */
  pollLast(target: string): Promise<Buffer | null> {
    return run(this.#sender, pollLast, { ...this.#keys, target }, { ordered: this.#ordered })
  }

  /** Counts everything at one moment, except for a wheel of more than 500 buckets. */
  async stats(): Promise<Counts> {
    const nowMs = this.#nowMs()
    const counted = await run(
      this.#sender,
      stats,
      this.#keys,
      { channel: this.#keys.channel, nowMs },
      { resend: 'reads' },
    )
    let { pending, overdue, more } = counted
    while (more !== null) {
      const reply: WheelCountReply = await run(
        this.#sender,
        wheelCount,
        this.#keys,
        { nowMs, from: more },
        { resend: 'reads' },
      )
      pending += reply.pending
      overdue += reply.overdue
      more = reply.more
    }
    const { now, nextDue, delivered, quarantined, subscribers } = counted
    return { now, pending, overdue, nextDue, delivered, quarantined, subscribers }
  }

  /** Examines the buckets of some minutes, and with `restore` puts those into the wheel that it lacks. */
  inspectBuckets(from: number, count: number, restore: boolean): Promise<WheelInspectReply> {
    return run(this.#sender, wheelInspect, this.#keys, { from, count, restore }, { resend: 'harmless' })
  }

  /** Whether an entry has this payload; walks page by page. */
  contains(payload: Buffer): Promise<boolean> {
    return this.#find(payload, false)
  }

  /** As `contains`, and removes the first such entry. */
  remove(payload: Buffer): Promise<boolean> {
    return this.#find(payload, true)
  }

  async #find(payload: Buffer, remove: boolean): Promise<boolean> {
    const tail = Buffer.alloc(8 + payload.length)
    tail.writeBigUInt64LE(BigInt(payload.length))
    tail.set(payload, 8)
    let from: number | null = 0
    while (from !== null) {
      const args = { tail, from, page: PAGE, bytes: PAGE_BYTES, ordered: this.#ordered, remove }
      const reply: PageReply = await run(this.#sender, find, this.#keys, args, { resend: remove ? undefined : 'reads' })
      if (reply.found) return true
      from = reply.next
    }
    return false
  }

  /** Whether each of these different payloads is in the schedule. */
  async containsAll(payloads: readonly Buffer[]): Promise<boolean> {
    for (let i = 0; i < payloads.length; i += PAGE) {
      if ((await this.#filter(payloads.slice(i, i + PAGE), 'nothing')).missing > 0) return false
    }
    return true
  }

  /** Removes the entries with one of these different payloads. */
  async removeAll(payloads: readonly Buffer[]): Promise<number> {
    let removed = 0
    for (let i = 0; i < payloads.length; i += PAGE) {
      removed += (await this.#filter(payloads.slice(i, i + PAGE), 'matches')).removed
    }
    return removed
  }

  /** Removes the entries with none of these different payloads. */
  async retainAll(payloads: readonly Buffer[]): Promise<number> {
    return (await this.#filter(payloads, 'others')).removed
  }

  /** Walks the whole schedule, and visits every entry that is pending all the time, whatever is added and removed meanwhile. */
  async #filter(
    payloads: readonly Buffer[],
    remove: 'nothing' | 'matches' | 'others',
  ): Promise<{ missing: number; removed: number }> {
    const constants = { page: PAGE, bytes: PAGE_BYTES, budgetUs: BUDGET_US, ordered: this.#ordered }
    const resend = remove === 'nothing' ? 'reads' : undefined
    const missing = new Set(payloads.keys())
    let removed = 0
    let next: FilterScheduleReply['next'] = { afterScore: '', after: Buffer.alloc(0) }
    while (next !== null && (remove !== 'nothing' || missing.size > 0)) {
      const args = { ...next, ...constants, remove, payloads }
      const reply: FilterScheduleReply = await run(this.#sender, filterSchedule, this.#keys, args, { resend })
      for (const position of reply.found) missing.delete(position)
      removed += reply.removed
      next = reply.next
    }
    return { missing: missing.size, removed }
  }

  /** The number of entries in the order list; of the other layouts, `WheelStore` counts. */
  async size(): Promise<number> {
    if (!this.#ordered) throw new InternalError('size-of-layout', 'its entries are not in the order list')
    return asInteger(await this.#read('LLEN', this.#keys.order))
  }

  /** The entries by index in the order list, or with the compact layout in the schedule. */
  async range(first: number, last: number): Promise<Buffer[]> {
    const { order, timeouts } = this.#keys
    const [command, key] = this.#ordered ? (['LRANGE', order] as const) : (['ZRANGE', timeouts] as const)
    return asArray(await this.#read(command, key, String(first), String(last))).map(asBytes)
  }

  /** The earliest due entries of the schedule. */
  async firstScheduled(limit: number): Promise<ScheduledEntry[]> {
    // entry and score in turn, or with RESP3 in pairs
    const flat = asArray(await this.#read('ZRANGE', this.#keys.timeouts, '0', String(limit - 1), 'WITHSCORES')).flat()
    return Array.from({ length: flat.length / 2 }, (_, i) => ({
      entry: asBytes(flat[2 * i]),
      due: asNumber(flat[2 * i + 1]),
    }))
  }

  /** One page of the order list; a negative `from` counts from its right end. */
  inspectOrder(from: number, page: number): Promise<InspectOrderReply> {
    const args = { from, page, setAside: false, mark: NO_MARK }
    return run(this.#sender, inspectOrder, this.#keys, args, { resend: 'reads' })
  }

  /** Moves elements of a page of the order list that are not in the schedule to the quarantine; no element may equal `mark`. */
  setOrphansAside(from: number, page: number, mark: Buffer): Promise<InspectOrderReply> {
    return run(this.#sender, inspectOrder, this.#keys, { from, page, setAside: true, mark })
  }

  /** One page of the schedule. */
  inspectSchedule(
    start: NonNullable<InspectScheduleReply['next']> | undefined,
    page: number,
  ): Promise<InspectScheduleReply> {
    const args = { ...(start ?? { due: '-inf', skip: 0 }), page }
    return run(this.#sender, inspectSchedule, this.#keys, args, { resend: 'reads' })
  }

  /** Whether a pending entry is missing in the order list. */
  isMissing(name: EntryName): Promise<boolean> {
    return run(this.#sender, checkOrdered, this.#keys, { ...name, restore: false }, { resend: 'reads' })
  }

  /** As `isMissing`, and appends a missing entry to the order list. */
  restore(name: EntryName): Promise<boolean> {
    return run(this.#sender, checkOrdered, this.#keys, { ...name, restore: true }, { resend: 'harmless' })
  }

  /** The time argument of the scripts. */
  #nowMs(): number {
    return this.#settings === undefined ? SERVER_TIME : scriptTime(this.#settings)
  }

  #read(command: string, ...args: string[]): Promise<unknown> {
    return this.#sender.call(command, args, { resend: 'reads' })
  }
}

/** The delays in the script's format: a single one if all are equal. */
export function delaysOf(offered: readonly OfferedEntry[]): string {
  const delays = offered.map(delayOf)
  return delays.every((delay) => delay === delays[0]) ? String(delays[0]) : delays.join()
}

/** The due time of each offer, or the number of what prevented it. */
export function dueTimesOf(offered: readonly OfferedEntry[], { now, others }: OfferManyReply): number[] {
  for (const index of others.keys()) {
    if (index < 0 || index >= offered.length) throw new InternalError('offer-reply', 'it is not of these offers')
  }
  return offered.map((each, index) => others.get(index) ?? now + delayOf(each))
}

function delayOf({ due }: OfferedEntry): number {
  return 'atMs' in due ? due.atMs : due.delayMs
}
