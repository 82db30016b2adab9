import type { Ticket } from '../codecs/ticket.js'
import type { Durability, Wait } from '../redis/durable/durability.js'
import { InvalidArgumentError, ShutdownError, UnsupportedOperationError, type RedelayedError } from '../errors.js'
import type { Events, EventName, Listener } from '../events.js'
import { boolean, onlyKnown } from '../options.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import type { QueueContext } from './context.js'
import type { ListQueue } from './list-queue.js'
import { dueAfter, dueAt, dueOfItem, prepareAll, ticketsOf, waitOf } from './offer-arguments.js'
import { Offers, type Due, type PendingOffer } from './offers.js'
import { PendingChanges } from './pending-changes.js'

export interface DelayedQueueOptions {
  /**
   * `'redisson'` (default) is Redisson's exact layout: all methods of Java's RDelayedQueue see these entries, at the price of a
   * walk through the order list for every message that is not delivered in offer order. `'compact'` leaves that list out:
   * every operation is O(log N) and takes less memory; Java still delivers and takes the messages, but its `size`,
   * `readAll` and `poll` on the delayed queue do not see them.
   */
  readonly layout?: 'redisson' | 'compact' | undefined
  /**
   * Whether this client takes part in delivering the queue. Default true. `false` is for processes that only offer, cancel
   * or look: they open no subscriber connection, and another client delivers, such as any consumer of the queue.
   */
  readonly deliver?: boolean | undefined
  /**
   * Whether tickets have at least 64 random bits, for those that leave your system: other tickets of the queue say nothing of them. Eight
   * bytes more per message. Not with `entryFormat: 'dLc0'`. Default false.
   */
  readonly unguessableTickets?: boolean | undefined
}

export interface OfferOptions {
  /**
   * What must have the message, beside the memory of the server, before the offer resolves: so many replicas, or the
   * append-only file on disk. Such offers go over a connection of their own, several of them with one wait at the end; one
   * that comes while others are waited for goes with the next. Without it an offer resolves when the server has accepted it.
   * It says nothing of what happens later: see docs/durability.md.
   */
  readonly durability?: Durability | undefined
}

/** One message for `offerAll`: with a delay, or with a date by the Redis clock. */
export type OfferItem<T> =
  | { readonly value: T; readonly delay: number; readonly unit?: TimeUnit | undefined; readonly date?: undefined }
  | { readonly value: T; readonly date: Date; readonly delay?: undefined; readonly unit?: undefined }

/**
 * Redisson's `RDelayedQueue`: holds messages back and moves each to its destination queue when it is due. As long as the
 * object lives, this client takes part in delivering the queue.
 */
export class DelayedQueue<T = unknown> extends PendingChanges<T> {
  /** The queue that due messages are moved to. */
  readonly destination: ListQueue<T>
  readonly #offers: Offers
  readonly #events: Events
  readonly #endEvents: () => void
  readonly #release: () => Promise<void>
  #destroyed = false

