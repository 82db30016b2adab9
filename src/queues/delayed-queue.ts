import type { Codec } from '../codecs/codec.js'
import { isOfWheel } from '../codecs/entry.js'
import { decodeTicket, encodeTicket, type Ticket } from '../codecs/ticket.js'
import { InvalidArgumentError, UnsupportedOperationError, type RedelayedError } from '../errors.js'
import type { Events, EventName, Listener } from '../events.js'
import { integer } from '../options.js'
import type { Wait } from '../redis/durable/durability.js'
import { DUE_TOO_LARGE, DelayedStore, type Due } from '../store/delayed-store.js'
import { scheduleKeys } from '../store/object-store.js'
import { WheelStore } from '../store/wheel-store.js'
import type { Duration } from '../duration.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import type { QueueContext, QueueIdentity } from './context.js'
import {
  resolveDelayedOptions,
  type DelayedQueueOptions,
  type OfferItem,
  type OfferOptions,
} from './delayed-options.js'
import { toStats, type DelayedQueueStats, type ScheduledMessage } from './inspection.js'
import type { KeyedObject } from './keyed-object.js'
import type { ListQueue } from './list-queue.js'
import { ObjectOperations } from './object-operations.js'
import { dueAfter, dueAt, dueOfItem, prepareAll, ticketsOf, waitOf } from './offer-arguments.js'
import { Offers, type PendingOffer } from './offers.js'
import { MAX_PAGE, MAX_RETAINED } from './paging.js'
import { namesOperations } from './operations.js'
import { PendingEntries } from './pending-entries.js'
import { Quarantine, type QuarantinedEntry } from './quarantine.js'
import { QueueHandle } from './queue-handle.js'
import { warnOfTimestamp } from './warn-of-timestamp.js'

/**
 * Redisson's `RDelayedQueue`: holds messages back and moves each to its destination queue when it is due. As long as the
 * object lives, this client takes part in delivering the queue.
 *
 * With `layout: 'redisson'` the pending messages are read in offer order, from the order list, as in Redisson; with `'compact'` by
 * due time, from the schedule. With `'wheel'` these methods reject with an `UnsupportedOperationError`.
 */
export class DelayedQueue<T = unknown> implements KeyedObject<T> {
  readonly name: string
  readonly codec: Codec<T>
  readonly layout: 'redisson' | 'compact' | 'wheel'
  /** The queue that due messages are moved to. */
  readonly destination: ListQueue<T>
  readonly #identity: QueueIdentity<T>
  readonly #handle: QueueHandle<T>
  readonly #store: DelayedStore
  readonly #wheel: WheelStore
  readonly #offers: Offers
  readonly #object: ObjectOperations
  readonly #quarantine: Quarantine<T>
  readonly #entries: PendingEntries<T>
  readonly #events: Events
  readonly #endEvents: () => void
  readonly #deliver: boolean
  readonly #release: () => Promise<void>

  static {
    namesOperations(this, {
      queueOf: ({ name }) => name,
      as: { offerEncoded: 'offer', offerAllEncoded: 'offerAll' },
    })
  }

  /** @internal */
  constructor(context: QueueContext, destination: ListQueue<T>, options: DelayedQueueOptions) {
    const { identity } = destination.list
    const { layout, deliver, unguessableTickets } = resolveDelayedOptions(options, identity.name, context)
    this.name = identity.name
    this.codec = identity.codec
    this.layout = layout
    this.destination = destination
    this.#identity = identity
    this.#handle = new QueueHandle(context, identity)
    this.#store = new DelayedStore(this.#handle, identity.keys, { layout, settings: context.settings })
    this.#wheel = new WheelStore(this.#handle, identity.keys, context.settings)
    this.#offers = new Offers(context, identity, layout, unguessableTickets)
    this.#object = new ObjectOperations(this.#handle, identity.keys, scheduleKeys)
    this.#quarantine = new Quarantine(this.#handle, identity.keys)
    this.#entries = new PendingEntries(this.#handle, this.#store, this.#quarantine)
    this.#deliver = deliver
    this.#release = deliver ? context.transfers.acquire(identity, layout === 'wheel') : () => Promise.resolve()
    const { events, end } = context.hub.forQueue(this.name)
    this.#events = events
    this.#endEvents = end
  }

  /** @internal Whether this object makes its client deliver the queue. */
  get isDelivering(): boolean {
    return this.#deliver && this.#handle.isUsable
  }

