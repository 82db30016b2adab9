import type { Codec } from '../codecs/codec.js'
import type { RedelayedError } from '../errors.js'
import type { EventName, Listener } from '../events.js'
import { deadLettersOf } from '../keys.js'
import { integer, nonEmptyString, oneOf, onlyKnown } from '../options.js'
import type { QueueContext } from '../queues/context.js'
import { namesOperations } from '../queues/operations.js'
import { QueueHandle } from '../queues/queue-handle.js'
import { QueueListeners } from '../queues/queue-listeners.js'
import { ReliableChangeStore } from '../store/reliable-change-store.js'
import { ReliableGroupStore } from '../store/reliable-group-store.js'
import type { FreeOf } from '../store/reliable-move-store.js'
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
import type { ScheduleArguments, TaskArguments, TaskName } from './tasks.js'
import type { Duration } from '../duration.js'

/**
 * A queue whose messages stay until they are acknowledged: at least once. A message becomes visible after its delay, is handed
 * to one consumer for its visibility, and is redelivered when that ends without an acknowledgement. The vocabulary is that of
 * Redisson's RReliableQueue; the keys are this package's own.
 *
 * Each method delegates to one part of the queue.
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

  static {
    namesOperations(this, {
      queueOf: ({ name }) => name,
      as: {
        addPrepared: 'addMany',
        pollFor: 'poll',
        complete: 'acknowledge',
        resultOf: 'acknowledge',
        begin: 'extend',
        extendSome: 'extend',
        lastTickOf: 'upsertSchedule',
        continueSchedule: 'upsertSchedule',
      },
    })
  }

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
   * Adds a message. The client sends all calls of one turn of the event loop together at its end. Resolves when Redis has the message, or,
   * with `durability`, when the replicas or the disk that it names have it. If a connection breaks, a consumer can handle an immediately
   * visible message before its `add` is repeated, which adds it once more; `deduplicate` by an id of your own prevents that.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing
   *   was sent
   * @throws QueueFullError `ERR_QUEUE_FULL`, OperationDisabledError `ERR_OPERATION_DISABLED`, BatchClosedError `ERR_BATCH_CLOSED`: it was
   *   not added
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the message may have been added
   * @throws DurabilityError `ERR_DURABILITY`: the message was accepted, but did not reach its durability in time; `added` has its outcome
   * @throws UnsupportedServerError `ERR_UNSUPPORTED_SERVER`: the server does not have what `durability` needs: nothing was sent
   *
   * @example
   * ```ts
   * const { id, outcome } = await mails.add({ to: 'ada' }, { delay: 5_000, priority: 9 })
   * console.log(id, outcome) // 'added'
   * ```
   */
  add(payload: T, options: AddOptions = {}): Promise<Added> {
    return this.#adder.add(payload, options)
  }

  /**
   * Adds many messages in few round trips; resolves with their outcomes, in order. All are checked and encoded before
   * anything is sent. Messages are independent: some may be added and others not.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing
   *   was sent
   * @throws AddManyError `ERR_ADD_MANY`: names those that were not added, and has the results of the others; with `durability` also those
   *   that were accepted but did not reach their durability, with a DurabilityError `ERR_DURABILITY` that has their outcome
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
    return this.#adder.addMany(items, options)
  }

  /** @internal Adds checked and encoded messages; one result or error each. */
  async addPrepared(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    const results = await this.#addSender.send(pending, how)
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
    const headers = { ...options.headers, [TASK_HEADER]: nonEmptyString('task', task) }
    return this.add(payload as T, { ...options, headers })
  }

  /**
   * Takes one message for its visibility; `null` if there is none, or none came in time.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: what the lost reply held is redelivered when its visibility timeout ends
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
    return this.#claims.one(options)
  }

  /**
   * Takes up to `count` messages for their visibility: all that are visible, or, with a timeout, as soon as there is one.
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
    return this.#claims.many(options)
  }

  /** @internal When Redis last answered a poll of this client's, by the monotonic clock; `-Infinity` for never. */
  get polledAt(): number {
    return this.#claims.answeredAt
  }

  /** @internal As `pollMany`, for a worker; `beforehand`: some of them are not handled at once. */
  pollFor(options: PollManyOptions, beforehand: boolean): Promise<ReliableMessage<T>[]> {
    return this.#claims.claim(options, beforehand)
  }

  /**
   * Removes messages: they were handled. One answer each: false for a message that was no longer yours, which stays unchanged. Instead of a
   * message you can pass its `receipt`, also from another process.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: one of them was not polled from this queue, or is not a receipt; nothing was sent
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
    return this.#acknowledger.acknowledgeMany(this.#acknowledger.claimsOf(messages))
  }

  /** @internal As `acknowledge`; a result for each message, `null` for none. */
  async complete(messages: readonly ReliableMessage<T>[], results: readonly (Buffer | null)[]): Promise<boolean[]> {
    return this.#acknowledger.acknowledgeMany(this.#acknowledger.claimsOf(messages), results)
  }

  /** @internal The bytes of what a handler returned; `null` for none. */
  resultOf(result: unknown): Buffer | null {
    return this.#acknowledger.resultOf(result)
  }

  /**
   * Waits until a message is completed, whichever process handles it; resolves with the result that its consumer gave, `undefined` for
   * none. The queue has to keep completed messages (`keepCompleted` of `setConfig`). For a message that is completed already it resolves at
   * once. The call asks Redis again when the end of the message is published, and with every sweep, so that it does not miss the end. `R`
   * is not checked.
   *
   * @throws NotCompletedError `ERR_NOT_COMPLETED`: its `reason` says whether the message is a dead letter, gone, or whether the time was
   *   over first
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
    return this.#completed.wait<R>(id, options)
  }

  /**
   * The kept data of a completed message; `null` if there is none. `R` is not checked.
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
    return this.#completed.get<R>(id)
  }

  /**
   * Walks the kept completed messages, the latest first, in pages of `pageSize` (1 to 1,000; default 100). Messages completed meanwhile may
   * come twice or be missed. `R` is not checked.
   *
   * @throws as `getCompleted`
   *
   * @example
   * ```ts
   * for await (const { id, completedAt } of mails.listCompleted()) console.log(id, new Date(completedAt))
   * ```
   */
  listCompleted<R = unknown>(options: { readonly pageSize?: number } = {}): AsyncGenerator<CompletedMessage<R>, void> {
    return this.#completed.list<R>(options)
  }

  /**
   * The batch of messages that were added with this name as the option `batch`: their counts, and one last message when all of them
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
   * Gives messages, or those of receipts, back: they were not handled. One answer each: false for a message that was no longer yours, which
   * stays unchanged.
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
    return this.#acknowledger.giveBack(this.#acknowledger.claimsOf(messages), giveBackOf(options))
  }

  /**
   * Extends the visibility of messages, or those of receipts, to `visibilityTimeout` milliseconds from now (at least 1; default: the
   * queue's). One answer each: false for a message that was no longer yours.
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
   * Reports the progress of a message, or that of a receipt; as `message.progress`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing
   *   was sent
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
    const [claim] = this.#acknowledger.claimsOf([message])
    return claim === undefined ? false : this.#acknowledger.progress(claim, value, options)
  }

  /** @internal Counts the delivery of a suspect, then decodes it; false if it was no longer the caller's. */
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
    return this.#acknowledger.extendMany(this.#acknowledger.claimsOf(messages), unbegun, visibilityTimeout)
  }

  /**
   * The queue for messages that were rejected or reached their delivery limit.
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
   * Moves up to `count` (1 to 1,000; default 100) dead letters back to the queue, where their attempts begin anew. Resolves with how many.
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
    integer('count', count, 1, 1_000)
    const dead = this.deadLetters
    return dead.#handle.attribute(
      dead.#store.moves.moveTo(this.identity.keys, { count, priority: 0, isRedriven: true }),
    )
  }

  /** @internal As `redrive`, without the dead letters that `freeOf` leaves out. Yields how many each script has moved. */
  async *redriveFree(count: number, freeOf: FreeOf): AsyncGenerator<number, void> {
    const dead = this.deadLetters
    try {
      yield* dead.#store.moves.redriveFree(this.identity.keys, count, freeOf)
    } catch (thrown) {
      throw dead.#handle.attributed(thrown)
    }
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
    return (await this.#changes.remove([id], { alsoHeld: false })) === 1
  }

  /**
   * Removes messages, also those that consumers have, whose acknowledgements will be too late. Resolves with how many.
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
    return this.#changes.remove(ids, { alsoHeld: true })
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
    return this.#changes.reschedule(id, when, options)
  }

  /**
   * Gives a message that no consumer has another payload. False when there is none of this id, or a consumer has it.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing
   *   was changed
   * @throws ConnectionError `ERR_CONNECTION`: the message may have been changed
   *
   * @example
   * ```ts
   * await mails.add({ to: 'adda' }, { id: 'welcome:ada', delay: 60_000 })
   * await mails.updatePayload('welcome:ada', { to: 'ada' })
   * ```
   */
  updatePayload(id: string, payload: T): Promise<boolean> {
    return this.#changes.updatePayload(id, payload)
  }

  /**
   * Moves messages that no consumer has to another queue, where they are visible at once and their attempts begin anew. Messages whose ids
   * the other queue has already stay here. Resolves with how many were moved.
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
    return this.#changes.move(options)
  }

  /**
   * Removes all messages, also those that consumers have, and the memory of duplicates. Dead letters, schedules and the configuration stay.
   * Resolves with whether this call removed something; false also if it was repeated after a lost reply.
   *
   * @throws ConnectionError `ERR_CONNECTION`: the messages may have been removed
   *
   * @example
   * ```ts
   * await mails.clear()
   * ```
   */
  clear(): Promise<boolean> {
    return this.#store.clear()
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
   * The messages of some ids in their order, `null` for ids without a message.
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
    return this.#contents.getAll(ids)
  }

  /**
   * Whether the queue has a message of this id, in flight or not.
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
   * How many of these ids have a message.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * console.log(await mails.containsMany(['welcome:ada', 'welcome:bob']))
   * ```
   */
  containsMany(ids: readonly string[]): Promise<number> {
    return this.#contents.containsMany(ids)
  }

  /**
   * Walks the messages of one state or all, without taking them, in pages of `pageSize` (1 to 1,000): by priority from the highest on, then
   * by time, and those in flight last. `skip` is the number of messages to skip without reading them. `visibleFrom` and `visibleTo` bound
   * the time at which messages are visible (dead letters: at which they died), so that a walk can go on where another has ended. While
   * other calls add and take, messages can be missed or seen twice. A message whose payload cannot be read is left out and reported by an
   * `error` event.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for await (const { id, visibleAt } of mails.listAll({ state: 'delayed' })) console.log(id, new Date(visibleAt))
   * ```
   */
  listAll(options: ListMessages = {}): AsyncGenerator<MessageInfo<T>, void> {
    return this.#contents.list(options)
  }

  /**
   * Restores messages, such as after Redis has lost its data, with their due times, attempts, headers, failures and the bytes of their
   * payloads. An existing message of the same id stays. Neither the queue's `maxSize` nor a disabled `add` applies. Resolves with the
   * outcomes, in order. With `known` the change stream has `restored` and only the ids, for readers that have kept the messages themselves.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: some may have been restored; the same call again restores the others, and also those that a
   *   consumer has handled since
   *
   * @example
   * ```ts
   * const saved = await mails.getAllRaw(['welcome:ada'])
   * const outcomes = await mails.restoreMany(saved.filter((message) => message !== null))
   * console.log(outcomes) // ['present']
   * ```
   */
  restoreMany(messages: Iterable<RestoreItem>, options: RestoreOptions = {}): Promise<RestoreOutcome[]> {
    return this.#raw.restoreMany(messages, options)
  }

  /**
   * As `getAll`, with everything that `restoreMany` needs: the payload stays as the codec wrote it. A message whose meta data cannot be
   * read is `null`, and reported by an `error` event.
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
    return this.#raw.getAll(ids)
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
    onlyKnown('options', options, ['pageSize'])
    yield* this.#raw.pages(integer('pageSize', options.pageSize ?? 500, 1, 1_000))
  }

  /**
   * The time of the clock that decides when messages become visible, epoch milliseconds: that of Redis, unless the client uses its own.
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
    return this.#store.now()
  }

  /**
   * The numbers of messages by their state.
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
    return this.#contents.counts()
  }

  /**
   * How many messages the queue has, including those in flight.
   *
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * console.log(await mails.size())
   * ```
   */
  size(): Promise<number> {
    return this.#store.size()
  }

  /**
   * Whether the queue has no message, in flight or not.
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
   * Sets the queue's configuration for all processes. Settings that are not given stay, `null` restores the default. After a change of the
   * limits of groups the call also visits each group that has claims or had some lately, page by page: when it resolves, the new limits
   * apply to all of them.
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
    await this.#configure(configArgs(config))
  }

  /**
   * As `setConfig`, unless any setting is set already. Resolves with whether it set the configuration.
   *
   * @throws as `setConfig`
   *
   * @example
   * ```ts
   * console.log(await mails.setConfigIfAbsent({ visibilityTimeout: 60_000 }))
   * ```
   */
  async setConfigIfAbsent(config: ReliableQueueConfig): Promise<boolean> {
    return this.#configure(configArgs(config), true)
  }

  /**
   * The queue's configuration for all processes; leaves out settings that have their default.
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
    return readConfig(await this.#store.settings(CONFIG_NAMES))
  }

  /**
   * Makes the queue refuse to add messages, or polls get none, in all processes, until the operation is enabled again.
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
    await this.#configure([pauseOf(operation), '1'])
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
    await this.#configure([pauseOf(operation), ''])
  }

  /**
   * Pauses a group: no consumer gets its messages, in any process, until `resumeGroup`; other groups go on. Messages can still be added,
   * and consumers keep the messages that they have. A group without messages can be paused too; `clear` leaves it paused.
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
    return this.#groups.pause(group)
  }

  /**
   * Ends what `pauseGroup` began: the group takes turns again, and waiting consumers poll at once.
   *
   * @throws as `pauseGroup`
   *
   * @example
   * ```ts
   * await mails.resumeGroup('tenant-7')
   * ```
   */
  resumeGroup(group: string): Promise<void> {
    return this.#groups.resume(group)
  }

  /**
   * The paused groups, in the order of their bytes, read in pages.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for (const group of await mails.pausedGroups()) await mails.resumeGroup(group)
   * ```
   */
  pausedGroups(): Promise<string[]> {
    return this.#groups.paused()
  }

  /**
   * Pauses a task: no consumer gets its messages (of `addTask`, or with the header `task`), in any process, until `resumeTask`; other tasks
   * go on. Messages can still be added, and consumers keep the messages that they have. Polls set aside each message of the task that they
   * meet, once; it counts as visible. `clear` leaves the task paused. At most 511 tasks of a queue can be paused at once.
   *
   * @param task 1 to 255 bytes of UTF-8
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether it may have been changed
   *
   * @example
   * ```ts
   * await mails.pauseTask('report')
   * console.log(await mails.pausedTasks()) // ['report']
   * await mails.resumeTask('report')
   * ```
   */
  pauseTask(task: TaskName<T>): Promise<void> {
    return this.#groups.pauseTask(task)
  }

  /**
   * Ends what `pauseTask` began. The next polls bring back the messages set aside, in their order, each with its priority, group and time.
   *
   * @throws as `pauseTask`
   *
   * @example
   * ```ts
   * await mails.resumeTask('report')
   * ```
   */
  resumeTask(task: TaskName<T>): Promise<void> {
    return this.#groups.resumeTask(task)
  }

  /**
   * The tasks that are paused.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for (const task of await mails.pausedTasks()) console.log(task)
   * ```
   */
  pausedTasks(): Promise<string[]> {
    return this.#groups.pausedTasks()
  }

  /**
   * The numbers of messages of a group by their state, and its limits. O(log N).
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
    return this.#groups.counts(group)
  }

  /**
   * The visible messages that a pause or a limit holds back, whether the queue is paused, and the numbers of groups, paused tasks, batches
   * and kept completed messages, as in the metrics. One script examines up to 500 groups that may have a message, and as many paused ones;
   * messages of further groups count as not held back.
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
    return this.#groups.totals()
  }

  /**
   * Walks the groups that have messages, or had some lately, and the paused groups, in pages of `pageSize` (1 to 1,000; default 100).
   * Groups that change meanwhile may come twice or be missed. O(log N) for each group.
   *
   * @throws as `countsOfGroup`
   *
   * @example
   * ```ts
   * for await (const { group, visible, inFlight, paused } of mails.listGroups()) console.log(group, visible, inFlight, paused)
   * ```
   */
  listGroups(options: { readonly pageSize?: number } = {}): AsyncGenerator<GroupCounts, void> {
    return this.#groups.list(options)
  }

  /**
   * Sets a schedule: the queue gets one message at each tick, however many processes make this call. The same call again changes nothing,
   * unless Redis has lost the time of the next tick; a call with other arguments replaces the schedule. The message of the next tick is in
   * the queue as a delayed message with the id `<name>@<epoch ms>`; the consumer that polls after its tick prepares the following one.
   * Resolves with whether the call changed anything.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: also for a cron expression or a time zone that cannot be read
   * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: a cron expression without the package `croner`
   * @throws QueueFullError `ERR_QUEUE_FULL`: the queue has no room for the message of the next tick
   * @throws EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * await mails.upsertSchedule('daily', { to: 'ada' }, { cron: '0 9 * * 1-5', timeZone: 'Europe/Berlin' })
   * ```
   */
  upsertSchedule(name: string, ...[payload, options]: ScheduleArguments<T>): Promise<boolean> {
    return this.#schedules.upsert(name, payload as T, options)
  }

  /** @internal The last prepared tick of this very schedule; `null` if there is none. */
  lastTickOf(name: string, ...[payload, options]: ScheduleArguments<T>): Promise<number | null> {
    return this.#schedules.lastTickOf(name, payload as T, options)
  }

  /** @internal As `upsertSchedule`; a schedule that is not there yet continues after the tick `since`. */
  continueSchedule(name: string, since: number | null, ...[payload, options]: ScheduleArguments<T>): Promise<boolean> {
    return this.#schedules.upsert(name, payload as T, options, since)
  }

  /**
   * Ends a schedule and removes its message, unless the tick has come. False if there is no schedule of this name.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * console.log(await mails.removeSchedule('daily'))
   * ```
   */
  removeSchedule(name: string): Promise<boolean> {
    return this.#schedules.remove(name)
  }

  /**
   * All schedules by their names; an unreadable one is left out and reported by an `error` event.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * for (const { name, cron, lastPrepared } of await mails.listSchedules()) console.log(name, cron, lastPrepared)
   * ```
   */
  listSchedules(): Promise<ScheduleInfo<T>[]> {
    return this.#schedules.list()
  }

  /**
   * The changes of the queue's messages by all processes, one batch for each script call. The queue must keep its changes: see `changes` of
   * `setConfig`. Without a group each reader gets all changes that Redis still has when it reads them; the readers of a group share the
   * changes and acknowledge them; a single reader that always has the same `consumer` gets them in order. A failure after the beginning is
   * an `error` event, and is retried.
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
  changes(options: ChangesOptions = {}): AsyncGenerator<ChangeBatch, void> {
    return this.#changeStream.read(options)
  }

  /**
   * Acknowledges entries of the change stream for a group. If changes are kept for groups, entries that all groups have acknowledged are
   * removed. Resolves with how many the group had not acknowledged before.
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
    return this.#changeStream.acknowledge(group, positions)
  }

  /**
   * One page of the change stream, without waiting and without a group, for a reader that keeps its position elsewhere. One script checks
   * the entry `after` and reads what follows it: with the status `'ok'` no change is missing between them. A page has at most about 4 MiB,
   * or one entry that is larger.
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
    return this.#changeStream.page(options)
  }

  /**
   * Acknowledges all entries of the change stream up to this one, which `readChanges` returned, for a group; creates the group if there is
   * none, and no other reader may read for it. If changes are kept for groups, entries that all groups have acknowledged are removed.
   * False, without effect, if the group is further, the stream does not have the entry, or the queue keeps no changes. `'0-0'` only creates
   * the group.
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
    return this.#changeStream.release(group, id)
  }

  /**
   * Removes a group of readers, and the changes that only this group kept. If changes are kept for groups, a group without readers keeps
   * all changes that it has not acknowledged. False if there is no group of this name.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: the group may have been removed, and some of the changes that it kept may remain
   *
   * @example
   * ```ts
   * console.log(await mails.removeChangeGroup('audit'))
   * ```
   */
  removeChangeGroup(group: string): Promise<boolean> {
    return this.#changeStream.removeGroup(group)
  }

  /**
   * The state of the change stream and its groups.
   *
   * @throws ConnectionError `ERR_CONNECTION`, WrongTypeError `ERR_WRONG_TYPE`
   *
   * @example
   * ```ts
   * for (const { name, pending, lag } of (await mails.changeStatus()).groups) console.log(name, pending, lag)
   * ```
   */
  changeStatus(): Promise<ChangeStatus> {
    return this.#changeStream.status()
  }

  /**
   * Makes the events of this queue's messages, also on the client, report the changes by all processes, until the returned function is
   * called. The queue must keep its changes: see `changes` of `setConfig`. Events then come up to 250 ms later,
   * and changes that Redis removes before this client reads them raise none; `full` still reports only this client.
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
    return startAllEvents(this.#handle, this.#changeStream)
  }

  /**
   * Listens to the events of this queue from this client, or, while `allEvents` is on, from any client.
   *
   * @throws TypeError: the listener is not a function
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
   * @throws TypeError: the listener is not a function
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
   * @throws TypeError: the listener is not a function
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

  async #configure(settings: string[], ifAbsent = false): Promise<boolean> {
    const isChanged = await this.#store.configure(settings, { ifAbsent })
    if (isChanged) await this.#groups.apply(settings)
    return isChanged
  }
}

/** The setting that pauses an operation. */
function pauseOf(operation: unknown): string {
  return `${oneOf('operation', operation, ['add', 'poll'])}Paused`
}
