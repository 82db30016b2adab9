import { randomBytes } from 'node:crypto'
import type { Codec } from './codecs/codec.js'
import { EntryIds } from './codecs/entry-id.js'
import { codecs } from './codecs/index.js'
import { BlockingPool } from './redis/blocking/blocking-pool.js'
import { Commands } from './redis/commands.js'
import { DurableCommands } from './redis/durable/durable-commands.js'
import { CONNECT_OPTIONS, resolveTarget, type ConnectOptions } from './redis/options.js'
import { SEARCH_MS, whenLate, whenUnreachable } from './redis/connections/shutdown-deadline.js'
import { Subscriber } from './redis/subscriber.js'
import { createTopology } from './redis/connections/connect.js'
import type { Topology } from './redis/topology/topology.js'
import { InvalidArgumentError, ShutdownError, inWords } from './errors.js'
import { durationMs, type Duration } from './duration.js'
import { EventHub, type EventName, type Listener } from './events.js'
import type { Instrumentation } from './instrumentation.js'
import { identityMapper, queueKeys, reliableKeys, type NameMapper, type QueueKeys } from './keys.js'
import { boolean, nonEmptyString, onlyKnown, resolveSettings, type Tuning } from './options.js'
import { BlockingDeque } from './queues/blocking-deque.js'
import { BlockingQueue } from './queues/blocking-queue.js'
import type { QueueContext, QueueIdentity } from './queues/context.js'
import type { DelayedQueueOptions } from './queues/delayed-options.js'
import { DelayedQueue } from './queues/delayed-queue.js'
import { Deque } from './queues/deque.js'
import { assertQueue, type ListQueue } from './queues/list-queue.js'
import { namesOperations } from './queues/operations.js'
import { Queue } from './queues/queue.js'
import type { WheelQueue } from './queues/wheel-queue.js'
import { ShardNames } from './sharding/shard-names.js'
import { SHARDED_OPTIONS, type ShardedDelayedQueueOptions } from './sharding/sharded-options.js'
import { ShardedDelayedQueue } from './sharding/sharded-delayed-queue.js'
import { SHARDED_RELIABLE_OPTIONS, type ShardedReliableQueueOptions } from './sharding/sharded-reliable-options.js'
import { shardedReliableQueue, type ShardedReliableQueue } from './sharding/sharded-reliable-queue.js'
import type { EndWaits } from './reliable/end-waits.js'
import type { Poller } from './reliable/poller.js'
import { QueueRegistry } from './scheduler/queue-registry.js'
import { identify, type ReliableContext } from './reliable/context.js'
import { ReliableQueue } from './reliable/reliable-queue.js'
import type { Handler, Handlers, HandlersOf } from './workers/handlers.js'
import type { PayloadOf, WorkerQueues } from './workers/sources.js'
import { Worker } from './workers/worker.js'
import type { WorkerOptions } from './workers/worker-options.js'
import { DURABLE_SCRIPTS } from './store/durable-scripts.js'
import { ListStore } from './store/list-store.js'
import { systemClock } from './timing/clock.js'
import { FineWaits } from './timing/fine-waits.js'
import { TransferRegistry } from './scheduler/transfer-registry.js'

/** Everything `createClient` takes; without any option it connects to `redis://127.0.0.1:6379`. */
export interface ClientOptions extends ConnectOptions, Tuning {
  /** The codec of queues without a codec of their own. Default `codecs.msgpack()`. */
  readonly codec?: Codec | undefined
  /** Translates queue names to the names used in Redis, as Redisson's `nameMapper`. Default: the names as they are. */
  readonly nameMapper?: NameMapper | undefined
  /**
   * Whether errors, handler failures and other events without a listener are reported once as a process warning. See
   * docs/observability.md. Default true.
   */
  readonly warnings?: boolean | undefined
  /** Hooks around adding and handling messages of reliable queues; see docs/observability.md. */
  readonly instrumentation?: Instrumentation | undefined
}

export interface PingOptions {
  /** How long to wait for the answer. 1 to 600,000; default 5,000. */
  readonly timeout?: Duration | undefined
}

const PING_TIMEOUT_MS = 5_000

export interface QueueOptions<T> {
  /** Turns values into bytes and back. All processes that use the queue must use the same; default: the client's. */
  readonly codec?: Codec<T> | undefined
}

