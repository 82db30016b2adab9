import type { Codec } from '../codecs/codec.js'
import { toError } from '../errors.js'
import type { EventName, Listener } from '../events.js'
import { deadLettersOf } from '../keys.js'
import { integer, nonEmptyString } from '../options.js'
import { namesOperations } from '../queues/operations.js'
import { QueueHandle } from '../queues/queue-handle.js'
import { QueueListeners } from '../queues/queue-listeners.js'
import type { AddItem, AddManyOptions, AddOptions } from '../reliable/add-options.js'
import { Adder, type Added } from '../reliable/adder.js'
import { assertPollManyOptions, assertPollOptions, type PollManyOptions, type PollOptions } from '../reliable/claims.js'
import type { ChangeStatus } from '../reliable/change-stream/change.js'
import type { ReliableQueueConfig, StoredQueueConfig } from '../reliable/config.js'
import type { CompletedMessage, WaitOptions } from '../reliable/completed.js'
import type { ListMessages, MessageInfo, ReliableQueueCounts } from '../reliable/contents.js'
import type { GroupCounts, QueueTotals } from '../reliable/groups.js'
import type { ReliableContext, ReliableIdentity } from '../reliable/context.js'
import { assertKnownId } from '../reliable/message-id.js'
import type { NegativeOptions, ReliableMessage } from '../reliable/message.js'
import type { ProgressOptions } from '../reliable/progress.js'
import type { RestoreItem, RestoreOptions, RestoreOutcome, StoredRawMessage } from '../reliable/raw-messages.js'
import { TASK_HEADER } from '../reliable/record.js'
import { ReliableQueue } from '../reliable/reliable-queue.js'
import type { ScheduleInfo } from '../reliable/repeats/schedules.js'
import type { ScheduleArguments, TaskArguments, TaskName } from '../reliable/tasks.js'
import { placesOf } from './id-places.js'
import { allOf, groupBy, ReliableShards } from './reliable-shards.js'
import { ShardAnswers } from './shard-answers.js'
import { ShardCompleted } from './shard-completed.js'
import { ShardReads } from './shard-reads.js'
import { ShardRestores } from './shard-restores.js'
import { ShardSchedules } from './shard-schedules.js'
import { ShardedAddRoute } from './sharded-add-route.js'
import {
  ShardedChanges,
  type ShardedChangeBatch,
  type ShardedChangePosition,
  type ShardedChangesOptions,
} from './sharded-changes.js'
import { ShardedPolls } from './sharded-polls.js'
import { resolveShardedReliableOptions, type ShardedReliableQueueOptions } from './sharded-reliable-options.js'
import type { Duration } from '../duration.js'

interface Params<T> {
  readonly name: string
  readonly codec: Codec<T>
  readonly queues: readonly ReliableQueue<T>[]
  readonly shards: number
  readonly isChanging: boolean
}

/**
 * One reliable queue made of several ordinary ones, its shards, whose keys are in different slots of a cluster. A message is in the shard
 * of its id. Priorities and `maxSize` apply within a shard; see docs/sharded-reliable-queue.md.
 */
export class ShardedReliableQueue<T = unknown> {
  /** The queue's name as the application knows it. */
  readonly name: string
  readonly codec: Codec<T>
  /** The number of shards over which ids are placed. */
  readonly shardCount: number
  /** The names of the shards. */
  readonly names: readonly string[]
  /**
   * The shards, ordinary reliable queues, for work shard by shard. Shards beyond `shardCount` (see `formerShards`) get no new ids. The
   * sharded queue does not find messages by their ids that were added to a shard directly.
   */
  readonly shards: readonly ReliableQueue<T>[]
  /** @internal */
  readonly reliable: ReliableContext
  readonly #isChanging: boolean
  readonly #shards: ReliableShards<T>
  readonly #adder: Adder<T>
  readonly #answers: ShardAnswers<T>
  readonly #polls: ShardedPolls<T>
  readonly #reads: ShardReads<T>
  readonly #completed: ShardCompleted<T>
  readonly #restores: ShardRestores<T>
  readonly #schedules: ShardSchedules<T>
  readonly #changes: ShardedChanges<T>
  readonly #listeners: QueueListeners

