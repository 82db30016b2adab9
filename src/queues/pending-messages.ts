import { run } from '../store/run.js'
import { payloadOf } from '../codecs/entry.js'
import type { RedelayedError } from '../errors.js'
import type { QueueKeys } from '../keys.js'
import { asArray, asBytes, asInteger } from '../store/replies.js'
import { find, filterSchedule, stats, type PageReply, type FilterScheduleReply } from '../store/scripts.js'
import { integer, oneOf, scriptTime } from '../options.js'
import type { QueueContext, QueueIdentity } from './context.js'
import {
  toScheduledEntries,
  toScheduledMessage,
  toStats,
  type DelayedQueueStats,
  type ScheduledMessage,
} from './inspection.js'
import { KeyedObject } from './keyed-object.js'

/** How many entries one script looks at. */
const PAGE = 500
/** After how many bytes of entries it ends, too. */
const PAGE_BYTES = 2 ** 20
/** How long one script may remove before others have their turn; one removal can take longer. */
const BUDGET_US = 2_000
const MAX_SCHEDULE = 10_000

/**
 * Looking at the pending messages of a delayed queue. With `layout: 'redisson'` the order list is looked at, as in Redisson; with
 * `'compact'` the schedule.
 */
export abstract class PendingMessages<T> extends KeyedObject<T> {
  readonly layout: 'redisson' | 'compact'

  /** @internal */
  protected constructor(context: QueueContext, identity: QueueIdentity<T>, layout: 'redisson' | 'compact' | undefined) {
    super(context, identity)
    this.layout = oneOf('layout', layout ?? 'redisson', ['redisson', 'compact'])
  }

  /** How many messages are pending. With `layout: 'redisson'` those that stand in the order list, as in Redisson. */
  async size(): Promise<number> {
    this.assertUsable()
    const { order, timeouts } = this.identity.keys
    return asInteger(
      await (this.ordered
        ? this.handle.call('LLEN', [order], { idempotent: true })
        : this.handle.call('ZCARD', [timeouts], { idempotent: true })),
    )
  }

  async isEmpty(): Promise<boolean> {
    return (await this.size()) === 0
  }

  /** The first pending message without taking it: the oldest offered, or with `layout: 'compact'` the next due. */
  async peek(): Promise<T | null> {
    this.assertUsable()
    const [entry] = await this.#range(0, 0)
    return entry === undefined ? null : this.#valueOf(entry)
  }

  /** As `peek`, but rejects with `NoSuchElementError` when there is none. */
  async element(): Promise<T> {
    return this.handle.orThrow(await this.peek())
  }

  /** All pending messages, in one reply: in offer order, or with `layout: 'compact'` by due time. Use `iterate` for many. */
  async readAll(): Promise<T[]> {
    this.assertUsable()
    return this.#valuesOf(await this.#range(0, -1))
  }

  /** The same as `readAll`. */
  toArray(): Promise<T[]> {
    return this.readAll()
  }

