import { payloadOf } from '../codec/entry.js'
import { decodeTicket, encodeTicket, type Ticket } from '../codec/ticket.js'
import {
  InvalidArgumentError,
  NoSuchElementError,
  OfferAllError,
  RedelayedError,
  ShutdownError,
  UnsupportedOperationError,
  toError,
  type OfferFailure,
} from '../errors.js'
import type { Events, EventName, Listener } from '../events.js'
import { asInteger } from '../lua/replies.js'
import { amend, poll } from '../lua/scripts.js'
import { boolean, integer, onlyKnown } from '../options.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import type { QueueContext } from './context.js'
import type { ListQueue } from './list-queue.js'
import { Offers, type PendingOffer } from './offers.js'
import { PendingMessages } from './pending-messages.js'

/** How many entries one script takes. */
const PAGE = 500

/** `amend` with this delay removes the entry. */
const REMOVE = -1
const DUE_TOO_LARGE = -2

export interface DelayedQueueOptions {
  /**
   * `'list'` (default) is Redisson's exact layout: all methods of Java's RDelayedQueue see these entries, at the price of a
   * walk through the order list for every message that is not delivered in offer order. `'none'` leaves that list out:
   * every operation is O(log N) and takes less memory; Java still delivers and takes the messages, but its `size`,
   * `readAll` and `poll` on the delayed queue do not see them.
   */
  readonly order?: 'list' | 'none' | undefined
  /**
   * Whether this client takes part in delivering the queue. Default true. `false` is for processes that only offer, cancel
   * or look: they open no subscriber connection, and somebody else delivers, such as any consumer of the queue.
   */
  readonly deliver?: boolean | undefined
}

/** One message for `offerAll`. */
export interface OfferItem<T> {
  readonly value: T
  readonly delay: number
  readonly unit?: TimeUnit | undefined
}

/**
 * Redisson's `RDelayedQueue`: holds messages back and moves each to its destination queue when it is due. As long as the
 * object lives, this client takes part in delivering the queue.
 */
export class DelayedQueue<T = unknown> extends PendingMessages<T> {
  /** The queue that due messages are moved to. */
  readonly destination: ListQueue<T>
  readonly #offers: Offers
  readonly #events: Events
  readonly #endEvents: () => void
  readonly #release: () => Promise<void>
  #destroyed = false

  /** @internal */
  constructor(context: QueueContext, destination: ListQueue<T>, options: DelayedQueueOptions) {
    onlyKnown('options', options, ['order', 'deliver'])
    super(context, destination.identity, options.order)
    this.destination = destination
    this.#offers = new Offers(context, destination.identity, this.order === 'list')
    const deliver = boolean('deliver', options.deliver ?? true)
    this.#release = deliver ? context.transfers.acquire(destination.identity) : () => Promise.resolve()
    const { events, end } = context.hub.forQueue(this.name)
    this.#events = events
    this.#endEvents = end
  }

  /**
   * Adds a message that will be delivered `delay` (milliseconds unless a unit is given; whole, at least 0) after Redis
   * accepted it. Resolves with the ticket to cancel or reschedule it with, when Redis has it.
   *
   * @throws InvalidArgumentError, EncodeError, PayloadTooLargeError: nothing was sent
   * @throws ConnectionError its `outcome` says whether the message may have been accepted
   */
  async offer(value: T, delay: number, unit?: TimeUnit): Promise<Ticket> {
    this.assertUsable()
    try {
      const delayMs = toMillis('delay', delay, unit)
      return await this.#offers.one({ payload: this.encode(value), due: { delayMs } })
    } catch (error) {
      throw this.attributed(error)
    }
  }

  /** Adds a message that will be delivered at `date`, by the Redis clock; at once when that has passed. */
  async offerAt(value: T, date: Date): Promise<Ticket> {
    this.assertUsable()
    if (!(date instanceof Date) || Number.isNaN(date.getTime())) {
      throw this.named(new InvalidArgumentError('date', 'a valid Date', date))
    }
    try {
      return await this.#offers.one({ payload: this.encode(value), due: { atMs: Math.max(0, date.getTime()) } })
    } catch (error) {
      throw this.attributed(error)
    }
  }

