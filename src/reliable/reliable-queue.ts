import type { Codec } from '../codecs/codec.js'
import type { RedelayedError } from '../errors.js'
import type { EventName, Listener } from '../events.js'
import { deadLettersOf } from '../keys.js'
import { integer, nonEmptyString, oneOf, onlyKnown } from '../options.js'
import type { QueueContext } from '../queues/context.js'
import { QueueHandle } from '../queues/queue-handle.js'
import { QueueListeners } from '../queues/queue-listeners.js'
import { ReliableChangeStore } from '../store/reliable-change-store.js'
import { ReliableGroupStore } from '../store/reliable-group-store.js'
import { ReliableStore } from '../store/reliable-store.js'
import { Acknowledger, giveBackOf } from './acknowledger.js'
import type { AddItem, AddManyOptions, AddOptions, How, PendingMessage } from './add-options.js'
import { AddSender } from './add-sender.js'
import { Adder, type Added } from './adder.js'
import { startAllEvents } from './change-stream/all-events.js'
import type { ChangeBatch, ChangePage, ChangePosition, ChangeStatus } from './change-stream/change.js'
import { ChangeStream, type ChangesOptions, type ReadChangesOptions } from './change-stream/change-stream.js'
import { Changes, type MoveMessages } from './changes.js'
import { Claims, type PollManyOptions, type PollOptions } from './claims.js'
import { CONFIG_NAMES, configArgs, readConfig, type ReliableQueueConfig, type StoredQueueConfig } from './config.js'
import { Completed, type CompletedMessage, type WaitOptions } from './completed.js'
import { Contents, type ListMessages, type MessageInfo, type ReliableQueueCounts } from './contents.js'
import { identify, type ReliableContext, type ReliableIdentity } from './context.js'
import { Groups, type GroupCounts, type QueueTotals } from './groups.js'
import type { NegativeOptions, ReliableMessage } from './message.js'
import { MessageBatch } from './message-batch.js'
import type { ProgressOptions } from './progress.js'
import {
  RawMessages,
  type RestoreItem,
  type RestoreOptions,
  type RestoreOutcome,
  type StoredRawMessage,
} from './raw-messages.js'
import { TASK_HEADER } from './record.js'
import { Repeats } from './repeats/repeats.js'
import { Schedules, type ScheduleInfo } from './repeats/schedules.js'
import type { ScheduleArguments, TaskArguments } from './tasks.js'
import type { Duration } from '../duration.js'

/**
 * A queue whose messages stay until they are acknowledged: at least once. A message becomes visible after its delay, is handed
 * to one consumer for its visibility, and comes back when that ends without an acknowledgement. The vocabulary is that of
 * Redisson's RReliableQueue; the keys are this package's own.
 *
 * Each method hands over to one part of the queue, and puts the queue's name on its errors.
 */
export class ReliableQueue<T = unknown> {
  /** The queue's name as the application knows it. */
  readonly name: string
  readonly codec: Codec<T>
  /** @internal */
  readonly context: QueueContext
  /** @internal */
  readonly reliable: ReliableContext
  /** @internal */
  readonly identity: ReliableIdentity<T>
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore
  readonly #adder: Adder<T>
  readonly #addSender: AddSender<T>
  readonly #claims: Claims<T>
  readonly #acknowledger: Acknowledger<T>
  readonly #contents: Contents<T>
  readonly #changes: Changes<T>
  readonly #raw: RawMessages<T>
  readonly #schedules: Schedules<T>
  readonly #changeStream: ChangeStream
  readonly #groups: Groups
  readonly #listeners: QueueListeners
  readonly #completed: Completed<T>

  /** @internal */
  constructor(reliable: ReliableContext, identity: ReliableIdentity<T>) {
    const { queues, polls, endWaits, instrumentation, keysOf, client } = reliable
    this.name = identity.name
    this.codec = identity.codec
    this.context = queues
    this.reliable = reliable
    this.identity = identity
    const handle = new QueueHandle(queues, identity)
    const store = new ReliableStore(queues.commands, queues.settings, identity, client)
    const repeats = new Repeats(handle, store, polls)
    this.#handle = handle
    this.#store = store
    this.#addSender = new AddSender(handle, store)
    this.#adder = new Adder(handle, this.#addSender, instrumentation)
    this.#acknowledger = new Acknowledger(handle, store)
    this.#claims = new Claims(handle, store, { acknowledger: this.#acknowledger, repeats, polls })
    this.#contents = new Contents(handle, store)
    this.#completed = new Completed(handle, store, endWaits)
    this.#changes = new Changes(handle, store, keysOf)
    this.#raw = new RawMessages(handle, store)
    this.#schedules = new Schedules(handle, store, repeats)
    const changeStore = new ReliableChangeStore(queues.commands, identity.keys)
    this.#changeStream = new ChangeStream(handle, changeStore)
    this.#groups = new Groups(new ReliableGroupStore(queues.commands, queues.settings, identity.keys), store)
    this.#listeners = new QueueListeners(queues.hub, [identity.name])
  }