  /**
   * Walks the pending messages in pages of `pageSize` (1 to 10,000). While messages come and go, some can be missed or seen
   * twice.
   */
  async *iterate({ pageSize = 100 }: { pageSize?: number } = {}): AsyncGenerator<T, void> {
    this.assertUsable()
    for await (const page of this.pages(pageSize, (first, last) => this.#range(first, last)))
      yield* this.#valuesOf(page)
  }

  /** What the queue holds and how late it is, counted at one moment, in O(log N). Changes nothing. */
  async stats(): Promise<DelayedQueueStats> {
    this.assertUsable()
    const { channel } = this.identity.keys
    const nowMs = scriptTime(this.context.settings)
    return toStats(await run(this.handle, stats, this.identity.keys, { channel, nowMs }, { idempotent: true }))
  }

  /**
   * The next `limit` (1 to 10,000; default 100) pending messages, the earliest due first, with their due times and tickets.
   * With both values of `layout`. Unreadable ones are left out and reported by an `error` event.
   */
  async schedule({ limit = 100 }: { limit?: number } = {}): Promise<ScheduledMessage<T>[]> {
    this.assertUsable()
    integer('limit', limit, 1, MAX_SCHEDULE)
    const { timeouts, destination } = this.identity.keys
    const reply = await this.handle.call('ZRANGE', [timeouts, '0', String(limit - 1), 'WITHSCORES'], {
      idempotent: true,
    })
    const messages: ScheduledMessage<T>[] = []
    for (const entry of toScheduledEntries(reply)) {
      try {
        messages.push(toScheduledMessage(destination, entry, (payload) => this.handle.decode(payload)))
      } catch (thrown) {
        this.context.hub.emit('error', this.handle.attributed(thrown) as RedelayedError)
      }
    }
    return messages
  }

  /** Whether a pending message has the same encoded bytes as `value`. Walks all of them, page by page. */
  async contains(value: T): Promise<boolean> {
    return this.find(value, false)
  }

  /**
   * Whether a message of each of `values` is pending; one is enough for equal ones, and of no values all are there. Walks
   * the schedule, page by page.
   */
  async containsAll(values: Iterable<T>): Promise<boolean> {
    this.assertUsable()
    const distinct = this.handle.encodeDistinct(values)
    for (let i = 0; i < distinct.length; i += PAGE) {
      if ((await this.filter(distinct.slice(i, i + PAGE), 'nothing')).missing > 0) return false
    }
    return true
  }

  protected keysOf({ timeouts, order }: QueueKeys): readonly [string, string] {
    return [timeouts, order]
  }

  protected channelOf({ channel }: QueueKeys): string {
    return channel
  }

  /**
   * Looks for payloads in the whole schedule and removes the entries that carry one of them, or all others. Messages that
   * are pending all the time are looked at, whatever is added and removed meanwhile.
   */
  protected async filter(
    payloads: readonly Buffer[],
    remove: 'nothing' | 'matches' | 'others',
  ): Promise<{ missing: number; removed: number }> {
    const missing = new Set(payloads.keys())
    let removed = 0
    let next: FilterScheduleReply['next'] = { afterScore: '', after: Buffer.alloc(0) }
    while (next !== null && (remove !== 'nothing' || missing.size > 0)) {
      const args = {
        ...next,
        page: PAGE,
        bytes: PAGE_BYTES,
        ordered: this.ordered,
        remove,
        budgetUs: BUDGET_US,
        payloads,
      }
      const idempotent = remove === 'nothing'
      const reply: FilterScheduleReply = await run(this.handle, filterSchedule, this.identity.keys, args, {
        idempotent,
      })
      for (const position of reply.found) missing.delete(position)
      removed += reply.removed
      next = reply.next
    }
    return { missing: missing.size, removed }
  }

  protected get ordered(): boolean {
    return this.layout === 'redisson'
  }

  /** Entries by index: of the order list, or of the schedule. */
  async #range(first: number, last: number): Promise<Buffer[]> {
    const { order, timeouts } = this.identity.keys
    const [command, key] = this.ordered ? ['LRANGE', order] : ['ZRANGE', timeouts]
    return asArray(await this.handle.call(command, [key, String(first), String(last)], { idempotent: true })).map(
      asBytes,
    )
  }

  protected async find(value: T, remove: boolean): Promise<boolean> {
    this.assertUsable()
    const payload = this.handle.encode(value)
    const tail = Buffer.alloc(8 + payload.length)
    tail.writeBigUInt64LE(BigInt(payload.length))
    tail.set(payload, 8)
    let from: number | null = 0
    while (from !== null) {
      const args = { tail, from, page: PAGE, bytes: PAGE_BYTES, ordered: this.ordered, remove }
      const reply: PageReply = await run(this.handle, find, this.identity.keys, args, { idempotent: !remove })
      if (reply.found) return true
      from = reply.next
    }
    return false
  }

  #valueOf(entry: Buffer): T {
    let payload: Buffer
    try {
      payload = payloadOf(entry)
    } catch (error) {
      throw this.handle.attributed(error)
    }
    return this.handle.decode(payload)
  }

  #valuesOf(entries: readonly Buffer[]): T[] {
    const values: T[] = []
    for (const entry of entries) {
      try {
        values.push(this.#valueOf(entry))
      } catch (thrown) {
        this.context.hub.emit('error', thrown as RedelayedError)
      }
    }
    return values
  }
}
