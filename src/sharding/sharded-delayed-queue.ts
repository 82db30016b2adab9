import type { Codec } from '../codecs/codec.js'
import { joinTicket, splitTicket } from '../codecs/sharded-ticket.js'
import type { Ticket } from '../codecs/ticket.js'
import type { Wait } from '../redis/durable/durability.js'
import { DurabilityError, InternalError, RedelayedError, copyOf, toError } from '../errors.js'
import { integer, nonEmptyString } from '../options.js'
import type { Duration } from '../duration.js'
import type { TimeUnit } from '../timing/units.js'
import type { QueueContext, QueueIdentity } from '../queues/context.js'
import type { OfferOptions } from '../queues/delayed-options.js'
import { DelayedQueue } from '../queues/delayed-queue.js'
import { dueAfter, dueAt, dueOfItem, prepareAll, ticketsOf, waitOf } from '../queues/offer-arguments.js'
import type { PendingOffer } from '../queues/offers.js'
import { Queue } from '../queues/queue.js'
import { DEFAULT_QUARANTINED, type QuarantinedEntry } from '../queues/quarantine.js'
import { namesOperations } from '../queues/operations.js'
import { QueueHandle } from '../queues/queue-handle.js'
import type { PollArguments, TakeManyOptions, TakeOptions } from '../queues/waits.js'
import type { Due } from '../store/delayed-store.js'
import { shardOfKey } from './shard-of-key.js'
import {
  resolveShardedOptions,
  type ShardedDelayedQueueOptions,
  type ShardedOfferItem,
  type ShardedOfferOptions,
} from './sharded-options.js'
import { ShardedTakes } from './sharded-takes.js'

interface Placed extends PendingOffer {
  readonly shard: number
}

/**
 * One delayed queue made of several ordinary ones, its shards, whose keys are in different slots of a cluster. Its methods act
 * on the whole. As long as the object lives, this client takes part in delivering it.
 */
export class ShardedDelayedQueue<T = unknown> {
  /** The queue's name as the application knows it. */
  readonly name: string
  readonly codec: Codec<T>
  /** The number of shards over which offers are spread. */
  readonly shardCount: number
  /**
   * The names of the shards' queues, for `getDelayedQueue` and for Java. Shards beyond `shardCount` (see `formerShards`) get no
   * offers.
   */
  readonly names: readonly string[]
  readonly layout: 'redisson' | 'compact' | 'wheel'
  readonly #delayed: readonly DelayedQueue<T>[]
  /** The queues of other shards, for tickets of shards that this object does not cover. */
  readonly #others = new Map<number, DelayedQueue<T>>()
  readonly #identity: QueueIdentity<T>
  /** @internal */
  readonly handle: QueueHandle<T>
  readonly #takes: ShardedTakes<T>
  #turn: number

  static {
    namesOperations(this, { queueOf: ({ name }) => name })
  }

  /** @internal */
  constructor(context: QueueContext, identity: QueueIdentity<T>, options: ShardedDelayedQueueOptions<T>) {
    const { shards, covered, layout, deliver, unguessableTickets, consumersDeliver } = resolveShardedOptions(options)
    const identities = Array.from({ length: covered }, (_, shard) => shardIdentity(context, identity, shard))
    this.name = identity.name
    this.codec = identity.codec
    this.#identity = identity
    this.handle = new QueueHandle(context, identity)
    this.#takes = new ShardedTakes(this.handle, identities, { consumersDeliver })
    this.shardCount = shards
    this.names = Object.freeze(identities.map(({ name }) => name))
    this.layout = layout
    const each = { layout, deliver, unguessableTickets }
    this.#delayed = identities.map((identity) => new DelayedQueue(context, new Queue(context, identity), each))
    this.#turn = Math.floor(Math.random() * shards)
  }

  /** @internal Whether this object makes its client deliver the shards. */
  get isDelivering(): boolean {
    return this.#delayed.some((shard) => shard.isDelivering)
  }

  /**
   * Adds a message that will be delivered `delay` (milliseconds unless a unit is given; whole, at least 0) after Redis
   * accepted it. Resolves with the ticket to cancel or reschedule it with. Errors as for `DelayedQueue.offer`.
   *
   * @throws as `DelayedQueue.offer`
   *
   * @example
   * ```ts
   * await sharded.offer('to ada', 5, 'minutes', { key: 'ada' })
   * ```
   */
  offer(value: T, delay: Duration, unit?: TimeUnit, options?: ShardedOfferOptions): Promise<Ticket>
  offer(value: T, delay: Duration, options: ShardedOfferOptions): Promise<Ticket>
  async offer(
    value: T,
    delay: Duration,
    unit?: TimeUnit | ShardedOfferOptions,
    options?: ShardedOfferOptions,
  ): Promise<Ticket> {
    this.handle.assertUsable()
    const only = options === undefined && typeof unit === 'object' && unit !== null ? unit : undefined
    const due = dueAfter('delay', delay, only === undefined ? unit : undefined)
    return this.#offer(value, due, only ?? options)
  }