  /**
   * Adds a message. The calls of one turn of the event loop are sent together at its end. Resolves when Redis has it, or, with `durability`, when those have it that it names. Where connections break, a
   * message that is visible at once can be handled before the repetition of its `add` comes, which adds it once more; `deduplicate` by
   * an id of your own prevents that.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing was sent
   * @throws QueueFullError `ERR_QUEUE_FULL`, OperationDisabledError `ERR_OPERATION_DISABLED`, BatchClosedError `ERR_BATCH_CLOSED`: it was not added
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the message may have been added
   * @throws DurabilityError `ERR_DURABILITY`: it was accepted, but is not as durable as asked in time; `added` is what became of it
   * @throws UnsupportedServerError `ERR_UNSUPPORTED_SERVER`: the server does not have what `durability` needs: nothing was sent
   *
   * @example
   * ```ts
   * const { id, outcome } = await mails.add({ to: 'ada' }, { delay: 5_000, priority: 9 })
   * console.log(id, outcome) // 'added'
   * ```
   */
  add(payload: T, options: AddOptions = {}): Promise<Added> {
    return this.#handle.attribute(this.#adder.add(payload, options))
  }

  /**
   * Adds many messages in few round trips; resolves with what became of each, in order. All are checked and encoded before
   * anything is sent. They are independent of each other: some may be added and others not.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing was sent
   * @throws AddManyError `ERR_ADD_MANY`: names those that were not added, and has the results of the others; with `durability` also those that
   *   were accepted but are not as durable as asked, by a DurabilityError `ERR_DURABILITY` that says what became of them
   *
   * @example
   * ```ts
   * import { AddManyError } from 'redelayed'
   *
   * try {
   *   await mails.addMany([{ payload: { to: 'ada' } }, { payload: { to: 'bob' }, delay: 60_000 }])
   * } catch (error) {
   *   if (!(error instanceof AddManyError)) throw error
   *   for (const { index, error: cause } of error.failures) console.error(index, cause.code)
   * }
   * ```
   */
  addMany(items: Iterable<AddItem<T>>, options: AddManyOptions = {}): Promise<Added[]> {
    return this.#handle.attribute(this.#adder.addMany(items, options))
  }