  /**
   * Adds a message that will be delivered `delay` (milliseconds unless a unit is given; whole, at least 0) after Redis accepted it.
   * Resolves when Redis has the message, with the ticket to cancel or reschedule it. The client sends all offers of one turn of the event
   * loop together at its end.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing
   *   was sent
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the message may have been accepted
   * @throws DurabilityError `ERR_DURABILITY`: the message was accepted, but did not reach its durability in time; the error carries the
   *   ticket
   * @throws UnsupportedServerError `ERR_UNSUPPORTED_SERVER`: the server does not have what `durability` needs: nothing was sent
   *
   * @example
   * ```ts
   * const ticket = await delayed.offer('to ada', 5, 'minutes')
   * console.log(ticket)
   * ```
   */
  offer(value: T, delay: Duration, unit?: TimeUnit, options?: OfferOptions): Promise<Ticket>
  offer(value: T, delay: Duration, options: OfferOptions): Promise<Ticket>
  async offer(value: T, delay: Duration, unit?: TimeUnit | OfferOptions, options?: OfferOptions): Promise<Ticket> {
    this.#handle.assertUsable()
    if (options !== undefined) return this.#offerWith(value, dueAfter('delay', delay, unit), options)
    if (typeof unit === 'object' && unit !== null) return this.#offerWith(value, dueAfter('delay', delay), unit)
    const delayMs = toMillis('delay', delay, unit)
    return this.#offers.one({ payload: this.#handle.encode(value), due: { delayMs } })
  }

  /**
   * Adds a message that will be delivered at `date`, by the Redis clock; at once when that has passed.
   *
   * @throws as `offer`
   *
   * @example
   * ```ts
   * await delayed.offerAt('to ada', new Date('2030-01-01T08:00:00Z'))
   * ```
   */
  async offerAt(value: T, date: Date, options?: OfferOptions): Promise<Ticket> {
    this.#handle.assertUsable()
    const due = dueAt(date)
    if (options !== undefined) return this.#offerWith(value, due, options)
    return this.#offers.one({ payload: this.#handle.encode(value), due })
  }