export interface BlockingQueueOptions<T> extends QueueOptions<T> {
  /** As the client's option of the same name, for this queue object. Default: the client's. */
  readonly consumersDeliver?: boolean | undefined
}

export const TUNING = [
  'clock',
  'sweepInterval',
  'pingInterval',
  'connectTimeout',
  'commandTimeout',
  'blockingConnections',
  'entryFormat',
  'fineWaits',
  'consumersDeliver',
  'maxPayloadBytes',
] as const satisfies readonly (keyof Tuning)[]

/** The length of the random name by which a client recognizes its own leases and messages, in bytes. */
const CLIENT_BYTES = 6
/** A command whose reply is on its way gets this many `commandTimeout`s during a shutdown. */
const LATE_TIMEOUTS = 2

/** A connection to one Redis, and the queues on it. Nothing is opened before the first call that needs it. */
export class RedelayedClient {
  readonly #hub: EventHub
  readonly #codec: Codec
  readonly #mapper: NameMapper
  readonly #topology: Topology
  readonly #commands: Commands
  readonly #durable: DurableCommands
  readonly #subscriber: Subscriber
  readonly #blocking: BlockingPool
  readonly #transfers: TransferRegistry
  readonly #context: QueueContext
  readonly #polls: QueueRegistry<Poller>
  readonly #endWaits: QueueRegistry<EndWaits>
  readonly #reliable: ReliableContext
  #shutdown: Promise<void> | undefined

  static {
    namesOperations(this)
  }