  /** @internal Adds what was checked and encoded before; one result or error each. */
  async addPrepared(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    const results = await this.#handle.attribute(this.#addSender.send(pending, how))
    return results.map((result) => this.#handle.attributed(result) as Added | RedelayedError)
  }

  /**
   * Adds a message for the worker's handler of that name: the handler gets `payload`. With `Tasks` the names and payloads are checked by
   * the compiler.
   *
   * @throws as `add`
   *
   * @example
   * ```ts
   * client.createWorker(mails, { welcome: ({ to }) => console.log('welcome', to) })
   * await mails.addTask('welcome', { to: 'ada' })
   * ```
   */
  async addTask(...[task, payload, options = {}]: TaskArguments<T>): Promise<Added> {
    const headers = this.#handle.checked(() => ({ ...options.headers, [TASK_HEADER]: nonEmptyString('task', task) }))
    return this.add(payload as T, { ...options, headers })
  }

  /**
   * Takes one message for its visibility; `null` when there is none, or none came in time.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: what the lost reply held is redelivered when its visibility ends
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down while the call waited
   * @throws the reason of `signal`
   *
   * @example
   * ```ts
   * const message = await mails.poll({ timeout: 10_000, visibilityTimeout: 60_000 })
   * if (message !== null) await message.acknowledge()
   * ```
   */
  poll(options: PollOptions = {}): Promise<ReliableMessage<T> | null> {
    return this.#handle.attribute(this.#claims.one(options))
  }

  /**
   * Takes up to `count` messages for their visibility: all that are there, or, with a timeout, as soon as there is any.
   *
   * @throws as `poll`
   *
   * @example
   * ```ts
   * const messages = await mails.pollMany({ count: 100, timeout: Infinity })
   * await mails.acknowledge(...messages)
   * ```
   */
  pollMany(options: PollManyOptions): Promise<ReliableMessage<T>[]> {
    return this.#handle.attribute(this.#claims.many(options))
  }

  /** @internal When Redis last answered a poll of this client's, by the monotonic clock; `-Infinity` for never. */
  get polledAt(): number {
    return this.#claims.answeredAt
  }

  /** @internal As `pollMany`, for a worker; `beforehand`: some of them are not handled at once. */
  pollFor(options: PollManyOptions, beforehand: boolean): Promise<ReliableMessage<T>[]> {
    return this.#handle.attribute(this.#claims.claim(options, beforehand))
  }

  /**
   * Removes messages: they were handled. One answer each: false for one that was not yours any more, and is left as it is. Instead of a message
   * you can give its `receipt`, also one that another process has polled.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: one of them was not polled from this queue, or is no receipt; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the messages may have been removed
   *
   * @example
   * ```ts
   * const messages = await mails.pollMany({ count: 10 })
   * const answers = await mails.acknowledge(...messages)
   * console.log(answers.filter((isDone) => !isDone).length, 'came too late')
   * ```
   */
  async acknowledge(...messages: readonly (ReliableMessage<T> | string)[]): Promise<boolean[]> {
    const claims = this.#handle.checked(() => this.#acknowledger.claimsOf(messages))
    return this.#handle.attribute(this.#acknowledger.acknowledgeMany(claims))
  }

  /** @internal As `acknowledge`; a result for each message, `null` for none. */
  async complete(messages: readonly ReliableMessage<T>[], results: readonly (Buffer | null)[]): Promise<boolean[]> {
    const claims = this.#handle.checked(() => this.#acknowledger.claimsOf(messages))
    return this.#handle.attribute(this.#acknowledger.acknowledgeMany(claims, results))
  }

  /** @internal The bytes of what a handler returned; `null` for none. */
  resultOf(result: unknown): Buffer | null {
    return this.#acknowledger.resultOf(result)
  }

  /**
   * Waits until a message is completed, whichever process handles it; resolves with what its consumer gave as the result, `undefined` for none. The queue
   * has to keep completed messages (`keepCompleted` of `setConfig`). A message that is completed already resolves at once. The call
   * asks Redis again when the end of the message is published, and with every sweep, so that it never waits for ever for what has ended. `R` is not checked.
   *
   * @throws NotCompletedError `ERR_NOT_COMPLETED`: its `reason` says whether the message is a dead letter, gone, or whether the time was over first
   * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: the queue keeps no completed messages
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws DecodeError `ERR_DECODE`: the result cannot be read
   * @throws ConnectionError `ERR_CONNECTION`: Redis could not be reached; a wait that has begun goes on when Redis is back
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down while the call waited
   * @throws the reason of `signal`
   *
   * @example
   * ```ts
   * await mails.setConfig({ keepCompleted: 10_000, keepCompletedFor: '1h' })
   * client.createWorker(mails, ({ to }) => ({ sentTo: to }), { keepResults: true })
   * const { id } = await mails.add({ to: 'ada' })
   * const result = await mails.waitUntilFinished<{ sentTo: string }>(id, { timeout: '30s' })
   * console.log(result?.sentTo)
   * ```
   */
  waitUntilFinished<R = unknown>(id: string, options: WaitOptions = {}): Promise<R | undefined> {
    return this.#handle.attribute(this.#completed.wait<R>(id, options))
  }

  /**
   * What is kept of a completed message; `null` where nothing is. `R` is not checked.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws DecodeError `ERR_DECODE`: its result cannot be read
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const done = await mails.getCompleted('welcome:ada')
   * if (done !== null) console.log(new Date(done.completedAt), done.attempts, done.result)
   * ```
   */
  getCompleted<R = unknown>(id: string): Promise<CompletedMessage<R> | null> {
    return this.#handle.attribute(this.#completed.get<R>(id))
  }

  /**
   * Walks the completed messages that are kept, the last ones first, in pages of `pageSize` (1 to 1,000; default 100). What is completed meanwhile may come
   * twice or be passed over. `R` is not checked.
   *
   * @throws as `getCompleted`
   *
   * @example
   * ```ts
   * for await (const { id, completedAt } of mails.listCompleted()) console.log(id, new Date(completedAt))
   * ```
   */
  async *listCompleted<R = unknown>(
    options: { readonly pageSize?: number } = {},
  ): AsyncGenerator<CompletedMessage<R>, void> {
    try {
      yield* this.#completed.list<R>(options)
    } catch (error) {
      throw this.#handle.attributed(error)
    }
  }

  /**
   * The messages that were added under this name with the option `batch`: how many are left, what became of the others, and one last message when all of them
   * have ended. Sends nothing.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`
   *
   * @example
   * ```ts
   * await mails.addMany([{ payload: { to: 'ada' } }, { payload: { to: 'bob' } }], { batch: 'import-7' })
   * const batch = mails.batch('import-7')
   * await batch.close({ last: { payload: { to: 'report@example.org' } } }) // added when both were handled
   * const { completed, dead } = await batch.waitUntilFinished({ timeout: '10m' })
   * console.log(completed, 'were sent,', dead, 'were not')
   * ```
   */
  batch(name: string): MessageBatch<T> {
    return new MessageBatch(this.#handle, this.#store, this.reliable.endWaits, name)
  }

  /**
   * Gives messages, or those of receipts, back: they were not handled. One answer each: false for one that was not yours any more, and is left as it is.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the messages may have been given back
   *
   * @example
   * ```ts
   * const messages = await mails.pollMany({ count: 10 })
   * await mails.negativeAcknowledge(messages, { delay: 30_000, countAttempt: false })
   * ```
   */
  async negativeAcknowledge(
    messages: readonly (ReliableMessage<T> | string)[],
    options: NegativeOptions = {},
  ): Promise<boolean[]> {
    const { claims, how } = this.#handle.checked(() => ({
      claims: this.#acknowledger.claimsOf(messages),
      how: giveBackOf(options),
    }))
    return this.#handle.attribute(this.#acknowledger.giveBack(claims, how))
  }

  /**
   * Extends the visibility of messages, or those of receipts: to `visibilityTimeout` milliseconds from now (at least 1; default: what the queue
   * says). One answer each: false for one that was not yours any more.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: the messages may have been extended
   *
   * @example
   * ```ts
   * const messages = await mails.pollMany({ count: 10 })
   * await mails.extend(messages, 60_000)
   * ```
   */
  extend(messages: readonly (ReliableMessage<T> | string)[], visibilityTimeout?: Duration): Promise<boolean[]> {
    return this.extendSome(messages, 0, visibilityTimeout)
  }

  /**
   * Says how far a message is, or that of a receipt; as `message.progress`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: the progress may have been kept
   *
   * @example
   * ```ts
   * const message = await mails.poll()
   * if (message !== null) await mails.progress(message.receipt, 50)
   * ```
   */
  async progress(
    message: ReliableMessage<T> | string,
    value: unknown,
    options: ProgressOptions = {},
  ): Promise<boolean> {
    const [claim] = this.#handle.checked(() => this.#acknowledger.claimsOf([message]))
    return claim === undefined ? false : this.#acknowledger.progress(claim, value, options)
  }

  /** @internal Counts the delivery of a suspect, and decodes it then; false when it was not the caller's any more. */
  async begin(suspect: ReliableMessage<T>, visibilityTimeout: number): Promise<boolean> {
    const [isHeld = false] = await this.extend([suspect], visibilityTimeout)
    if (isHeld) suspect.open(this.#handle.decode(suspect.payload as Buffer))
    return isHeld
  }

  /** @internal As `extend`; the first `unbegun` were prefetched and are not being handled yet. */
  async extendSome(
    messages: readonly (ReliableMessage<T> | string)[],
    unbegun: number,
    visibilityTimeout?: Duration,
  ): Promise<boolean[]> {
    const claims = this.#handle.checked(() => this.#acknowledger.claimsOf(messages))
    return this.#handle.attribute(this.#acknowledger.extendMany(claims, unbegun, visibilityTimeout))
  }

  /**
   * The queue that gets the messages that were rejected, or failed as often as they may.
   *
   * @example
   * ```ts
   * for await (const { id, failures } of mails.deadLetters.listAll()) console.log(id, failures.at(-1)?.reason)
   * ```
   */
  get deadLetters(): ReliableQueue<T> {
    const { rawName, codec } = this.identity
    return new ReliableQueue(this.reliable, identify(deadLettersOf(this.name), deadLettersOf(rawName), codec))
  }

  /**
   * Moves up to `count` (1 to 1,000; default 100) dead letters back, where they begin anew. Resolves with how many.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: some may have been moved
   *
   * @example
   * ```ts
   * while ((await mails.redrive(1_000)) > 0) console.log('some more were moved')
   * ```
   */
  async redrive(count = 100): Promise<number> {
    this.#handle.checked(() => integer('count', count, 1, 1_000))
    const dead = this.deadLetters
    return dead.#handle.attribute(dead.#store.moveTo(this.identity.keys, { count, priority: 0, isRedriven: true }))
  }

  /**
   * Removes a message that no consumer has. False when there is none of this id, or a consumer has it.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the message may have been removed
   *
   * @example
   * ```ts
   * const { id } = await mails.add({ to: 'ada' }, { delay: 60_000 })
   * console.log(await mails.cancel(id)) // true
   * ```
   */
  async cancel(id: string): Promise<boolean> {
    return (await this.#handle.attribute(this.#changes.remove([id], { alsoHeld: false }))) === 1
  }

  /**
   * Removes messages, also those that a consumer has: its acknowledgement will be too late. Resolves with how many.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: some may have been removed
   *
   * @example
   * ```ts
   * console.log(await mails.remove('welcome:ada', 'welcome:bob'))
   * ```
   */
  remove(...ids: readonly string[]): Promise<number> {
    return this.#handle.attribute(this.#changes.remove(ids, { alsoHeld: true }))
  }

  /**
   * Gives a message that no consumer has a new time, after a delay from now or at a `Date` (one that has passed is now), and perhaps a new
   * priority; with `undefined` a priority alone. False when there is none of this id, or a consumer has it.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the message may have been changed
   *
   * @example
   * ```ts
   * await mails.add({ to: 'ada' }, { id: 'welcome:ada', delay: 60_000 })
   * await mails.reschedule('welcome:ada', 0, { priority: 9 }) // at once, before others
   * ```
   */
  reschedule(id: string, when: Duration | Date | undefined, options: { priority?: number } = {}): Promise<boolean> {
    return this.#handle.attribute(this.#changes.reschedule(id, when, options))
  }

  /**
   * Gives a message that no consumer has another payload. False when there is none of this id, or a consumer has it.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: the message may have been changed
   *
   * @example
   * ```ts
   * await mails.add({ to: 'adda' }, { id: 'welcome:ada', delay: 60_000 })
   * await mails.updatePayload('welcome:ada', { to: 'ada' })
   * ```
   */
  updatePayload(id: string, payload: T): Promise<boolean> {
    return this.#handle.attribute(this.#changes.updatePayload(id, payload))
  }

  /**
   * Moves messages that no consumer has to another queue, where they are visible at once and begin anew. Those whose ids are there
   * already stay here. Resolves with how many were moved.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws CrossSlotError `ERR_CROSS_SLOT`: in a cluster, the other queue is in another slot; nothing was moved
   * @throws ChangesBehindError `ERR_CHANGES_BEHIND`: of more than 500 `ids` some may have been moved
   * @throws ConnectionError `ERR_CONNECTION`: some may have been moved
   *
   * @example
   * ```ts
   * console.log(await mails.move({ to: 'mails:later', count: 1_000 }))
   * ```
   */
  move(options: MoveMessages): Promise<number> {
    return this.#handle.attribute(this.#changes.move(options))
  }

  /**
   * Removes all messages, also those that consumers have, and what is known of duplicates. Dead letters,
   * schedules and the configuration stay. Resolves with whether this call removed something; false also when it was repeated after a lost reply.
   *
   * @throws ConnectionError `ERR_CONNECTION`: the messages may have been removed
   *
   * @example
   * ```ts
   * await mails.clear()
   * ```
   */
  clear(): Promise<boolean> {
    return this.#handle.attribute(this.#store.clear())
  }

  /**
   * The stored message of an id, or `null`.
   *
   * @throws DecodeError `ERR_DECODE`: it cannot be read
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const info = await mails.get('welcome:ada')
   * console.log(info?.state, info?.attempts)
   * ```
   */
  async get(id: string): Promise<MessageInfo<T> | null> {
    const [info = null] = await this.getAll([id])
    return info
  }

  /**
   * The messages of some ids in their order, `null` for those that are not there.
   *
   * @throws DecodeError `ERR_DECODE`: one of them cannot be read
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const [ada, bob] = await mails.getAll(['welcome:ada', 'welcome:bob'])
   * console.log(ada?.payload, bob?.payload)
   * ```
   */
  getAll(ids: readonly string[]): Promise<(MessageInfo<T> | null)[]> {
    return this.#handle.attribute(this.#contents.getAll(ids))
  }

  /**
   * Whether a message of this id is there, in flight or not.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * console.log(await mails.contains('welcome:ada'))
   * ```
   */
  async contains(id: string): Promise<boolean> {
    return (await this.containsMany([id])) === 1
  }

  /**
   * How many of some ids are there.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * console.log(await mails.containsMany(['welcome:ada', 'welcome:bob']))
   * ```
   */
  containsMany(ids: readonly string[]): Promise<number> {
    return this.#handle.attribute(this.#contents.containsMany(ids))
  }

  /**
   * Walks the messages without taking them, those of one state or all, in pages of `pageSize` (1 to 1,000): by priority from the highest
   * on, by time within one, those in flight last. `skip` passes over the first so many without reading them. `visibleFrom` and `visibleTo` bound the time at which messages are visible (of dead letters: at which
   * they died), so that a walk can go on where another has ended. While others add and take, messages can be missed or seen twice. One whose payload
   * cannot be read is left out and reported by an `error` event.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for await (const { id, visibleAt } of mails.listAll({ state: 'delayed' })) console.log(id, new Date(visibleAt))
   * ```
   */
  async *listAll(options: ListMessages = {}): AsyncGenerator<MessageInfo<T>, void> {
    try {
      yield* this.#contents.list(options)
    } catch (thrown) {
      throw this.#handle.attributed(thrown)
    }
  }

  /**
   * Puts messages back as they were, such as after Redis has lost its data: with their due times, attempts, headers, failures and the
   * bytes of their payloads. Where an id is there, its message stays. Neither the queue's `maxSize` nor a disabled `add` applies. Resolves
   * with what became of each, in order. With `known` the change stream has `restored` and the ids alone, for readers that have kept the messages themselves.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: some may have been restored; the same call again restores the others, and those that a consumer has handled since
   *
   * @example
   * ```ts
   * const saved = await mails.getAllRaw(['welcome:ada'])
   * const outcomes = await mails.restoreMany(saved.filter((message) => message !== null))
   * console.log(outcomes) // ['present']
   * ```
   */
  restoreMany(messages: Iterable<RestoreItem>, options: RestoreOptions = {}): Promise<RestoreOutcome[]> {
    return this.#handle.attribute(this.#raw.restoreMany(messages, options))
  }

  /**
   * As `getAll`, with everything that `restoreMany` needs: the payload stays as the codec wrote it. One whose meta data cannot be read is `null`, and
   * reported by an `error` event.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const [message] = await mails.getAllRaw(['welcome:ada'])
   * console.log(message?.payload.length, 'bytes, due at', message?.dueAt)
   * ```
   */
  getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    return this.#handle.attribute(this.#raw.getAll(ids))
  }

  /**
   * Walks all messages in pages, as `listAll` does, with everything that `restoreMany` needs. `pageSize` is 1 to 1,000, default 500.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for await (const page of mails.listAllRaw()) console.log(page.length, 'messages')
   * ```
   */
  async *listAllRaw(options: { pageSize?: number } = {}): AsyncGenerator<StoredRawMessage[], void> {
    const pageSize = this.#handle.checked(() => {
      onlyKnown('options', options, ['pageSize'])
      return integer('pageSize', options.pageSize ?? 500, 1, 1_000)
    })
    try {
      yield* this.#raw.pages(pageSize)
    } catch (thrown) {
      throw this.#handle.attributed(thrown)
    }
  }

  /**
   * The clock that decides when something becomes visible, epoch milliseconds: that of Redis, unless the client uses its own.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const inAMinute = new Date((await mails.now()) + 60_000)
   * await mails.add({ to: 'ada' }, { date: inAMinute })
   * ```
   */
  now(): Promise<number> {
    return this.#handle.attribute(this.#store.now())
  }

  /**
   * How many messages there are, by what becomes of them next.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const { visible, dead, oldestMs } = await mails.counts()
   * console.log(visible, dead, oldestMs)
   * ```
   */
  counts(): Promise<ReliableQueueCounts> {
    return this.#handle.attribute(this.#contents.counts())
  }

  /**
   * How many messages there are, those in flight too.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await mails.size())
   * ```
   */
  size(): Promise<number> {
    return this.#handle.attribute(this.#store.size())
  }

  /**
   * Whether there is no message, in flight or not.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * if (await mails.isEmpty()) console.log('nothing is there')
   * ```
   */
  async isEmpty(): Promise<boolean> {
    return (await this.size()) === 0
  }

  /**
   * How many messages are not visible yet.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await mails.countDelayedMessages())
   * ```
   */
  async countDelayedMessages(): Promise<number> {
    return (await this.counts()).delayed
  }

  /**
   * How many messages consumers have.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await mails.countUnacknowledgedMessages())
   * ```
   */
  async countUnacknowledgedMessages(): Promise<number> {
    return (await this.counts()).inFlight
  }

  /**
   * Sets what holds for the queue in all processes. What is not given stays, `null` goes back to the default. After a change of the limits of groups
   * it also looks at each group that has claims or had some lately, page by page: when it resolves, the new limits hold for all of them.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether it may have been changed
   *
   * @example
   * ```ts
   * await mails.setConfig({ visibilityTimeout: 60_000, deliveryLimit: 5, maxSize: null })
   * ```
   */
  async setConfig(config: ReliableQueueConfig): Promise<void> {
    await this.#configure(() => configArgs(config))
  }

  /**
   * As `setConfig`, unless anything is set already. Resolves with whether it was done.
   *
   * @throws as `setConfig`
   *
   * @example
   * ```ts
   * console.log(await mails.setConfigIfAbsent({ visibilityTimeout: 60_000 }))
   * ```
   */
  setConfigIfAbsent(config: ReliableQueueConfig): Promise<boolean> {
    return this.#configure(() => configArgs(config), true)
  }

  /**
   * What is set for the queue in all processes; a setting that has its default is left out.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const { maxSize = Infinity } = await mails.getConfig()
   * console.log(maxSize)
   * ```
   */
  async getConfig(): Promise<StoredQueueConfig> {
    return readConfig(await this.#handle.attribute(this.#store.settings(CONFIG_NAMES)))
  }

  /**
   * From now on adding is refused, or polls get nothing, in all processes, until it is enabled again.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether it may have been changed
   *
   * @example
   * ```ts
   * await mails.disableOperation('poll')
   * await mails.enableOperation('poll')
   * ```
   */
  async disableOperation(operation: 'add' | 'poll'): Promise<void> {
    await this.#configure(() => [pauseOf(operation), '1'])
  }

  /**
   * Ends what `disableOperation` began.
   *
   * @throws as `disableOperation`
   *
   * @example
   * ```ts
   * await mails.enableOperation('add')
   * ```
   */
  async enableOperation(operation: 'add' | 'poll'): Promise<void> {
    await this.#configure(() => [pauseOf(operation), ''])
  }

  /**
   * From now on no consumer gets a message of this group, in any process, until `resumeGroup`; other groups go on. Adding goes on, and consumers
   * keep the messages that they have. Also a group without messages can be paused; `clear` leaves it paused.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether it may have been changed
   *
   * @example
   * ```ts
   * await mails.pauseGroup('tenant-7')
   * console.log(await mails.pausedGroups()) // ['tenant-7']
   * await mails.resumeGroup('tenant-7')
   * ```
   */
  pauseGroup(group: string): Promise<void> {
    return this.#handle.attribute(this.#groups.pause(group))
  }

  /**
   * Ends what `pauseGroup` began: the messages of the group have turns again, and consumers that wait look at once.
   *
   * @throws as `pauseGroup`
   *
   * @example
   * ```ts
   * await mails.resumeGroup('tenant-7')
   * ```
   */
  resumeGroup(group: string): Promise<void> {
    return this.#handle.attribute(this.#groups.resume(group))
  }

  /**
   * The groups that are paused, in the order of their bytes; they are read in pages.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for (const group of await mails.pausedGroups()) await mails.resumeGroup(group)
   * ```
   */
  pausedGroups(): Promise<string[]> {
    return this.#handle.attribute(this.#groups.paused())
  }

  /**
   * How many messages of a group there are, by what becomes of them next, and its limits. O(log N).
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const { visible, inFlight, concurrency } = await mails.countsOfGroup('tenant-7')
   * console.log(visible, 'wait', inFlight, 'of', concurrency ?? Infinity)
   * ```
   */
  countsOfGroup(group: string): Promise<GroupCounts> {
    return this.#handle.attribute(this.#groups.counts(group))
  }

  /**
   * How many visible messages no consumer could get now, because of a pause or a limit, and how many groups and batches there are: what the
   * metrics have. One script looks at up to 500 groups that may have a message, and as many paused ones; what further ones
   * have counts as not held back.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const { heldBack, groups, batches } = await mails.totals()
   * console.log(heldBack.byLimit, 'wait for a limit;', groups.paused, 'groups are paused;', batches.unfinished, 'batches are not finished')
   * ```
   */
  totals(): Promise<QueueTotals> {
    return this.#handle.attribute(this.#groups.totals())
  }

  /**
   * Walks the groups that have messages, or had some lately, and those that are paused, in pages of `pageSize` (1 to 1,000; default 100). What changes
   * meanwhile may come twice or be passed over. O(log N) for each group.
   *
   * @throws as `countsOfGroup`
   *
   * @example
   * ```ts
   * for await (const { group, visible, inFlight, paused } of mails.listGroups()) console.log(group, visible, inFlight, paused)
   * ```
   */
  async *listGroups(options: { readonly pageSize?: number } = {}): AsyncGenerator<GroupCounts, void> {
    try {
      yield* this.#groups.list(options)
    } catch (error) {
      throw this.#handle.attributed(error)
    }
  }

  /**
   * From now on a message is added at each tick, once however many processes call this and run: the same call again changes
   * nothing, unless Redis has lost when the next tick is; another one for the same name takes its place. The message of the next tick is in the queue as a delayed one with the id
   * `<name>@<epoch ms>`; the consumer that polls when its tick has come prepares the following. Resolves with whether anything was
   * changed.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: also for a cron expression or a time zone that cannot be read
   * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: a cron expression without the package `croner`
   * @throws QueueFullError `ERR_QUEUE_FULL`: there is no room for the message of the next tick
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * await mails.upsertSchedule('daily', { to: 'ada' }, { cron: '0 9 * * 1-5', timeZone: 'Europe/Berlin' })
   * ```
   */
  upsertSchedule(name: string, ...[payload, options]: ScheduleArguments<T>): Promise<boolean> {
    return this.#handle.attribute(this.#schedules.upsert(name, payload as T, options))
  }

  /**
   * Ends a schedule; its message is removed unless its tick has come. False when there is none of this name.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * console.log(await mails.removeSchedule('daily'))
   * ```
   */
  removeSchedule(name: string): Promise<boolean> {
    return this.#handle.attribute(this.#schedules.remove(name))
  }

  /**
   * All schedules, by their names; one that cannot be read is left out and reported by an `error` event.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for (const { name, cron, lastPrepared } of await mails.listSchedules()) console.log(name, cron, lastPrepared)
   * ```
   */
  listSchedules(): Promise<ScheduleInfo<T>[]> {
    return this.#handle.attribute(this.#schedules.list())
  }

  /**
   * What happens to the queue's messages through all processes, one batch for each script call. The queue must keep its changes: see
   * `changes` of `setConfig`. Without a group each reader gets all that Redis still has when it comes to read them; readers of a group share
   * them, and acknowledge what they are done with; one at a time that always has the same `consumer` gets them in order. A failure after the
   * beginning is an `error` event, and is retried.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: the queue keeps no changes
   * @throws ChangesLostError `ERR_CHANGES_LOST`: `from` is a position that the stream does not have any more
   * @throws ConnectionError `ERR_CONNECTION`, WrongTypeError `ERR_WRONG_TYPE`: it could not begin
   * @throws ShutdownError `ERR_SHUTDOWN`: the client was shut down
   * @throws the reason of `signal`
   *
   * @example
   * ```ts
   * await mails.setConfig({ changes: { keep: 'groups' } })
   * for await (const { position, at, changes } of mails.changes({ group: 'audit', consumer: 'auditor' })) {
   *   for (const { change, id } of changes) console.log(new Date(at), change, id)
   *   await mails.acknowledgeChanges('audit', position)
   * }
   * ```
   */
  async *changes(options: ChangesOptions = {}): AsyncGenerator<ChangeBatch, void> {
    try {
      yield* this.#changeStream.read(options)
    } catch (thrown) {
      throw this.#handle.attributed(thrown)
    }
  }

  /**
   * Says that a group is done with some entries of the change stream. Where changes are kept for groups, what all groups are done with goes.
   * Resolves with how many the group had not acknowledged before.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: some may have been acknowledged
   *
   * @example
   * ```ts
   * for await (const { position } of mails.changes({ group: 'audit' })) await mails.acknowledgeChanges('audit', position)
   * ```
   */
  acknowledgeChanges(group: string, ...positions: readonly ChangePosition[]): Promise<number> {
    return this.#handle.attribute(this.#changeStream.acknowledge(group, positions))
  }

  /**
   * One page of the change stream, without waiting and without a group, for a reader that keeps its position elsewhere. That the entry `after` is
   * still there and what follows it are read in one step: with the status `'ok'` nothing is missing between them. A page has at most about
   * 4 MiB, or one entry that is larger.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`, WrongTypeError `ERR_WRONG_TYPE`
   *
   * @example
   * ```ts
   * const after = { epoch: 'AbCdEfGhIjKlMnOp', id: '1764000000000-0' } // from your database
   * const { status, batches } = await mails.readChanges({ after, count: 100 })
   * if (status !== 'ok') console.log('Redis has forgotten something:', status)
   * const last = batches.at(-1)?.position
   * if (last) await mails.releaseChanges('audit', last.id) // once it is stored
   * ```
   */
  readChanges(options: ReadChangesOptions): Promise<ChangePage> {
    return this.#handle.attribute(this.#changeStream.page(options))
  }

  /**
   * Says that a group has all entries of the change stream up to this one, which `readChanges` gave; the group is made if there is none, and
   * no other reader may read for it. Where changes are kept for groups, what all groups are done with goes. False, and nothing was done, when the
   * group is further, the stream does not have the entry, or the queue keeps no changes. `'0-0'` only makes the group.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: it may have been released; it can be repeated
   *
   * @example
   * ```ts
   * console.log(await mails.releaseChanges('audit', '1764000000000-0'))
   * ```
   */
  releaseChanges(group: string, id: string): Promise<boolean> {
    return this.#handle.attribute(this.#changeStream.release(group, id))
  }

  /**
   * Removes a group of readers, and what only this group kept. Where changes are kept for groups, one without readers keeps all that it has
   * not acknowledged. False when there is none of this name.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: the group may have been removed, and some of what it kept may be there
   *
   * @example
   * ```ts
   * console.log(await mails.removeChangeGroup('audit'))
   * ```
   */
  removeChangeGroup(group: string): Promise<boolean> {
    return this.#handle.attribute(this.#changeStream.removeGroup(group))
  }

  /**
   * How far the change stream and its groups are.
   *
   * @throws ConnectionError `ERR_CONNECTION`, WrongTypeError `ERR_WRONG_TYPE`
   *
   * @example
   * ```ts
   * for (const { name, pending, lag } of (await mails.changeStatus()).groups) console.log(name, pending, lag)
   * ```
   */
  changeStatus(): Promise<ChangeStatus> {
    return this.#handle.attribute(this.#changeStream.status())
  }

  /**
   * From now on the events of this queue's messages, also those of the client, are about what all processes do, until the function is
   * called that it resolves with. The queue must keep its changes: see `changes` of `setConfig`. Events come up to 250 ms later then,
   * and those of changes that Redis removes before this client reads them do not come; `full` stays this client's own.
   *
   * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: the queue keeps no changes
   * @throws ConnectionError `ERR_CONNECTION`, WrongTypeError `ERR_WRONG_TYPE`
   *
   * @example
   * ```ts
   * await mails.setConfig({ changes: { keep: 'recent' } })
   * const end = await mails.allEvents()
   * mails.on('acknowledged', ({ ids }) => console.log('some process has handled', ids))
   * await end()
   * ```
   */
  allEvents(): Promise<() => Promise<void>> {
    return this.#handle.attribute(startAllEvents(this.#handle as QueueHandle<unknown>, this.#changeStream))
  }

  /**
   * Listens to what happens to this queue through this client, or, while `allEvents` is on, through any.
   *
   * @throws TypeError: the listener is no function
   *
   * @example
   * ```ts
   * mails.on('rejected', ({ ids, count }) => console.warn(count, 'dead letters', ids))
   * ```
   */
  on<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#listeners.on(name, listener)
    return this
  }

  /**
   * As `on`, for the next event only.
   *
   * @throws TypeError: the listener is no function
   *
   * @example
   * ```ts
   * mails.once('added', ({ ids }) => console.log(ids))
   * ```
   */
  once<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#listeners.once(name, listener)
    return this
  }

  /**
   * Ends what `on` or `once` began; without effect for a listener that is not there.
   *
   * @throws TypeError: the listener is no function
   *
   * @example
   * ```ts
   * const log = (error: Error) => console.error(error.message)
   * mails.on('error', log)
   * mails.off('error', log)
   * ```
   */
  off<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#listeners.off(name, listener)
    return this
  }

  async #configure(settingsOf: () => string[], ifAbsent = false): Promise<boolean> {
    const settings = this.#handle.checked(settingsOf)
    const isChanged = await this.#handle.attribute(this.#store.configure(settings, { ifAbsent }))
    if (isChanged) await this.#handle.attribute(this.#groups.apply(settings))
    return isChanged
  }
}

/** The setting that pauses an operation. */
function pauseOf(operation: unknown): string {
  return `${oneOf('operation', operation, ['add', 'poll'])}Paused`
}