  /**
   * Adds a message that will be delivered at `date`, by the Redis clock; at once when that has passed.
   *
   * @throws as `DelayedQueue.offer`
   *
   * @example
   * ```ts
   * await sharded.offerAt('to ada', new Date('2030-01-01'))
   * ```
   */
  async offerAt(value: T, date: Date, options?: ShardedOfferOptions): Promise<Ticket> {
    this.handle.assertUsable()
    return this.#offer(value, dueAt(date), options)
  }

  /**
   * Adds many messages, to different shards concurrently; resolves with their tickets in order. All items are checked and
   * encoded before anything is sent.
   *
   * @throws OfferAllError `ERR_OFFER_ALL`: names the items that were not accepted, and has the tickets of the others
   *
   * @example
   * ```ts
   * await sharded.offerAll([{ value: 'to ada', delay: 5_000, key: 'ada' }])
   * ```
   */
  async offerAll(items: Iterable<ShardedOfferItem<T>>, options?: OfferOptions): Promise<Ticket[]> {
    this.handle.assertUsable()
    const wait = options === undefined ? undefined : waitOf(options)
    const prepare = (item: ShardedOfferItem<T>, what: string): Placed => {
      const { value, key } = item
      const due = dueOfItem(item, what)
      const keyed = key === undefined ? undefined : nonEmptyString(`${what}.key`, key)
      return { payload: this.handle.encode(value, `${what}.value`), due, shard: this.#place(keyed) }
    }
    const placed = prepareAll(this.handle, items, '{ value, delay, unit?, key? } or { value, date, key? }', prepare)
    return ticketsOf(this.handle, await this.#offerPlaced(placed, wait))
  }

  /**
   * Takes an element of any shard, waiting for one as long as it takes. Taking is at most once: see docs/sharded-queue.md for
   * what a crash can cost. An abort rejects at once; an element on its way goes to the next call or back to its shard.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws the reason of the signal, after its abort
   *
   * @example
   * ```ts
   * console.log(await sharded.take())
   * ```
   */
  take(options: TakeOptions = {}): Promise<T> {
    return this.#takes.take(options)
  }

  /**
   * Takes an element of any shard if there is one, without waiting; else `null`. Asks one shard after the other.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * console.log(await sharded.poll(5, 'seconds'))
   * ```
   */
  poll(): Promise<T | null>
  /** Takes an element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. */
  poll(timeout: Duration, options?: TakeOptions): Promise<T | null>
  poll(timeout: Duration, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
  poll(...args: PollArguments): Promise<T | null> {
    return this.#takes.poll(args)
  }

  /**
   * Takes between 1 and `max` (1 to 10,000) elements, waiting for the first; an empty array when the timeout is over. The first
   * shards with elements serve the call.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * console.log(await sharded.takeMany(100, { timeout: 5_000 }))
   * ```
   */
  takeMany(max: number, options: TakeManyOptions = {}): Promise<T[]> {
    return this.#takes.takeMany(max, options)
  }

  /**
   * Takes up to `max` elements without waiting, shard by shard. Without `max`, all that the shards have.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await sharded.drainTo(100))
   * ```
   */
  drainTo(max = Infinity): Promise<T[]> {
    return this.#takes.drain(max)
  }

  /**
   * Takes elements for ever; takes the next one when the loop's body has ended.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   *
   * @example
   * ```ts
   * for await (const mail of sharded) console.log(mail)
   * ```
   */
  [Symbol.asyncIterator](): AsyncGenerator<T, void> {
    return this.elements()
  }

  /**
   * The same with a signal; after its abort the iteration throws the signal's reason.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws the reason of the signal, after its abort
   *
   * @example
   * ```ts
   * const stop = new AbortController()
   * for await (const mail of sharded.elements({ signal: stop.signal })) console.log(mail)
   * ```
   */
  async *elements(options: TakeOptions = {}): AsyncGenerator<T, void> {
    for (;;) yield await this.#takes.take(options)
  }

  /**
   * Removes a pending message. False when it was delivered or cancelled already.
   *
   * @throws InvalidTicketError `ERR_INVALID_TICKET`: the ticket is not one of this queue
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const ticket = await sharded.offer('to ada', 5_000)
   * console.log(await sharded.cancel(ticket))
   * ```
   */
  async cancel(ticket: Ticket): Promise<boolean> {
    const { delayed, inner } = this.#find(ticket)
    return delayed.cancel(inner)
  }

  /**
   * Makes a pending message due `delay` from now instead; resolves with its new ticket, or `null` when it is not pending any more.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws InvalidTicketError `ERR_INVALID_TICKET`: the ticket is not one of this queue
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const ticket = await sharded.offer('to ada', 5_000)
   * console.log(await sharded.reschedule(ticket, 1, 'hours'))
   * ```
   */
  async reschedule(ticket: Ticket, delay: Duration, unit?: TimeUnit): Promise<Ticket | null> {
    const { delayed, inner, shard } = this.#find(ticket)
    const moved = await delayed.reschedule(inner, delay, unit)
    return moved === null ? null : joinTicket(shard, moved)
  }

  /**
   * How many messages are pending in all shards.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await sharded.size())
   * ```
   */
  async size(): Promise<number> {
    return sumOf(await this.sizes())
  }

  /**
   * How many messages are pending in each shard, in the order of `names`.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const sizes = await sharded.sizes()
   * sharded.names.forEach((name, shard) => console.log(name, sizes[shard]))
   * ```
   */
  async sizes(): Promise<number[]> {
    return this.#each((delayed) => delayed.size())
  }

  /**
   * How many delivered messages wait in Redis to be taken, in all shards.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await sharded.readySize())
   * ```
   */
  async readySize(): Promise<number> {
    return sumOf(await this.#each((delayed) => delayed.destination.size()))
  }

  /**
   * All pending messages, shard by shard: by due time, or with `layout: 'redisson'` in offer order, only within a shard.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down, before or during the wait
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await sharded.readAll())
   * ```
   */
  async readAll(): Promise<T[]> {
    return (await this.#each((delayed) => delayed.readAll())).flat()
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
   * console.log(await sharded.contains('to ada'))
   * ```
   */
  async contains(value: T): Promise<boolean> {
    return (await this.#each((delayed) => delayed.contains(value))).includes(true)
  }

  /**
   * Removes one pending message with the same encoded bytes as `value`. A walk, shard by shard: `cancel(ticket)` finds it in O(log N).
   *
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: `value` cannot be encoded, or is too large; nothing was
   *   sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await sharded.remove('to ada'))
   * ```
   */
  async remove(value: T): Promise<boolean> {
    this.handle.assertUsable()
    for (const delayed of this.#delayed) if (await delayed.remove(value)) return true
    return false
  }

  /**
   * Deletes all pending messages; resolves with whether there were any. Delivered messages stay.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await sharded.delete())
   * ```
   */
  async delete(): Promise<boolean> {
    return (await this.#each((delayed) => delayed.delete())).includes(true)
  }

  /**
   * The oldest entries of the shards' quarantines, at most `limit` (1 to 10,000; default 100), the oldest first. They stay there.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * for (const { reason, at } of await sharded.readQuarantine(10)) console.log(reason, at)
   * ```
   */
  async readQuarantine(limit = DEFAULT_QUARANTINED): Promise<QuarantinedEntry[]> {
    integer('limit', limit, 1, 10_000)
    const all = (await this.#each((delayed) => delayed.readQuarantine(limit))).flat()
    return all.sort((a, b) => a.at.getTime() - b.at.getTime()).slice(0, limit)
  }

  /**
   * Deletes the shards' quarantines; resolves with whether there were any.
   *
   * @throws ShutdownError `ERR_SHUTDOWN`: the queue object was destroyed, or the client shut down
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * await sharded.clearQuarantine()
   * ```
   */
  async clearQuarantine(): Promise<boolean> {
    return (await this.#each((delayed) => delayed.clearQuarantine())).includes(true)
  }

  /**
   * Ends the use of this object: its waiting takes reject with a `ShutdownError`, and this client stops delivering the shards unless
   * other objects need them. Nothing is deleted in Redis.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * await sharded.destroy()
   * ```
   */
  async destroy(): Promise<void> {
    this.handle.end('this sharded queue was destroyed')
    await this.#takes.end()
    await Promise.all([...this.#delayed, ...this.#others.values()].map((delayed) => delayed.destroy()))
  }

  /**
   * The same as `destroy`, at the end of a block.
   *
   * @throws as `destroy`
   *
   * @example
   * ```ts
   * await using sharded = client.getShardedDelayedQueue<string>('mails', { shards: 8 })
   * await sharded.offer('to ada', 5_000)
   * ```
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy()
  }

  async #offer(value: T, due: Due, options: ShardedOfferOptions | undefined): Promise<Ticket> {
    const { wait, key } = parseOptions(options)
    const payload = this.handle.encode(value)
    const shard = this.#place(key)
    try {
      return joinTicket(shard, await this.#at(shard).offerEncoded({ payload, due }, wait))
    } catch (error) {
      throw withShard(shard, error)
    }
  }

  /** Returns one ticket or error for each, in order; throws if every shard refused the whole call. */
  async #offerPlaced(placed: readonly Placed[], wait: Wait | undefined): Promise<(Ticket | RedelayedError)[]> {
    const byShard = new Map<number, number[]>()
    placed.forEach(({ shard }, index) => {
      const indexes = byShard.get(shard)
      if (indexes === undefined) byShard.set(shard, [index])
      else indexes.push(index)
    })
    const results = new Array<Ticket | RedelayedError>(placed.length)
    const refusals: RedelayedError[] = []
    const offerTo = async (shard: number, indexes: readonly number[]): Promise<void> => {
      const pending = indexes.flatMap((index) => placed[index] ?? [])
      try {
        const settled = await this.#at(shard).offerAllEncoded(pending, wait)
        indexes.forEach((index, position) => (results[index] = ofShard(shard, settled[position])))
      } catch (thrown) {
        const error = refusalOf(thrown)
        refusals.push(error)
        for (const index of indexes) results[index] = copyOf(error)
      }
    }
    await Promise.all(Array.from(byShard, ([shard, indexes]) => offerTo(shard, indexes)))
    const [refusal] = refusals
    if (refusal !== undefined && refusals.length === byShard.size) throw refusal
    return results
  }

  #place(key: string | undefined): number {
    if (key !== undefined) return shardOfKey(key, this.shardCount)
    this.#turn = (this.#turn + 1) % this.shardCount
    return this.#turn
  }

  #find(ticket: Ticket): { delayed: DelayedQueue<T>; inner: Ticket; shard: number } {
    this.handle.assertUsable()
    const { shard, ticket: inner } = splitTicket(ticket)
    return { delayed: this.#at(shard), inner, shard }
  }

  #at(shard: number): DelayedQueue<T> {
    const known = this.#delayed[shard] ?? this.#others.get(shard)
    if (known !== undefined) return known
    const identity = shardIdentity(this.handle.context, this.#identity, shard)
    const other = new DelayedQueue(this.handle.context, new Queue(this.handle.context, identity), {
      layout: this.layout,
      deliver: false,
    })
    this.#others.set(shard, other)
    return other
  }

  /** Runs on all shards concurrently; rejects with a failure after all have ended. */
  async #each<R>(action: (delayed: DelayedQueue<T>) => Promise<R>): Promise<R[]> {
    this.handle.assertUsable()
    const settled = await Promise.allSettled(this.#delayed.map(action))
    return settled.map((result) => {
      if (result.status === 'rejected') throw toError(result.reason)
      return result.value
    })
  }
}

function shardIdentity<T>(context: QueueContext, identity: QueueIdentity<T>, shard: number): QueueIdentity<T> {
  const name = context.shardNames.of(identity.name, shard)
  return { name, keys: context.keysOf(name), codec: identity.codec }
}

function parseOptions(options: ShardedOfferOptions | undefined): { wait?: Wait | undefined; key?: string | undefined } {
  if (options === undefined) return {}
  const wait = waitOf(options, ['durability', 'key'])
  return { wait, key: options.key === undefined ? undefined : nonEmptyString('key', options.key) }
}

function ofShard(shard: number, result: Ticket | RedelayedError | undefined): Ticket | RedelayedError {
  if (typeof result === 'string') return joinTicket(shard, result)
  return withShard(shard, result ?? new InternalError('sharded-offers', 'there is no result')) as RedelayedError
}

/** Converts the ticket of an error to a ticket of the sharded queue. */
function withShard(shard: number, error: unknown): unknown {
  if (!(error instanceof DurabilityError)) return error
  return Object.assign(copyOf(error), { ticket: joinTicket(shard, error.ticket) })
}

function refusalOf(thrown: unknown): RedelayedError {
  if (thrown instanceof RedelayedError) return thrown
  return new InternalError('sharded-offers', toError(thrown).message, { cause: thrown })
}

function sumOf(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0)
}