  /** @internal use `createClient` */
  constructor(options: ClientOptions, localTime?: () => number) {
    onlyKnown('options', options, [...CONNECT_OPTIONS, ...TUNING, 'codec', 'nameMapper', 'instrumentation', 'warnings'])
    this.#hub = new EventHub(boolean('warnings', options.warnings ?? true))
    const emit = this.#hub.emit
    const settings = resolveSettings(options, localTime)
    const client = randomBytes(CLIENT_BYTES).toString('base64url')
    this.#codec = options.codec === undefined ? codecs.msgpack() : assertCodec(options.codec)
    this.#mapper = options.nameMapper === undefined ? identityMapper : assertMapper(options.nameMapper)
    this.#topology = createTopology(resolveTarget(options), settings, emit, (isStale) => {
      for (const part of [this.#subscriber, this.#blocking, this.#durable]) part.leave(isStale)
    })
    this.#commands = new Commands(this.#topology, settings)
    this.#durable = new DurableCommands({ topology: this.#topology, settings, emit, scripts: DURABLE_SCRIPTS })
    this.#subscriber = new Subscriber(this.#topology, settings, emit)
    this.#blocking = new BlockingPool({
      topology: this.#topology,
      settings,
      sender: this.#commands,
      drain: (key, end, count) => new ListStore(this.#commands, { destination: key }).drainPage(end, count),
      emit,
    })
    const fineWaits = settings.fineWaits ? new FineWaits(systemClock) : undefined
    this.#transfers = new TransferRegistry({
      sender: this.#commands,
      channels: this.#subscriber,
      settings,
      client,
      emit,
      blocking: this.#blocking,
      fineWaits,
    })
    this.#context = {
      fineWaits,
      commands: this.#commands,
      durable: this.#durable,
      blocking: this.#blocking,
      transfers: this.#transfers,
      hub: this.#hub,
      settings,
      ids: new EntryIds(),
      buffers: new Set(),
      keysOf: (name) => this.#keysOf(name),
      shardNames: new ShardNames((name) => this.#keysOf(name).destination),
    }
    this.#polls = new QueueRegistry({ script: 'poll', channels: this.#subscriber, settings, emit })
    this.#endWaits = new QueueRegistry({ script: 'wait', channels: this.#subscriber, settings, emit })
    this.#reliable = {
      queues: this.#context,
      polls: this.#polls,
      endWaits: this.#endWaits,
      instrumentation: options.instrumentation,
      client,
      keysOf: (name) => reliableKeys(this.#rawName(name)),
    }
  }

  /**
   * Redisson's `RQueue`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the name is empty, or an option is unknown or wrong
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @example
   * ```ts
   * import { codecs } from 'redelayed'
   *
   * const names = client.getQueue('names', { codec: codecs.string() })
   * await names.offer('ada')
   * ```
   */
  getQueue<T = unknown>(name: string, options: QueueOptions<T> = {}): Queue<NoInfer<T>> {
    onlyKnown('options', options, ['codec'])
    return new Queue(this.#context, this.#identify(name, options))
  }

  /**
   * Redisson's `RBlockingQueue`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the name is empty, or an option is unknown or wrong
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @example
   * ```ts
   * const orders = client.getBlockingQueue<Order>('orders')
   * const next = await orders.take()
   * ```
   */
  getBlockingQueue<T = unknown>(name: string, options: BlockingQueueOptions<T> = {}): BlockingQueue<NoInfer<T>> {
    onlyKnown('options', options, ['codec', 'consumersDeliver'])
    return new BlockingQueue(this.#context, this.#identify(name, options), options)
  }

  /**
   * Redisson's `RDeque`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the name is empty, or an option is unknown or wrong
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @example
   * ```ts
   * const orders = client.getDeque<Order>('orders')
   * const newest = await orders.pollLast()
   * ```
   */
  getDeque<T = unknown>(name: string, options: QueueOptions<T> = {}): Deque<NoInfer<T>> {
    onlyKnown('options', options, ['codec'])
    return new Deque(this.#context, this.#identify(name, options))
  }

  /**
   * Redisson's `RBlockingDeque`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the name is empty, or an option is unknown or wrong
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @example
   * ```ts
   * const orders = client.getBlockingDeque<Order>('orders')
   * const newest = await orders.takeLast()
   * ```
   */
  getBlockingDeque<T = unknown>(name: string, options: BlockingQueueOptions<T> = {}): BlockingDeque<NoInfer<T>> {
    onlyKnown('options', options, ['codec', 'consumersDeliver'])
    return new BlockingDeque(this.#context, this.#identify(name, options), options)
  }

  /**
   * Redisson's `RDelayedQueue` for a destination of this client; it encodes with the destination's codec. From now on this client delivers
   * the queue's due messages, until every object returned for the queue is destroyed. With `layout: 'wheel'` the type of the object is
   * `WheelQueue`, which has only the methods that work there.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the destination is not a queue of this client, or an option is unknown or wrong
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @example
   * ```ts
   * const delayed = client.getDelayedQueue(client.getBlockingQueue<Order>('orders'))
   * await delayed.offer(order, 5_000)
   * ```
   */
  getDelayedQueue<T>(
    destination: ListQueue<T>,
    options: DelayedQueueOptions & { readonly layout: 'wheel' },
  ): WheelQueue<T>
  getDelayedQueue<T>(destination: ListQueue<T>, options?: DelayedQueueOptions): DelayedQueue<T>
  getDelayedQueue<T>(destination: ListQueue<T>, options: DelayedQueueOptions = {}): DelayedQueue<T> {
    this.#assertOpen()
    assertQueue(destination)
    if (destination.list.handle.context !== this.#context) {
      throw new InvalidArgumentError('destination', 'a queue of this client', inWords('a queue of another client'))
    }
    return new DelayedQueue(this.#context, destination, options)
  }

  /**
   * One delayed queue made of several, whose keys are in different slots, so that all masters of a cluster have a part of it. Its
   * methods act on the whole; see docs/sharded-queue.md.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the name is empty, or an option is unknown or wrong
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @example
   * ```ts
   * const orders = client.getShardedDelayedQueue<Order>('orders', { shards: 12 })
   * await orders.offer(order, 5, 'seconds')
   * ```
   */
  getShardedDelayedQueue<T = unknown>(
    name: string,
    options: ShardedDelayedQueueOptions<T>,
  ): ShardedDelayedQueue<NoInfer<T>> {
    onlyKnown('options', options, SHARDED_OPTIONS)
    return new ShardedDelayedQueue(this.#context, this.#identify(name, options), options)
  }

  /**
   * A queue whose messages stay until they are acknowledged, with delays, priorities, retries and dead letters; after Redisson
   * PRO's `RReliableQueue`. Its keys are this package's own: Java does not see it.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the name is empty, or an option is unknown or wrong
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @example
   * ```ts
   * const mails = client.getReliableQueue<Mail>('mails')
   * await mails.add({ to: 'ada@example.org' }, { delay: 60_000 })
   * ```
   * With types for its tasks, so that a wrong name or payload does not compile:
   * ```ts
   * import type { Tasks } from 'redelayed'
   *
   * const tasks = client.getReliableQueue<Tasks<{ welcome: Mail; invoice: Order }>>('tasks')
   * await tasks.addTask('welcome', { to: 'ada@example.org' })
   * ```
   */
  getReliableQueue<T = unknown>(name: string, options: QueueOptions<T> = {}): ReliableQueue<NoInfer<T>> {
    onlyKnown('options', options, ['codec'])
    this.#assertOpen()
    const codec = this.#codecOf(options)
    return new ReliableQueue<NoInfer<T>>(this.#reliable, identify(name, this.#rawName(name), codec))
  }

  /**
   * One reliable queue made of several, whose keys are in different slots, so that all masters of a cluster have a part of it. A message is
   * in the shard of its id; see docs/sharded-reliable-queue.md.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: the name is empty or has `{` or `}`, or an option is unknown or wrong
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const worker = client.createWorker(mails, (mail) => console.log(mail.to))
   * ```
   */
  getShardedReliableQueue<T = unknown>(
    name: string,
    options: ShardedReliableQueueOptions<T>,
  ): ShardedReliableQueue<NoInfer<T>> {
    onlyKnown('options', options, SHARDED_RELIABLE_OPTIONS)
    this.#assertOpen()
    const codec: Codec<NoInfer<T>> = this.#codecOf(options)
    const identifyShard = (shard: string) => identify(shard, this.#rawName(shard), codec)
    return shardedReliableQueue(this.#reliable, { name: nonEmptyString('name', name), codec }, options, identifyShard)
  }

  /**
   * Gives the messages of reliable queues to a handler, or to the handlers of their tasks by name, until it is closed or the client is
   * shut down. See docs/workers.md.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: no queue or a queue of another client, a handler that is not a function, or an
   *   option that is unknown or wrong
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @example
   * ```ts
   * const worker = client.createWorker(mails, (mail) => console.log(mail.to), { concurrency: 10 })
   * worker.on('settled', ({ id, outcome }) => console.log(id, outcome))
   * ```
   */
  createWorker<const Q extends WorkerQueues>(
    queues: Q,
    handlers: Handler<PayloadOf<Q>> | HandlersOf<PayloadOf<Q>>,
    options: WorkerOptions = {},
  ): Worker {
    this.#assertOpen()
    return new Worker(this.#reliable, queues, handlers as Handler | Handlers, options)
  }

  /**
   * Calls a listener at each event of a name. An `error` without a listener becomes a process warning.
   *
   * @throws TypeError: the listener is not a function
   * @example
   * ```ts
   * client.on('error', (error) => console.error(error.code, error.message))
   * ```
   */
  on<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#hub.client.on(name, listener)
    return this
  }

  /**
   * As `on`, for the next event only.
   *
   * @throws TypeError: the listener is not a function
   * @example
   * ```ts
   * client.once('subscribed', ({ queue }) => console.log(`${queue} is being delivered`))
   * ```
   */
  once<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#hub.client.once(name, listener)
    return this
  }

  /**
   * Ends what `on` or `once` began; without effect for a listener that is not there.
   *
   * @throws TypeError: the listener is not a function
   * @example
   * ```ts
   * const log = (error: Error) => console.error(error.message)
   * client.on('error', log)
   * client.off('error', log)
   * ```
   */
  off<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#hub.client.off(name, listener)
    return this
  }

  /**
   * Asks Redis whether it answers, for a health check; resolves with the milliseconds that the answer took. It proves that there is a
   * connection, that the password is right and the data is loaded: in a cluster at every master, with Sentinel at the master. It does not
   * prove that the server accepts writes.
   *
   * @throws ConnectionError `ERR_CONNECTION`: no answer within `timeout` (default 5 seconds, at most what a call may take)
   * @throws AuthError `ERR_AUTH`: the password is missing or wrong, or the user may not call `PING`
   * @throws CommandError `ERR_COMMAND`: the server refuses, as while it loads its data
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: `timeout` is not a duration
   *
   * @example
   * ```ts
   * const ms = await client.ping({ timeout: '2s' })
   * console.log(`Redis answered after ${ms.toFixed(1)} ms`)
   * ```
   */
  async ping(options: PingOptions = {}): Promise<number> {
    onlyKnown('options', options, ['timeout'])
    const timeoutMs = durationMs('timeout', options.timeout ?? PING_TIMEOUT_MS, 1, 600_000)
    this.#assertOpen()
    const since = performance.now()
    await this.#commands.ping(timeoutMs)
    return performance.now() - since
  }

  /**
   * Lets calls that are under way finish, ends waits with a `ShutdownError`, stops all timers and closes the connections
   * this client opened. May be called more than once.
   *
   * @throws nothing
   *
   * @example
   * ```ts
   * process.once('SIGTERM', () => void client.shutdown())
   * ```
   */
  shutdown(): Promise<void> {
    this.#shutdown ??= this.#close()
    return this.#shutdown
  }

  /**
   * The same as `shutdown`, at the end of a block.
   *
   * @throws as `shutdown`
   *
   * @example
   * ```ts
   * import { createClient } from 'redelayed'
   *
   * await using client = createClient({ url: 'redis://127.0.0.1:6379' })
   * await client.getQueue<string>('mails').offer('to ada')
   * ```
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown()
  }

  async #close(): Promise<void> {
    this.#commands.beginShutdown()
    // Without a server there is nothing to wait for: closing first ends the calls that wait for a connection. Blocked takes and
    // elements that have to be put back need the command connection, even if it was never opened.
    const buffers = [...this.#context.buffers]
    const needed = this.#blocking.blocked || buffers.some((buffer) => buffer.holding)
    if (!this.#topology.connected && this.#topology.closesAtOnce && !needed) await this.#topology.close()
    const giveUp = (): void => void this.#topology.close().then(() => this.#commands.giveUp())
    const stopWatching = whenUnreachable(this.#topology, () => this.#searchMs(), giveUp)
    const stopTiming = whenLate(this.#topology, LATE_TIMEOUTS * this.#context.settings.commandTimeout, giveUp)
    try {
      const putBack = buffers.map((buffer) => buffer.close())
      await Promise.all([this.#transfers.close(), this.#polls.close(), this.#endWaits.close()])
      await this.#blocking.close()
      // the buffers filled since: waits could begin as long as the blocking connections were open
      await Promise.all([...putBack, ...[...this.#context.buffers].map((buffer) => buffer.close())])
      await this.#subscriber.close()
      await Promise.all([this.#commands.drain(), this.#durable.close()])
    } finally {
      stopWatching()
      stopTiming()
    }
    await this.#topology.close()
  }

  /** How long a shutdown searches for a server. */
  #searchMs(): number {
    if (this.#blocking.blocked) return Infinity // until the overdue reply
    const holding = [...this.#context.buffers].some((buffer) => buffer.holding)
    return holding ? this.#context.settings.connectTimeout : SEARCH_MS
  }

  #identify<T>(name: string, options: QueueOptions<T>): QueueIdentity<T> {
    this.#assertOpen()
    return { name, keys: this.#keysOf(name), codec: this.#codecOf(options) }
  }

  #codecOf<T>({ codec }: QueueOptions<T>): Codec<T> {
    return codec === undefined ? (this.#codec as Codec<T>) : assertCodec(codec)
  }

  #keysOf(name: string): QueueKeys {
    return queueKeys(this.#rawName(name))
  }

  #rawName(name: string): string {
    return nonEmptyString('the name that nameMapper returned', this.#mapper.map(nonEmptyString('name', name)))
  }

  #assertOpen(): void {
    if (this.#shutdown !== undefined) throw new ShutdownError('the client was shut down')
  }
}

/**
 * Makes a client. It connects when it is first used, and reconnects by itself.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option is unknown or wrong, or the ioredis client given has a `keyPrefix`
 * @example
 * ```ts
 * import { createClient } from 'redelayed'
 *
 * const client = createClient({ url: 'redis://127.0.0.1:6379' })
 * const orders = client.getBlockingQueue<Order>('orders')
 * await client.getDelayedQueue(orders).offer(order, 5_000)
 * ```
 */
export function createClient(options: ClientOptions = {}): RedelayedClient {
  return new RedelayedClient(options)
}

function assertCodec<T>(codec: Codec<T>): Codec<T> {
  const fits = typeof codec === 'object' && codec !== null && typeof codec.name === 'string'
  if (fits && typeof codec.encode === 'function' && typeof codec.decode === 'function') return codec
  throw new InvalidArgumentError('codec', 'an object with name, encode and decode', codec)
}

function assertMapper(mapper: NameMapper): NameMapper {
  if (typeof mapper === 'object' && mapper !== null && typeof mapper.map === 'function') return mapper
  throw new InvalidArgumentError('nameMapper', 'an object with map and unmap', mapper)
}