  /**
   * Adds many messages in few round trips; resolves with their tickets in order. All items are checked and encoded before
   * anything is sent. Messages are independent of each other: some may be accepted and others not.
   *
   * @throws OfferAllError names the items that were not accepted, and has the tickets of the others
   */
  async offerAll(items: Iterable<OfferItem<T>>): Promise<Ticket[]> {
    this.assertUsable()
    const list = [...items]
    const pending: PendingOffer[] = []
    const invalid: OfferFailure[] = []
    list.forEach((item, index) => {
      try {
        pending.push(this.#pendingItem(item, index))
      } catch (error) {
        invalid.push({ index, error: this.attributed(error) as RedelayedError })
      }
    })
    if (invalid.length > 0)
      throw this.named(
        new OfferAllError(
          list.map(() => null),
          invalid,
        ),
      )

    const results = await this.whole(() => this.#offers.many(pending))
    const failures = results.flatMap((error, index) =>
      error instanceof RedelayedError ? [{ index, error: this.named(error) }] : [],
    )
    const tickets = results.map((result) => (typeof result === 'string' ? result : null))
    if (failures.length > 0) throw this.named(new OfferAllError(tickets, failures))
    return tickets as Ticket[]
  }

  /** Removes a pending message. False when it was delivered or cancelled already. */
  async cancel(ticket: Ticket): Promise<boolean> {
    return (await this.#amend(ticket, REMOVE)) !== null
  }

  /** Makes a pending message due `delay` from now instead; resolves with its new ticket, or `null` when it is not pending any more. */
  async reschedule(ticket: Ticket, delay: number, unit?: TimeUnit): Promise<Ticket | null> {
    let delayMs: number
    try {
      delayMs = toMillis('delay', delay, unit)
    } catch (error) {
      throw this.attributed(error)
    }
    const result = await this.#amend(ticket, delayMs)
    return result === null ? null : result.ticket
  }

  /** Takes the first pending message before it is due; it will not be delivered. `null` when there is none. */
  poll(): Promise<T | null>
  /** Takes up to `limit` (0 to 2^53-1) pending messages. */
  poll(limit: number): Promise<T[]>
  async poll(limit?: number): Promise<T | null | T[]> {
    this.assertUsable()
    if (limit === undefined) return (await this.#poll(1))[0] ?? null
    return this.#poll(this.checked(() => integer('limit', limit, 0, Number.MAX_SAFE_INTEGER)))
  }

  /** Takes the first pending message; rejects with `NoSuchElementError` when there is none. */
  remove(): Promise<T>
  /** Removes the first pending message with the same encoded bytes as `value`. A walk: `cancel(ticket)` is O(log N). */
  remove(value: T): Promise<boolean>
  async remove(...args: [] | [T]): Promise<T | boolean> {
    if (args.length > 0) return this.find(args[0] as T, true)
    const value = await this.poll()
    if (value === null) throw this.named(new NoSuchElementError())
    return value
  }

  /** Deletes all pending messages; those already delivered stay in the destination. */
  async clear(): Promise<void> {
    await this.delete()
  }

  /** As `clear`; resolves with whether there were any. */
  async delete(): Promise<boolean> {
    this.assertUsable()
    const { order, timeouts } = this.identity.keys
    return asInteger(await this.send('UNLINK', [order, timeouts])) > 0
  }

  /** Not possible without a delay, as in Redisson. */
  async add(): Promise<never> {
    throw this.named(new UnsupportedOperationError('a delayed queue needs a delay; use offer(value, delay)'))
  }

  /**
   * Gives this object up. Nothing is deleted in Redis. This client stops delivering the queue when all objects that
   * `getDelayedQueue` returned for it are destroyed and no consumer of the queue has waited lately.
   */
  async destroy(): Promise<void> {
    if (!this.#destroyed) {
      this.#destroyed = true
      this.#endEvents()
    }
    await this.#release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy()
  }

  /** Listens to the events of this queue only. */
  on<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#events.on(name, listener)
    return this
  }

  once<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#events.once(name, listener)
    return this
  }

  off<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#events.off(name, listener)
    return this
  }

  protected assertUsable(): void {
    if (this.#destroyed) throw this.named(new ShutdownError('this delayed queue was destroyed'))
  }

  #pendingItem(item: OfferItem<T>, index: number): PendingOffer {
    const what = `items[${index}]`
    if (typeof item !== 'object' || item === null) {
      throw new InvalidArgumentError(what, '{ value, delay, unit? }', item)
    }
    const delayMs = toMillis(`${what}.delay`, item.delay, item.unit)
    return { payload: this.encode(item.value, `${what}.value`), due: { delayMs } }
  }

  async #amend(ticket: Ticket, delayMs: number): Promise<{ ticket: Ticket | null } | null> {
    this.assertUsable()
    const { timeouts, order, channel, destination } = this.identity.keys
    const { id, due } = decodeTicket(destination, this.name, ticket)
    const nowMs = this.context.settings.clock === 'local' ? Date.now() : -1
    const prefix = Buffer.from([id.length, ...id])
    const result = await this.script(amend, { timeouts, order }, { channel, nowMs, due, prefix, delayMs })
    if (result === null) return null
    if (result === DUE_TOO_LARGE) {
      throw this.named(new InvalidArgumentError('delay', 'one whose due time is at most 2^53-1 ms', delayMs))
    }
    return { ticket: delayMs === REMOVE ? null : encodeTicket(destination, id, result) }
  }

  async #poll(limit: number): Promise<T[]> {
    return this.whole(async () => {
      const values: T[] = []
      while (values.length < limit) {
        const args = { count: Math.min(PAGE, limit - values.length), ordered: this.ordered }
        const entries = await this.script(poll, this.identity.keys, args).catch((error: unknown) => {
          if (values.length === 0) throw error
          return [] // what was taken before must reach the caller
        })
        if (entries.length === 0) break
        for (const entry of entries) values.push(...(await this.#acceptEntry(entry)))
      }
      return values
    })
  }

  /** The value of an entry that was taken, or nothing when it had to be set aside. */
  async #acceptEntry(entry: Buffer): Promise<T[]> {
    let payload: Buffer
    try {
      payload = payloadOf(entry)
    } catch (thrown) {
      await this.setAside(entry, toError(thrown))
      return []
    }
    return this.accept([payload])
  }
}