  /** @internal */
  constructor(context: QueueContext, destination: ListQueue<T>, options: DelayedQueueOptions) {
    onlyKnown('options', options, ['layout', 'deliver', 'unguessableTickets'])
    const unguessable = boolean('unguessableTickets', options.unguessableTickets ?? false)
    if (unguessable && context.settings.entryFormat === 'dLc0') {
      const expected = `false with entryFormat 'dLc0', whose ids have 8 bytes`
      throw new InvalidArgumentError('unguessableTickets', expected, true, { queue: destination.name })
    }
    if (options.layout === 'compact' && context.settings.entryFormat === 'dLc0') {
      const expected = `'redisson' with entryFormat 'dLc0', whose entries always stand in the order list`
      throw new InvalidArgumentError('layout', expected, options.layout, { queue: destination.name })
    }
    super(context, destination.identity, options.layout)
    this.destination = destination
    this.#offers = new Offers(context, destination.identity, this.layout === 'redisson', unguessable)
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
   * @throws DurabilityError the message was accepted, but not as durable as asked in time; it carries the ticket
   * @throws UnsupportedServerError the server does not have what `durability` needs: nothing was sent
   */
  offer(value: T, delay: number, unit?: TimeUnit, options?: OfferOptions): Promise<Ticket>
  offer(value: T, delay: number, options: OfferOptions): Promise<Ticket>
  async offer(value: T, delay: number, unit?: TimeUnit | OfferOptions, options?: OfferOptions): Promise<Ticket> {
    this.assertUsable()
    try {
      if (options !== undefined) return await this.#offerWith(value, dueAfter('delay', delay, unit), options)
      if (typeof unit === 'object' && unit !== null) return await this.#offerWith(value, dueAfter('delay', delay), unit)
      const delayMs = toMillis('delay', delay, unit)
      return await this.#offers.one({ payload: this.handle.encode(value), due: { delayMs } })
    } catch (error) {
      throw this.handle.attributed(error)
    }
  }

  /** Adds a message that will be delivered at `date`, by the Redis clock; at once when that has passed. Errors as for `offer`. */
  async offerAt(value: T, date: Date, options?: OfferOptions): Promise<Ticket> {
    this.assertUsable()
    try {
      const due = dueAt(date)
      if (options !== undefined) return await this.#offerWith(value, due, options)
      return await this.#offers.one({ payload: this.handle.encode(value), due })
    } catch (error) {
      throw this.handle.attributed(error)
    }
  }

  /**
   * Adds many messages in few round trips; resolves with their tickets in order. All items are checked and encoded before
   * anything is sent. Messages are independent of each other: some may be accepted and others not.
   *
   * @throws OfferAllError names the items that were not accepted, and has the tickets of the others; with `durability` also
   *   those that were accepted but are not as durable as asked, by a DurabilityError with the ticket
   */
  async offerAll(items: Iterable<OfferItem<T>>, options?: OfferOptions): Promise<Ticket[]> {
    this.assertUsable()
    const wait = options === undefined ? undefined : this.handle.checked(() => waitOf(options))
    const prepare = (item: OfferItem<T>, what: string): PendingOffer => ({
      payload: this.handle.encode(item.value, `${what}.value`),
      due: dueOfItem(item, what),
    })
    const shape = '{ value, delay, unit? } or { value, date }'
    const pending = prepareAll(items, shape, prepare, (error) => this.handle.attributed(error))
    return ticketsOf(await this.offerAllEncoded(pending, wait), (error) => this.handle.attributed(error))
  }

  /** @internal As `offer`, of what is checked and encoded already. */
  async offerEncoded(pending: PendingOffer, wait: Wait | undefined): Promise<Ticket> {
    this.assertUsable()
    try {
      if (wait === undefined) return await this.#offers.one(pending)
      return await this.#whole(() => this.#offers.oneDurable(pending, wait))
    } catch (error) {
      throw this.handle.attributed(error)
    }
  }

  /** @internal As `offerAll`; one ticket or error for each, in order. */
  async offerAllEncoded(
    pending: readonly PendingOffer[],
    wait: Wait | undefined,
  ): Promise<(Ticket | RedelayedError)[]> {
    this.assertUsable()
    const results = await (wait === undefined
      ? this.handle.trackOperation(() => this.#offers.many(pending))
      : this.#whole(() => this.#offers.many(pending, wait)))
    return results.map((result) => (typeof result === 'string' ? result : this.handle.withQueueName(result)))
  }

  /** Not possible without a delay, as in Redisson. */
  async add(): Promise<never> {
    throw this.handle.withQueueName(
      new UnsupportedOperationError('a delayed queue needs a delay; use offer(value, delay)'),
    )
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

  protected override assertUsable(): void {
    if (this.#destroyed) throw this.handle.withQueueName(new ShutdownError('this delayed queue was destroyed'))
  }

  async #offerWith(value: T, due: Due, options: OfferOptions): Promise<Ticket> {
    const wait = waitOf(options)
    return this.offerEncoded({ payload: this.handle.encode(value), due }, wait)
  }

  async #whole<R>(action: () => Promise<R>): Promise<R> {
    try {
      return await this.context.durable.trackOperation(action)
    } catch (error) {
      throw this.handle.attributed(error)
    }
  }
}