  /**
   * Adds many messages in few round trips; resolves with their tickets in order. All items are checked and encoded before
   * anything is sent. Messages are independent: some may be accepted and others not.
   *
   * @throws OfferAllError `ERR_OFFER_ALL`: names the items that were not accepted, and has the tickets of the others; with `durability`
   *   also those that were accepted but did not reach their durability, with a DurabilityError `ERR_DURABILITY` that has the ticket
   *
   * @example
   * ```ts
   * const tickets = await delayed.offerAll([
   *   { value: 'to ada', delay: 5_000 },
   *   { value: 'to bob', date: new Date('2030-01-01') },
   * ])
   * console.log(tickets.length)
   * ```
   */
  async offerAll(items: Iterable<OfferItem<T>>, options?: OfferOptions): Promise<Ticket[]> {
    this.#handle.assertUsable()
    const wait = options === undefined ? undefined : waitOf(options)
    const prepare = (item: OfferItem<T>, what: string): PendingOffer => ({
      payload: this.#handle.encode(item.value, `${what}.value`),
      due: dueOfItem(item, what),
    })
    const shape = '{ value, delay, unit? } or { value, date }'
    const pending = prepareAll(this.#handle, items, shape, prepare)
    return ticketsOf(this.#handle, await this.offerAllEncoded(pending, wait))
  }

  /** @internal As `offer`, with arguments that are checked and encoded already. */
  async offerEncoded(pending: PendingOffer, wait: Wait | undefined): Promise<Ticket> {
    this.#handle.assertUsable()
    if (wait === undefined) return this.#offers.one(pending)
    return this.#handle.context.durable.trackOperation(() => this.#offers.oneDurable(pending, wait))
  }

  /** @internal As `offerAll`; one ticket or error for each, in order. */
  async offerAllEncoded(
    pending: readonly PendingOffer[],
    wait: Wait | undefined,
  ): Promise<(Ticket | RedelayedError)[]> {
    this.#handle.assertUsable()
    const results = await (wait === undefined
      ? this.#handle.trackOperation(() => this.#offers.many(pending))
      : this.#handle.context.durable.trackOperation(() => this.#offers.many(pending, wait)))
    return results.map((result) => (typeof result === 'string' ? result : this.#handle.withQueueName(result)))
  }

  /**
   * Not possible without a delay, as in Redisson.
   *
   * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: always
   *
   * @example
   * ```ts
   * await delayed.offer('to ada', 0) // instead
   * ```
   */
  async add(): Promise<never> {
    throw new UnsupportedOperationError('a delayed queue needs a delay; use offer(value, delay)')
  }

  /**
   * Removes a pending message. False when it was delivered or cancelled already. O(log N); with `layout: 'redisson'` also one `LREM` on
   * the order list.
   *
   * @throws InvalidTicketError `ERR_INVALID_TICKET`: the ticket is not one of this queue
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const ticket = await delayed.offer('to ada', 5_000)
   * console.log(await delayed.cancel(ticket)) // true
   * ```
   */
  async cancel(ticket: Ticket): Promise<boolean> {
    const { id, due } = this.#idOf(ticket)
    return (isOfWheel(id) ? this.#wheel : this.#store).cancel(id, due)
  }

  /**
   * Makes a pending message due `delay` from now instead; resolves with its new ticket, or `null` when it is not pending any more.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws InvalidTicketError `ERR_INVALID_TICKET`: the ticket is not one of this queue
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const ticket = await delayed.offer('to ada', 5_000)
   * const moved = await delayed.reschedule(ticket, 1, 'hours')
   * if (moved === null) console.log('it was delivered already')
   * ```
   */
  async reschedule(ticket: Ticket, delay: Duration, unit?: TimeUnit): Promise<Ticket | null> {
    const delayMs = toMillis('delay', delay, unit)
    const { id, due } = this.#idOf(ticket)
    warnOfTimestamp(this.#handle.context, this.name, delayMs)
    const newId = isOfWheel(id) ? this.#handle.context.ids.next(id.length) : id
    const newDue = await (isOfWheel(id)
      ? this.#wheel.reschedule(id, due, delayMs, newId)
      : this.#store.reschedule(id, due, delayMs))
    if (newDue === null) return null
    if (newDue === DUE_TOO_LARGE) {
      throw new InvalidArgumentError('delay', 'one whose due time is at most 2^53-1 ms', delayMs)
    }
    return encodeTicket(this.#identity.keys.destination, newId, newDue)
  }

  /**
   * How many messages are pending. With `layout: 'redisson'` it counts the order list, as Redisson does; with the others the schedule and
   * the lists by minute that objects with `'wheel'` have filled, 500 lists at one moment. The count of the lists is approximate: it is too
   * low while a minute with cancelled messages is being moved to the schedule, and after a cancel of a message that was lost; a repeated
   * offer counts twice.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await delayed.size())
   * ```
   */
  async size(): Promise<number> {
    this.#handle.assertUsable()
    return this.layout === 'redisson' ? this.#store.size() : this.#wheel.size()
  }

  /**
   * Whether no message is pending.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * if (await delayed.isEmpty()) console.log('nothing is pending')
   * ```
   */
  async isEmpty(): Promise<boolean> {
    return (await this.size()) === 0
  }

  /**
   * The first pending message without taking it: the oldest offered, or with `layout: 'compact'` the next due.
   *
   * @throws DecodeError `ERR_DECODE`: the element's bytes cannot be read; it stays where it is
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await delayed.peek())
   * ```
   */
  async peek(): Promise<T | null> {
    return this.#readable().entries.first()
  }

  /**
   * As `peek`, but rejects with `NoSuchElementError` when there is none.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws DecodeError `ERR_DECODE`: the element's bytes cannot be read; it stays where it is
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   *
   * @example
   * ```ts
   * console.log(await delayed.element())
   * ```
   */
  async element(): Promise<T> {
    return this.#handle.orThrow(await this.peek())
  }

  /**
   * All pending messages, in one reply: in offer order, or with `layout: 'compact'` by due time. Use `iterate` for many.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await delayed.readAll())
   * ```
   */
  async readAll(): Promise<T[]> {
    return this.#readable().entries.all()
  }

  /**
   * The same as `readAll`.
   *
   * @throws as `readAll`
   *
   * @example
   * ```ts
   * console.log(await delayed.toArray())
   * ```
   */
  toArray(): Promise<T[]> {
    return this.readAll()
  }

  /**
   * Walks the pending messages in pages of `pageSize` (1 to 10,000). While messages come and go, some can be missed or seen
   * twice.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * for await (const mail of delayed.iterate({ pageSize: 1_000 })) console.log(mail)
   * ```
   */
  async *iterate(options: { pageSize?: number } = {}): AsyncGenerator<T, void> {
    yield* this.#readable().entries.each(options)
  }

  /**
   * What the queue holds and how late it is, counted at one moment, in O(log N). Changes nothing. With `layout: 'wheel'` the count of the
   * lists by minute is approximate, as that of `size()`.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const { pending, overdue, oldestOverdueMs } = await delayed.stats()
   * console.log(pending, overdue, oldestOverdueMs)
   * ```
   */
  async stats(): Promise<DelayedQueueStats> {
    this.#handle.assertUsable()
    return toStats(await this.#store.stats())
  }

  /**
   * The next `limit` (1 to 10,000; default 100) pending messages, the earliest due first, with their due times and tickets. Works with
   * every layout; with `'wheel'` it lists only the next minute, because later messages are not sorted. Unreadable messages are left out and
   * reported by an `error` event.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * for (const { value, due } of await delayed.schedule({ limit: 10 })) console.log(new Date(due), value)
   * ```
   */
  async schedule({ limit = 100 }: { limit?: number } = {}): Promise<ScheduledMessage<T>[]> {
    this.#handle.assertUsable()
    integer('limit', limit, 1, MAX_PAGE)
    return this.#entries.scheduled(limit, this.#identity.keys.destination)
  }

  /**
   * Whether a pending message has the same encoded bytes as `value`. Walks all of them, page by page.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await delayed.contains('to ada'))
   * ```
   */
  async contains(value: T): Promise<boolean> {
    return this.#readable().store.contains(this.#handle.encode(value))
  }

  /**
   * Whether a message of each of `values` is pending. Equal values need only one message; for no values the answer is true. Walks
   * the schedule, page by page.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await delayed.containsAll(['to ada', 'to bob']))
   * ```
   */
  async containsAll(values: Iterable<T>): Promise<boolean> {
    return this.#readable().store.containsAll(this.#handle.encodeDistinct(values))
  }

  /**
   * Takes the first pending message before it is due; it will not be delivered. `null` when there is none.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const mail = await delayed.poll()
   * console.log(mail)
   * ```
   */
  poll(): Promise<T | null>
  /** Takes up to `limit` (0 to 2^53-1) pending messages. */
  poll(limit: number): Promise<T[]>
  async poll(limit?: number): Promise<T | null | T[]> {
    this.#handle.assertUsable()
    if (limit === undefined) return (await this.#readable().entries.take(1))[0] ?? null
    return this.#readable().entries.take(integer('limit', limit, 0, Number.MAX_SAFE_INTEGER))
  }

  /**
   * Takes the first pending message; rejects with `NoSuchElementError` when there is none.
   *
   * @throws NoSuchElementError `ERR_NO_SUCH_ELEMENT`: there is none
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await delayed.remove('to ada'))
   * ```
   */
  remove(): Promise<T>
  /** Removes the first pending message with the same encoded bytes as `value`. A walk: `cancel(ticket)` finds it in O(log N). */
  remove(value: T): Promise<boolean>
  async remove(...args: [] | [T]): Promise<T | boolean> {
    this.#handle.assertUsable()
    if (args.length > 0) return this.#readable().store.remove(this.#handle.encode(args[0] as T))
    return this.#handle.orThrow(await this.poll())
  }

  /**
   * Removes every pending message that equals one of `values`; resolves with whether there was any. Walks the schedule, page by page.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await delayed.removeAll(['to ada', 'to bob'])
   * ```
   */
  async removeAll(values: Iterable<T>): Promise<boolean> {
    this.#handle.assertUsable()
    const distinct = this.#handle.encodeDistinct(values)
    return this.#handle.trackOperation(async () => (await this.#readable().store.removeAll(distinct)) > 0)
  }

  /**
   * Removes every pending message that equals none of `values` (at most 10,000 different ones), so that it will not be
   * delivered; resolves with whether there was any. Walks the schedule, page by page.
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: one of the values cannot be encoded, or is too large;
   *   nothing was sent
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: there are more than 10,000 different values
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await delayed.retainAll(['to ada'])
   * ```
   */
  async retainAll(values: Iterable<T>): Promise<boolean> {
    this.#handle.assertUsable()
    const distinct = this.#handle.encodeDistinct(values, MAX_RETAINED)
    if (distinct.length === 0) return this.delete()
    return this.#handle.trackOperation(async () => (await this.#readable().store.retainAll(distinct)) > 0)
  }

  /**
   * Takes the last pending message (the last offered, or with `layout: 'compact'` the last due) and puts it in front of the queue
   * `name`, in one step at the server; resolves with it, or with `null` when nothing is pending. Throws a `DecodeError` when
   * its bytes cannot be read; the message is then in the other queue.
   *
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await delayed.pollLastAndOfferFirstTo('mails'))
   * ```
   */
  async pollLastAndOfferFirstTo(name: string): Promise<T | null> {
    this.#handle.assertUsable()
    const bytes = await this.#readable().store.pollLast(this.#handle.context.keysOf(name).destination)
    return bytes === null ? null : this.#handle.decode(bytes)
  }

  /**
   * Ends the use of this object. Nothing is deleted in Redis. This client stops delivering the queue when all objects that
   * `getDelayedQueue` returned for it are destroyed and no consumer of the queue has waited lately.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * await delayed.destroy()
   * ```
   */
  async destroy(): Promise<void> {
    if (this.#handle.end('this delayed queue was destroyed')) this.#endEvents()
    await this.#release()
  }

  /**
   * The same as `destroy`, at the end of a block.
   *
   * @throws as `destroy`
   *
   * @example
   * ```ts
   * await using delayed = client.getDelayedQueue(queue)
   * await delayed.offer('to ada', 5_000)
   * ```
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy()
  }

  /**
   * Listens to the events of this queue only.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * delayed.on('transferred', ({ count, maxLatenessMs }) => console.log(count, maxLatenessMs))
   * ```
   */
  on<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#events.on(name, listener)
    return this
  }

  /**
   * As `on`, for the next event only.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * delayed.once('subscribed', ({ queue }) => console.log(queue))
   * ```
   */
  once<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#events.once(name, listener)
    return this
  }

  /**
   * Ends what `on` or `once` began; without effect for a listener that is not there.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * const log = (error: Error) => console.error(error.message)
   * delayed.on('error', log)
   * delayed.off('error', log)
   * ```
   */
  off<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#events.off(name, listener)
    return this
  }

  readQuarantine(limit?: number): Promise<QuarantinedEntry[]> {
    return this.#quarantine.read(limit)
  }

  clearQuarantine(): Promise<boolean> {
    return this.#quarantine.clear()
  }

  getName(): string {
    return this.name
  }

  getCodec(): Codec<T> {
    return this.codec
  }

  async isExists(): Promise<boolean> {
    this.#handle.assertUsable()
    return this.#wheel.exists()
  }

  async delete(): Promise<boolean> {
    this.#handle.assertUsable()
    return this.#handle.trackOperation(() => this.#wheel.clear())
  }

  unlink(): Promise<boolean> {
    return this.delete()
  }

  async clear(): Promise<void> {
    await this.delete()
  }

  async touch(): Promise<boolean> {
    return this.#asOneObject().touch()
  }

  async sizeInMemory(): Promise<number> {
    return this.#asOneObject().sizeInMemory()
  }

  async expire(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#asOneObject().expire('always', when, unit)
  }

  async expireIfSet(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#asOneObject().expire('set', when, unit)
  }

  async expireIfNotSet(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#asOneObject().expire('unset', when, unit)
  }

  async expireIfGreater(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#asOneObject().expire('greater', when, unit)
  }

  async expireIfLess(when: Duration | Date, unit?: TimeUnit): Promise<boolean> {
    return this.#asOneObject().expire('less', when, unit)
  }

  async clearExpire(): Promise<boolean> {
    return this.#asOneObject().clearExpire()
  }

  async remainTimeToLive(): Promise<number> {
    return this.#asOneObject().timeToLive()
  }

  async getExpireTime(): Promise<number> {
    return this.#asOneObject().expireTime()
  }

  async rename(newName: string): Promise<void> {
    await this.#asOneObject().rename(newName, true)
  }

  async renamenx(newName: string): Promise<boolean> {
    return this.#asOneObject().rename(newName, false)
  }

  async copy(newName: string): Promise<boolean> {
    return this.#asOneObject().copy(newName, false)
  }

  async copyAndReplace(newName: string): Promise<boolean> {
    return this.#asOneObject().copy(newName, true)
  }

  /** The pending messages one by one. @throws UnsupportedOperationError with `layout: 'wheel'`, where they are in no order */
  #readable(): { readonly entries: PendingEntries<T>; readonly store: DelayedStore } {
    this.#handle.assertUsable()
    if (this.layout === 'wheel') throw this.#unsupported('size(), stats(), schedule() and cancel(ticket) work')
    return { entries: this.#entries, store: this.#store }
  }

  /** The keys of the pending messages as one object. @throws UnsupportedOperationError with `layout: 'wheel'`, where they are many */
  #asOneObject(): ObjectOperations {
    this.#handle.assertUsable()
    if (this.layout === 'wheel') throw this.#unsupported('delete() and isExists() work')
    return this.#object
  }

  #unsupported(instead: string): UnsupportedOperationError {
    return new UnsupportedOperationError(
      `not with layout 'wheel', where ${instead}; use layout 'compact' for all methods`,
    )
  }

  #idOf(ticket: Ticket): { id: Buffer; due: number } {
    this.#handle.assertUsable()
    return decodeTicket(this.#identity.keys.destination, this.name, ticket)
  }

  async #offerWith(value: T, due: Due, options: OfferOptions): Promise<Ticket> {
    const wait = waitOf(options)
    return this.offerEncoded({ payload: this.#handle.encode(value), due }, wait)
  }
}