  static {
    namesOperations(this, { queueOf: ({ name }) => name, as: { pollFor: 'poll', queueOf: 'poll' } })
  }

  /** @internal */
  constructor(reliable: ReliableContext, { name, codec, queues, shards, isChanging }: Params<T>) {
    this.name = name
    this.codec = codec
    this.shardCount = shards
    this.names = Object.freeze(queues.map((queue) => queue.name))
    this.reliable = reliable
    this.shards = Object.freeze([...queues])
    this.#isChanging = isChanging
    const handle = new QueueHandle(reliable.queues, { name, codec })
    this.#shards = new ReliableShards(queues, shards)
    const route = new ShardedAddRoute(reliable.queues, this.#shards, isChanging)
    this.#adder = new Adder(handle, route, reliable.instrumentation)
    this.#answers = new ShardAnswers(this.#shards)
    this.#polls = new ShardedPolls(handle, {
      shards: this.#shards,
      answers: this.#answers,
      polls: reliable.polls,
    })
    this.#reads = new ShardReads(this.#shards)
    this.#completed = new ShardCompleted(this.#shards, isChanging)
    this.#restores = new ShardRestores(this.#shards, isChanging)
    this.#schedules = new ShardSchedules(this.#shards, isChanging)
    this.#changes = new ShardedChanges(this.#shards)
    this.#listeners = new QueueListeners(reliable.queues.hub, this.names)
  }

  /**
   * Adds a message to the shard of its id. As `ReliableQueue.add`, but not with both `deduplicate.by: 'payload'` and an id of your own,
   * which could be in another shard than the payload's.
   *
   * @throws as `ReliableQueue.add`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const { id } = await mails.add({ to: 'ada@example.org' }, { delay: 60_000, priority: 9 })
   * console.log(await mails.cancel(id))
   * ```
   */
  add(payload: T, options: AddOptions = {}): Promise<Added> {
    return this.#adder.add(payload, options)
  }

  /**
   * Adds many messages, to different shards concurrently; resolves with their outcomes, in order. All are checked and encoded
   * before anything is sent.
   *
   * @throws as `ReliableQueue.addMany`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.addMany([{ payload: { to: 'ada' } }, { payload: { to: 'bob' }, delay: 60_000 }])
   * ```
   */
  addMany(items: Iterable<AddItem<T>>, options: AddManyOptions = {}): Promise<Added[]> {
    return this.#adder.addMany(items, options)
  }

  /**
   * Adds a message for the worker's handler of that name: the handler gets the payload.
   *
   * @throws as `add`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.addTask('welcome', { to: 'ada' })
   * ```
   */
  async addTask(...[task, payload, options = {}]: TaskArguments<T>): Promise<Added> {
    const headers = { ...options.headers, [TASK_HEADER]: nonEmptyString('task', task) }
    return this.add(payload as T, { ...options, headers })
  }

  /**
   * Takes one message of any shard for its visibility; `null` if there is none, or none came in time. Without a timeout it asks one shard
   * after the other.
   *
   * @throws as `ReliableQueue.poll`; a shard that fails while others work is an `error` event
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const message = await mails.poll({ timeout: 10_000 })
   * if (message !== null) await message.acknowledge()
   * ```
   */
  async poll(options: PollOptions = {}): Promise<ReliableMessage<T> | null> {
    assertPollOptions(options)
    const [message = null] = await this.pollFor({ ...options, count: 1 }, false)
    return message
  }

  /**
   * Takes up to `count` messages for their visibility: all that are visible, or, with a timeout, those of the first shards that have any.
   *
   * @throws as `poll`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const messages = await mails.pollMany({ count: 100, timeout: Infinity })
   * await mails.acknowledge(...messages)
   * ```
   */
  async pollMany(options: PollManyOptions): Promise<ReliableMessage<T>[]> {
    assertPollManyOptions(options)
    return this.pollFor(options, false)
  }

  /** @internal When Redis last answered a poll of any shard, by the monotonic clock; `-Infinity` for never. */
  get polledAt(): number {
    return Math.max(-Infinity, ...this.shards.map((shard) => shard.polledAt))
  }

  /** @internal As `pollMany`, for a worker; `beforehand`: some of them are not handled at once. */
  pollFor(options: PollManyOptions, beforehand: boolean): Promise<ReliableMessage<T>[]> {
    return this.#polls.claim(options, beforehand)
  }

  /** @internal The shard that a message was polled from. */
  queueOf(message: ReliableMessage): ReliableQueue<T> {
    return this.#answers.queueOf(message)
  }

  /**
   * Removes messages of any shards: they were handled. One answer each: false for a message that was no longer yours, which stays
   * unchanged. Instead of a message you can pass its `receipt`, also from another process.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: one of them was not polled from this queue; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered; its `outcome` says whether any of the messages
   *   may have been removed
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const answers = await mails.acknowledge(...(await mails.pollMany({ count: 10 })))
   * console.log(answers.filter((isDone) => !isDone).length, 'came too late')
   * ```
   */
  acknowledge(...messages: readonly (ReliableMessage<T> | string)[]): Promise<boolean[]> {
    return this.#answers.send(messages, (queue, own) => queue.acknowledge(...own))
  }

  /**
   * Gives messages of any shards back: they were not handled. One answer each: false for a message that was no longer yours.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: as for `acknowledge`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.negativeAcknowledge(await mails.pollMany({ count: 10 }), { delay: 30_000 })
   * ```
   */
  negativeAcknowledge(
    messages: readonly (ReliableMessage<T> | string)[],
    options: NegativeOptions = {},
  ): Promise<boolean[]> {
    return this.#answers.send(messages, (queue, own) => queue.negativeAcknowledge(own, options))
  }

  /**
   * Extends the visibility of messages of any shards to `visibilityTimeout` milliseconds from now (at least 1; default: their shard's).
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: the messages may have been extended
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.extend(await mails.pollMany({ count: 10 }), 60_000)
   * ```
   */
  extend(messages: readonly (ReliableMessage<T> | string)[], visibilityTimeout?: Duration): Promise<boolean[]> {
    return this.#answers.send(messages, (queue, own) => queue.extend(own, visibilityTimeout))
  }

  /**
   * Reports the progress of a message of any shard; as `message.progress`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing
   *   was sent
   * @throws ConnectionError `ERR_CONNECTION`: the progress may have been kept
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const message = await mails.poll()
   * if (message !== null) await mails.progress(message, 50)
   * ```
   */
  async progress(
    message: ReliableMessage<T> | string,
    value: unknown,
    options: ProgressOptions = {},
  ): Promise<boolean> {
    const [isKept = false] = await this.#answers.send([message], async (queue, [own = message]) => [
      await queue.progress(own, value, options),
    ])
    return isKept
  }

  /**
   * The queue of the dead letters; those of a shard are in the slot of that shard.
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * for await (const { id, failures } of mails.deadLetters.listAll()) console.log(id, failures.at(-1)?.reason)
   * ```
   */
  get deadLetters(): ShardedReliableQueue<T> {
    const queues = this.shards.map((queue) => queue.deadLetters)
    return new ShardedReliableQueue(this.reliable, {
      name: deadLettersOf(this.name),
      codec: this.codec,
      queues,
      shards: this.shardCount,
      isChanging: this.#isChanging,
    })
  }

  /**
   * Moves up to `count` (1 to 1,000; default 100) dead letters back to their shards, where their attempts begin anew. Resolves with how
   * many. It begins at a random shard. With `formerShards` it leaves out those whose ids are in the queue, in any shard, and looks at no
   * more than 10,000 dead letters of each shard.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: none of the shards that can be reached has any; some of the others may have been moved
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * while ((await mails.redrive(1_000)) > 0) console.log('some more were moved')
   * ```
   */
  async redrive(count = 100): Promise<number> {
    integer('count', count, 1, 1_000)
    const first = Math.floor(Math.random() * this.shards.length)
    let moved = 0
    let failure: Error | undefined
    const silent = new Set<number>()
    const all = [...this.shards.keys()]
    for (const shard of [...all.slice(first), ...all.slice(0, first)]) {
      if (moved === count) break
      const most = count - moved
      try {
        if (this.#isChanging) for await (const some of this.#shards.redrive(shard, most, silent)) moved += some
        else moved += await this.#shards.at(shard).redrive(most)
      } catch (thrown) {
        failure ??= toError(thrown)
      }
    }
    if (moved === 0 && failure !== undefined) throw failure
    return moved
  }

  /**
   * The shards where the message of an id can be. It is added to the first one; the others are its shards for other numbers of shards.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const [shard] = mails.shardsOf('welcome:ada')
   * console.log(shard.name)
   * ```
   */
  shardsOf(id: string): readonly [ReliableQueue<T>, ...ReliableQueue<T>[]] {
    this.#assertIds([id])
    const [first, ...others] = placesOf(id, this.#shards)
    return [this.#shards.at(first), ...others.map((shard) => this.#shards.at(shard))]
  }

  /**
   * Removes a message that no consumer has. False when there is none of this id, or a consumer has it.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the message may have been removed
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const { id } = await mails.add({ to: 'ada' }, { delay: 60_000 })
   * console.log(await mails.cancel(id)) // true
   * ```
   */
  cancel(id: string): Promise<boolean> {
    return this.#find(id, (queue) => queue.cancel(id))
  }

  /**
   * Removes messages, also those that consumers have, whose acknowledgements will be too late. Resolves with how many.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: some may have been removed
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * console.log(await mails.remove('welcome:ada', 'welcome:bob'))
   * ```
   */
  async remove(...ids: readonly string[]): Promise<number> {
    this.#assertIds(ids)
    const places = ids.flatMap((id) => placesOf(id, this.#shards).map((shard) => ({ id, shard })))
    const removed = Array.from(
      groupBy(places, ({ shard }) => shard),
      ([shard, own]) => this.#shards.at(shard).remove(...own.flatMap((at) => places[at]?.id ?? [])),
    )
    return sumOf(await allOf(removed))
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
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.reschedule('welcome:ada', 0, { priority: 9 })
   * ```
   */
  reschedule(id: string, when: Duration | Date | undefined, options: { priority?: number } = {}): Promise<boolean> {
    return this.#find(id, (queue) => queue.reschedule(id, when, options))
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
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.updatePayload('welcome:ada', { to: 'ada' })
   * ```
   */
  updatePayload(id: string, payload: T): Promise<boolean> {
    return this.#find(id, (queue) => queue.updatePayload(id, payload))
  }

  /**
   * Removes all messages of all shards, also those that consumers have, and the memory of duplicates. Dead letters, schedules and the
   * configuration stay. Resolves with whether this call removed something.
   *
   * @throws ConnectionError `ERR_CONNECTION`: the messages may have been removed
   *
   * @example
   * ```ts
   * await client.getShardedReliableQueue<Mail>('mails', { shards: 12 }).clear()
   * ```
   */
  async clear(): Promise<boolean> {
    return (await this.#shards.each((queue) => queue.clear())).includes(true)
  }

  /**
   * Waits until a message is completed, whichever process handles it; as `ReliableQueue.waitUntilFinished`.
   *
   * @throws NotCompletedError `ERR_NOT_COMPLETED`: its `reason` says whether the message is a dead letter, gone, or whether the time was
   *   over first
   * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: the queue keeps no completed messages
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, DecodeError `ERR_DECODE`, ConnectionError `ERR_CONNECTION`,
   *   ShutdownError `ERR_SHUTDOWN`
   * @throws the reason of `signal`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.setConfig({ keepCompleted: 10_000 })
   * const { id } = await mails.add({ to: 'ada' })
   * console.log(await mails.waitUntilFinished(id, { timeout: '30s' }))
   * ```
   */
  waitUntilFinished<R = unknown>(id: string, options: WaitOptions = {}): Promise<R | undefined> {
    return this.#completed.wait<R>(id, options)
  }

  /**
   * The kept data of a completed message; `null` if there is none. `R` is not checked.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, DecodeError `ERR_DECODE`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * console.log((await mails.getCompleted('welcome:ada'))?.result)
   * ```
   */
  getCompleted<R = unknown>(id: string): Promise<CompletedMessage<R> | null> {
    return this.#completed.get<R>(id)
  }

  /**
   * Walks the kept completed messages, shard after shard, the latest of each first; as `ReliableQueue.listCompleted`.
   *
   * @throws as `getCompleted`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * for await (const { id, completedAt } of mails.listCompleted()) console.log(id, new Date(completedAt))
   * ```
   */
  listCompleted<R = unknown>(options: { readonly pageSize?: number } = {}): AsyncGenerator<CompletedMessage<R>, void> {
    return this.#completed.list<R>(options)
  }

  /**
   * The message of an id, or `null`; it stays in its shard.
   *
   * @throws DecodeError `ERR_DECODE`: it cannot be read
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
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
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const [ada, bob] = await mails.getAll(['welcome:ada', 'welcome:bob'])
   * console.log(ada?.payload, bob?.payload)
   * ```
   */
  async getAll(ids: readonly string[]): Promise<(MessageInfo<T> | null)[]> {
    this.#assertIds(ids)
    return this.#reads.getAll(ids, (queue, own) => queue.getAll(own))
  }

  /**
   * Whether a shard has a message of this id, in flight or not.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
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
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * console.log(await mails.containsMany(['welcome:ada', 'welcome:bob']))
   * ```
   */
  async containsMany(ids: readonly string[]): Promise<number> {
    this.#assertIds(ids)
    return this.#reads.containsMany(ids)
  }

  /**
   * Walks the messages shard by shard without taking them; within a shard as `ReliableQueue.listAll` does.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * for await (const { id, visibleAt } of mails.listAll({ state: 'delayed' })) console.log(id, new Date(visibleAt))
   * ```
   */
  async *listAll(options: ListMessages = {}): AsyncGenerator<MessageInfo<T>, void> {
    for (const queue of this.shards) yield* queue.listAll(options)
  }

  /**
   * Restores messages, each into the shard of its id; otherwise as `ReliableQueue.restoreMany`. Messages of a schedule belong
   * in the schedule's shard: read and restore them with `shards`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered: the same call again restores what is not there
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const saved = await mails.getAllRaw(['welcome:ada'])
   * console.log(await mails.restoreMany(saved.filter((message) => message !== null))) // ['present']
   * ```
   */
  restoreMany(messages: Iterable<RestoreItem>, options: RestoreOptions = {}): Promise<RestoreOutcome[]> {
    return this.#restores.restoreMany(messages, options)
  }

  /**
   * As `getAll`, with everything that `restoreMany` needs: the payload stays as the codec wrote it.
   *
   * @throws DecodeError `ERR_DECODE`: the meta data of one of them cannot be read
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const [message] = await mails.getAllRaw(['welcome:ada'])
   * console.log(message?.payload.length, 'bytes, due at', message?.dueAt)
   * ```
   */
  async getAllRaw(ids: readonly string[]): Promise<(StoredRawMessage | null)[]> {
    this.#assertIds(ids)
    return this.#reads.getAll(ids, (queue, own) => queue.getAllRaw(own))
  }

  /**
   * Walks all messages in pages, shard by shard, with everything that `restoreMany` needs. `pageSize` is 1 to 1,000, default 500.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * for await (const page of mails.listAllRaw()) console.log(page.length, 'messages')
   * ```
   */
  async *listAllRaw(options: { pageSize?: number } = {}): AsyncGenerator<StoredRawMessage[], void> {
    for (const queue of this.shards) yield* queue.listAllRaw(options)
  }

  /**
   * The time of the first shard's clock, epoch milliseconds. Each shard uses the clock of its own master, unless the client uses its own.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.add({ to: 'ada' }, { date: new Date((await mails.now()) + 60_000) })
   * ```
   */
  now(): Promise<number> {
    return this.#shards.at(0).now()
  }

  /**
   * The numbers of messages of all shards by their state. Not counted at one moment.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const { visible, dead, oldestMs } = await client.getShardedReliableQueue<Mail>('mails', { shards: 12 }).counts()
   * console.log(visible, dead, oldestMs)
   * ```
   */
  counts(): Promise<ReliableQueueCounts> {
    return this.#reads.counts()
  }

  /**
   * How many messages all shards have, including those in flight.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * console.log(await client.getShardedReliableQueue<Mail>('mails', { shards: 12 }).size())
   * ```
   */
  async size(): Promise<number> {
    return sumOf(await this.sizes())
  }

  /**
   * How many messages each shard has, in the order of `names`.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 8, formerShards: 16 })
   * const left = (await mails.sizes()).slice(mails.shardCount)
   * console.log(left.every((size) => size === 0) ? 'the last eight are empty' : left)
   * ```
   */
  sizes(): Promise<number[]> {
    return this.#shards.each((queue) => queue.size())
  }

  /**
   * Whether no shard has a message, in flight or not.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * console.log(await client.getShardedReliableQueue<Mail>('mails', { shards: 12 }).isEmpty())
   * ```
   */
  async isEmpty(): Promise<boolean> {
    return (await this.size()) === 0
  }

  /**
   * How many messages of all shards are not visible yet.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * console.log(await client.getShardedReliableQueue<Mail>('mails', { shards: 12 }).countDelayedMessages())
   * ```
   */
  async countDelayedMessages(): Promise<number> {
    return (await this.counts()).delayed
  }

  /**
   * How many messages of all shards consumers have.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * console.log(await client.getShardedReliableQueue<Mail>('mails', { shards: 12 }).countUnacknowledgedMessages())
   * ```
   */
  async countUnacknowledgedMessages(): Promise<number> {
    return (await this.counts()).inFlight
  }

  /**
   * Sets the configuration of each shard for all processes: `maxSize`, the limits, and `maxLength` of changes apply to one shard. Settings
   * that are not given stay, `null` restores the default.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: some shards may have been changed; call it again
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.setConfig({ visibilityTimeout: 60_000, deliveryLimit: 5 })
   * ```
   */
  async setConfig(config: ReliableQueueConfig): Promise<void> {
    await this.#shards.each((queue) => queue.setConfig(config))
  }

  /**
   * As `setConfig`, in each shard without any setting. Resolves with whether there was one.
   *
   * @throws as `setConfig`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * console.log(await mails.setConfigIfAbsent({ visibilityTimeout: 60_000 }))
   * ```
   */
  async setConfigIfAbsent(config: ReliableQueueConfig): Promise<boolean> {
    return (await this.#shards.each((queue) => queue.setConfigIfAbsent(config))).includes(true)
  }

  /**
   * The configuration of the first shard; all shards have the same, unless `setConfig` failed or the number of shards was raised since.
   *
   * @throws ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 16, formerShards: 8 })
   * await mails.setConfig(await mails.getConfig()) // the new shards get what the first has
   * ```
   */
  getConfig(): Promise<StoredQueueConfig> {
    return this.#shards.at(0).getConfig()
  }

  /**
   * Makes the queue refuse to add messages, or polls get none, in all shards and processes, until the operation is enabled again.
   *
   * @throws as `setConfig`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.disableOperation('poll')
   * await mails.enableOperation('poll')
   * ```
   */
  async disableOperation(operation: 'add' | 'poll'): Promise<void> {
    await this.#shards.each((queue) => queue.disableOperation(operation))
  }

  /**
   * Ends what `disableOperation` began.
   *
   * @throws as `setConfig`
   *
   * @example
   * ```ts
   * await client.getShardedReliableQueue<Mail>('mails', { shards: 12 }).enableOperation('add')
   * ```
   */
  async enableOperation(operation: 'add' | 'poll'): Promise<void> {
    await this.#shards.each((queue) => queue.enableOperation(operation))
  }

  /**
   * Pauses a group in all shards and processes; as `ReliableQueue.pauseGroup`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.pauseGroup('tenant-7')
   * await mails.resumeGroup('tenant-7')
   * ```
   */
  async pauseGroup(group: string): Promise<void> {
    await this.#shards.each((queue) => queue.pauseGroup(group))
  }

  /**
   * Ends what `pauseGroup` began.
   *
   * @throws as `pauseGroup`
   *
   * @example
   * ```ts
   * await client.getShardedReliableQueue<Mail>('mails', { shards: 12 }).resumeGroup('tenant-7')
   * ```
   */
  async resumeGroup(group: string): Promise<void> {
    await this.#shards.each((queue) => queue.resumeGroup(group))
  }

  /**
   * The groups that are paused in any shard.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * for (const group of await mails.pausedGroups()) await mails.resumeGroup(group)
   * ```
   */
  async pausedGroups(): Promise<string[]> {
    return [...new Set((await this.#shards.each((queue) => queue.pausedGroups())).flat())]
  }

  /**
   * Pauses a task in all shards and processes; as `ReliableQueue.pauseTask`.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was changed
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.pauseTask('report')
   * await mails.resumeTask('report')
   * ```
   */
  async pauseTask(task: TaskName<T>): Promise<void> {
    await this.#shards.each((queue) => queue.pauseTask(task))
  }

  /**
   * Ends what `pauseTask` began.
   *
   * @throws as `pauseTask`
   *
   * @example
   * ```ts
   * await client.getShardedReliableQueue<Mail>('mails', { shards: 12 }).resumeTask('report')
   * ```
   */
  async resumeTask(task: TaskName<T>): Promise<void> {
    await this.#shards.each((queue) => queue.resumeTask(task))
  }

  /**
   * The tasks that are paused in any shard.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * for (const task of await mails.pausedTasks()) console.log(task)
   * ```
   */
  async pausedTasks(): Promise<string[]> {
    return [...new Set((await this.#shards.each((queue) => queue.pausedTasks())).flat())]
  }

  /**
   * The numbers of messages of a group in all shards, not counted at one moment; the limits are those of each shard.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * console.log((await mails.countsOfGroup('tenant-7')).visible)
   * ```
   */
  countsOfGroup(group: string): Promise<GroupCounts> {
    return this.#reads.countsOfGroup(group)
  }

  /**
   * As `ReliableQueue.totals`, for all shards together. A group with messages in several shards counts in each.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * console.log((await mails.totals()).heldBack.byLimit)
   * ```
   */
  totals(): Promise<QueueTotals> {
    return this.#reads.totals()
  }

  /**
   * As `ReliableQueue.upsertSchedule`. A schedule is in the shard of its name, and moves there if another number of shards placed it
   * elsewhere.
   *
   * @throws as `ReliableQueue.upsertSchedule`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.upsertSchedule('daily', { to: 'ada' }, { cron: '0 9 * * 1-5', timeZone: 'Europe/Berlin' })
   * ```
   */
  upsertSchedule(name: string, ...schedule: ScheduleArguments<T>): Promise<boolean> {
    return this.#schedules.upsert(name, schedule)
  }

  /**
   * Ends a schedule and removes its message, unless the tick has come. False if there is no schedule of this name.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, ConnectionError `ERR_CONNECTION`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * console.log(await mails.removeSchedule('daily'))
   * ```
   */
  removeSchedule(name: string): Promise<boolean> {
    return this.#schedules.remove(name)
  }

  /**
   * The schedules of all shards by their names; an unreadable one is left out and reported by an `error` event.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * for (const { name, cron, lastPrepared } of await mails.listSchedules()) console.log(name, cron, lastPrepared)
   * ```
   */
  listSchedules(): Promise<ScheduleInfo<T>[]> {
    return this.#schedules.list()
  }

  /**
   * The changes of the messages of all shards by all processes. As `ReliableQueue.changes`: a batch is one script call at one shard, and
   * its position is one of that shard. The order is kept within a shard. Shards that this object does not cover are not read.
   *
   * @throws as `ReliableQueue.changes`, of the first shard that cannot be read
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.setConfig({ changes: { keep: 'groups' } })
   * for await (const { position, changes } of mails.changes({ group: 'audit', consumer: 'auditor' })) {
   *   for (const { change, id } of changes) console.log(change, id, 'in', mails.names[position.shard])
   *   await mails.acknowledgeChanges('audit', position)
   * }
   * ```
   */
  changes(options: ShardedChangesOptions = {}): AsyncGenerator<ShardedChangeBatch, void> {
    return this.#changes.read(options)
  }

  /**
   * Acknowledges entries of the shards' change streams for a group. Resolves with how many the group had not acknowledged before.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered; some may have been acknowledged
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * for await (const { position } of mails.changes({ group: 'audit' })) await mails.acknowledgeChanges('audit', position)
   * ```
   */
  acknowledgeChanges(group: string, ...positions: readonly ShardedChangePosition[]): Promise<number> {
    return this.#changes.acknowledge(group, positions)
  }

  /**
   * Removes a group of readers from all shards. False if no shard has a group of this name.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered; call it again
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * console.log(await mails.removeChangeGroup('audit'))
   * ```
   */
  removeChangeGroup(group: string): Promise<boolean> {
    return this.#changes.removeGroup(group)
  }

  /**
   * The state of each shard's change stream and its groups, in the order of `shards`.
   *
   * @throws ConnectionError `ERR_CONNECTION`: of one shard, after the others have answered
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * for (const { length, groups } of await mails.changeStatus()) console.log(length, groups)
   * ```
   */
  changeStatus(): Promise<ChangeStatus[]> {
    return this.#changes.status()
  }

  /**
   * Makes the events of all shards report the changes by all processes, until the returned function is called. As
   * `ReliableQueue.allEvents`.
   *
   * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: a shard keeps no changes
   * @throws ConnectionError `ERR_CONNECTION`, WrongTypeError `ERR_WRONG_TYPE`
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * await mails.setConfig({ changes: { keep: 'recent' } })
   * const end = await mails.allEvents()
   * mails.on('acknowledged', ({ ids }) => console.log('some process has handled', ids))
   * await end()
   * ```
   */
  allEvents(): Promise<() => Promise<void>> {
    return this.#changes.allEvents()
  }

  /**
   * Listens to the events of the shards from this client, or, while `allEvents` is on, from any client; `queue` of an event is the shard's
   * name.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * mails.on('rejected', ({ queue, count }) => console.warn(count, 'dead letters in', queue))
   * ```
   */
  on<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#listeners.on(name, listener)
    return this
  }

  /**
   * As `on`, for the next event of any shard only.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
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
   * const mails = client.getShardedReliableQueue<Mail>('mails', { shards: 12 })
   * const log = ({ count }: { count: number }) => console.log(count)
   * mails.on('added', log).off('added', log)
   * ```
   */
  off<K extends EventName>(name: K, listener: Listener<K>): this {
    this.#listeners.off(name, listener)
    return this
  }

  async #find(id: string, action: (queue: ReliableQueue<T>) => Promise<boolean>): Promise<boolean> {
    this.#assertIds([id])
    return this.#shards.find(id, action)
  }

  #assertIds(ids: readonly string[]): void {
    ids.forEach((id, at) => assertKnownId(ids.length === 1 ? 'id' : `ids[${at}]`, id))
  }
}

/** @internal */
export function shardedReliableQueue<T>(
  reliable: ReliableContext,
  { name, codec }: { readonly name: string; readonly codec: Codec<T> },
  options: ShardedReliableQueueOptions<T>,
  identify: (name: string) => ReliableIdentity<T>,
): ShardedReliableQueue<T> {
  const { shards, covered, isChanging } = resolveShardedReliableOptions(options)
  const queues = Array.from({ length: covered }, (_, shard) => {
    return new ReliableQueue(reliable, identify(reliable.queues.shardNames.of(name, shard)))
  })
  return new ShardedReliableQueue(reliable, { name, codec, queues, shards, isChanging })
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
