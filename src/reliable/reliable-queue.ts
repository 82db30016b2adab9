import { AddManyError, InternalError, InvalidArgumentError, RedelayedError, inWords, toError } from '../errors.js'
import { deadLettersOf } from '../keys.js'
import { boolean, integer, nonEmptyString, oneOf, onlyKnown } from '../options.js'
import { toMillis } from '../timing/units.js'
import {
  HOW_OPTIONS,
  ITEM_OPTIONS,
  howOf,
  positive,
  prepare,
  type AddItem,
  type AddManyOptions,
  type AddOptions,
  type How,
  type PendingMessage,
} from './add-options.js'
import { Adder, toRedelayed, type Added } from './additions.js'
import { identify, type ReliableContext, type ReliableIdentity } from './context.js'
import type { Delivery } from './delivery.js'
import { Acknowledger, reasonOf, type GiveBack } from './handling.js'
import { ReliableMessage, isSuspect, type MessageActions, type NegativeOptions } from './message.js'
import { idOf } from './message-id.js'
import type { Polled } from './poller.js'
import { Claims } from './polling.js'
import { TASK_HEADER, checkHeaders, readRecord } from './record.js'
import { ReliableRepeats } from './reliable-repeats.js'
import { groupUnreadable, type Unreadable, type UnreadableGroup } from './unreadable.js'

export interface PollOptions {
  /**
   * How long to wait for a message, in milliseconds; `Infinity` waits without end. Without it nothing is waited for.
   */
  readonly timeout?: number | undefined
  /** For how many milliseconds no other consumer gets it. At least 1; default: what the queue's configuration says, else 30,000. */
  readonly visibilityTimeout?: number | undefined
  /** `'auto'` acknowledges before you have it: at most once. Default `'manual'`. */
  readonly acknowledge?: 'manual' | 'auto' | undefined
  readonly signal?: AbortSignal | undefined
}

export interface PollManyOptions extends PollOptions {
  /** At most so many. 1 to 1,000. */
  readonly count: number
}

const ID_BYTES = 8
/** What the scripts take for "as the queue says". */
const UNSAID = -1

/**
 * A queue whose messages stay until they are acknowledged: at least once. A message becomes visible after its delay, is handed
 * to one consumer for its visibility, and comes back when that ends without an acknowledgement. The vocabulary is that of
 * Redisson's RReliableQueue; the keys are this package's own.
 */
export class ReliableQueue<T = unknown> extends ReliableRepeats<T> {
  readonly #additions: Adder
  readonly #handling: Acknowledger
  readonly #actions: MessageActions
  readonly #polling: Claims

  /** @internal */
  constructor(reliable: ReliableContext, identity: ReliableIdentity<T>) {
    super(reliable, identity)
    this.#additions = new Adder(reliable, identity)
    this.#handling = new Acknowledger(reliable, identity)
    this.#actions = {
      queueKey: identity.keys.messages,
      acknowledge: (delivery) => this.handle.attribute(this.#handling.acknowledge(delivery)),
      negativeAcknowledge: (delivery, options) => this.#giveBack(delivery, options),
      extend: (message, visibilityTimeout) => this.#extend(message as ReliableMessage<T>, visibilityTimeout),
    }
    this.#polling = new Claims(reliable, identity, this.#handling, this.repeats)
  }

  /**
   * Adds a message. Resolves when Redis has it, or, with `durability`, when those have it that it names. Where connections break, a message that is visible at once can be handled before the repetition of
   * its `add` comes, which adds it once more; `deduplicate` by an id of your own prevents that.
   *
   * @throws InvalidArgumentError, EncodeError, PayloadTooLargeError: nothing was sent
   * @throws QueueFullError, OperationDisabledError: it was not added
   * @throws ConnectionError its `outcome` says whether the message may have been added
   * @throws DurabilityError it was accepted, but is not as durable as asked in time; `added` is what became of it
   * @throws UnsupportedServerError the server does not have what `durability` needs: nothing was sent
   */
  async add(payload: T, options: AddOptions = {}): Promise<Added> {
    const { pending, how } = this.handle.checked(() => {
      onlyKnown('options', options, [...ITEM_OPTIONS, ...HOW_OPTIONS])
      return { pending: this.#prepare(payload, options, 'payload'), how: howOf(options) }
    })
    const [result] = await this.#add([pending], how)
    if (result !== undefined && !(result instanceof RedelayedError)) return result
    throw this.handle.withQueueName(result ?? new InternalError('add-result', 'there is none'))
  }

  /**
   * Adds many messages in few round trips; resolves with what became of each, in order. All are checked and encoded before
   * anything is sent. They are independent of each other: some may be added and others not.
   *
   * @throws AddManyError names those that were not added, and has the results of the others; with `durability` also those that
   *   were accepted but are not as durable as asked, by a DurabilityError that says what became of them
   */
  async addMany(items: Iterable<AddItem<T>>, options: AddManyOptions = {}): Promise<Added[]> {
    const { pending, how } = this.handle.checked(() => {
      onlyKnown('options', options, HOW_OPTIONS)
      const pending = Array.from(items, (item, at) => {
        onlyKnown(`items[${at}]`, item, [...ITEM_OPTIONS, 'payload'])
        return this.#prepare(item.payload, item, `items[${at}].payload`)
      })
      return { pending, how: howOf(options) }
    })
    const results = await this.#add(pending, how)
    const failures = results.flatMap((result, index) =>
      result instanceof RedelayedError ? [{ index, error: result }] : [],
    )
    if (failures.length === 0) return results as Added[]
    for (const { error } of failures) this.handle.withQueueName(error)
    const added = results.map((result) => (result instanceof RedelayedError ? null : result))
    throw new AddManyError(added, failures, { queue: this.name })
  }

  /** As `add`, for the worker's handler of that name: it gets `args`. */
  async addTask(task: string, args: T, options: AddOptions = {}): Promise<Added> {
    const headers = this.handle.checked(() => ({ ...options.headers, [TASK_HEADER]: nonEmptyString('task', task) }))
    return this.add(args, { ...options, headers })
  }

  /** Takes one message for its visibility; `null` when there is none, or none came in time. */
  async poll(options: PollOptions = {}): Promise<ReliableMessage<T> | null> {
    this.handle.checked(() => onlyKnown('options', options, ['timeout', 'visibilityTimeout', 'acknowledge', 'signal']))
    const [message = null] = await this.#poll({ ...options, count: 1 })
    return message
  }

  /** Takes up to `count` messages for their visibility: all that are there, or, with a timeout, as soon as there is any. */
  async pollMany(options: PollManyOptions): Promise<ReliableMessage<T>[]> {
    this.handle.checked(() => {
      onlyKnown('options', options, ['count', 'timeout', 'visibilityTimeout', 'acknowledge', 'signal'])
      integer('count', options.count, 1, 1_000)
    })
    return this.#poll(options)
  }

  /** @internal As `pollMany`, for a worker; `beforehand`: some of them are not handled at once. */
  pollFor(options: PollManyOptions, beforehand: boolean): Promise<ReliableMessage<T>[]> {
    return this.#poll(options, beforehand)
  }

  /** They were handled: removes them. One answer each: false for one that was not yours any more, and is left as it is. */
  async acknowledge(...messages: readonly ReliableMessage<T>[]): Promise<boolean[]> {
    const deliveries = this.handle.checked(() => this.#deliveriesOf(messages))
    return this.handle.attribute(this.#handling.acknowledgeMany(deliveries))
  }

  /** They were not handled. One answer each: false for one that was not yours any more, and is left as it is. */
  async negativeAcknowledge(
    messages: readonly ReliableMessage<T>[],
    options: NegativeOptions = {},
  ): Promise<boolean[]> {
    const { deliveries, how } = this.handle.checked(() => ({
      deliveries: this.#deliveriesOf(messages),
      how: giveBackOf(options),
    }))
    return this.handle.attribute(this.#handling.giveBack(deliveries, how))
  }

  /**
   * More time for messages: `visibilityTimeout` milliseconds from now (at least 1; default: what the queue says). One answer each: false for
   * one that was not yours any more.
   */
  async extend(messages: readonly ReliableMessage<T>[], visibilityTimeout?: number): Promise<boolean[]> {
    return this.extendSome(messages, 0, visibilityTimeout)
  }

  /** @internal Counts the delivery of a suspect, and decodes it then; false when it was not the caller's any more. */
  async begin(suspect: ReliableMessage<T>, visibilityTimeout: number): Promise<boolean> {
    const [isHeld = false] = await this.extend([suspect], visibilityTimeout)
    if (isHeld) suspect.open(this.handle.decode(suspect.payload as Buffer))
    return isHeld
  }

  /** @internal As `extend`; the first `unbegun` were taken beforehand and are not being handled yet. */
  async extendSome(
    messages: readonly ReliableMessage<T>[],
    unbegun: number,
    visibilityTimeout?: number,
  ): Promise<boolean[]> {
    const { deliveries, ms } = this.handle.checked(() => ({
      deliveries: this.#deliveriesOf(messages),
      ms: visibilityTimeout === undefined ? UNSAID : positive('visibilityTimeout', visibilityTimeout),
    }))
    const heldUntil = visibilityTimeout === undefined ? undefined : performance.now() + visibilityTimeout
    for (const message of messages) message.extensions++
    try {
      const ends = await this.handle.attribute(this.#handling.extend(deliveries, ms, unbegun))
      ends.forEach((end, at) => {
        if (end !== null) messages[at]?.onExtended(end, heldUntil)
      })
      return ends.map((end) => end !== null)
    } finally {
      for (const message of messages) message.extensions--
    }
  }

  /** The queue that gets what was rejected, or failed as often as it may. */
  get deadLetters(): ReliableQueue<T> {
    const { rawName, codec } = this.identity
    return new ReliableQueue(this.reliable, identify(deadLettersOf(this.name), deadLettersOf(rawName), codec))
  }

  /** Moves up to `count` (1 to 1,000; default 100) dead letters back, where they begin anew. Resolves with how many. */
  async redrive(count = 100): Promise<number> {
    this.handle.checked(() => integer('count', count, 1, 1_000))
    return this.deadLetters.moveTo(this.identity.keys, { ids: [], count, priority: 0 })
  }

  /** A shutdown lets what is waited for finish. */
  #add(pending: readonly PendingMessage[], how: How): Promise<(Added | RedelayedError)[]> {
    const add = () => this.#additions.many(pending, how)
    return how.wait === undefined ? add() : this.handle.attribute(this.context.durable.trackOperation(add))
  }

  async #poll(options: PollManyOptions, beforehand = false): Promise<ReliableMessage<T>[]> {
    const { visibilityTimeout, timeout, isFinal } = this.handle.checked(() => ({
      visibilityTimeout:
        options.visibilityTimeout === undefined ? UNSAID : positive('visibilityTimeout', options.visibilityTimeout),
      timeout: options.timeout === Infinity ? undefined : toMillis('timeout', options.timeout ?? 0),
      isFinal: oneOf('acknowledge', options.acknowledge ?? 'manual', ['manual', 'auto']) === 'auto',
    }))
    const { count, signal } = options
    const how = { visibilityMs: visibilityTimeout, beforehand }
    const deadline = timeout === undefined ? undefined : performance.now() + timeout
    for (;;) {
      if (signal?.aborted === true) throw toError(signal.reason)
      const polled =
        timeout === 0
          ? await this.handle.attribute(this.#polling.now(count, how))
          : await this.handle.attribute(this.#polling.wait(count, how, deadline, signal))
      const readable = await this.#accept(polled)
      const messages = isFinal ? await this.#acknowledged(readable) : readable
      this.#tellPolled(messages)
      if (messages.length > 0 || polled.length === 0) return messages
    }
  }

  #tellPolled(messages: readonly ReliableMessage<T>[]): void {
    const { hub } = this.context
    if (!hub.isHeard('polled', this.name)) return
    hub.messages(
      'polled',
      this.name,
      messages.map(({ id }) => id),
    )
  }

  /** What cannot be read here has failed: its delivery limit decides how often others are asked. */
  async #accept(polled: readonly Polled[]): Promise<ReliableMessage<T>[]> {
    const messages: ReliableMessage<T>[] = []
    const unreadable: Unreadable[] = []
    for (const delivery of polled) {
      try {
        messages.push(this.#message(delivery))
      } catch (thrown) {
        unreadable.push({ delivery, error: this.handle.withQueueName(toRedelayed(thrown)) })
      }
    }
    if (unreadable.length > 0) {
      await Promise.all(groupUnreadable(unreadable, this.codec.name).map((group) => this.#putOff(group)))
    }
    return messages
  }

  async #putOff({ deliveries, giveBack, error }: UnreadableGroup): Promise<void> {
    const { hub } = this.context
    await this.#handling.giveBack(deliveries, giveBack).catch((failed: unknown) => {
      // they come back when their visibility ends, and have failed then too
      hub.emit('error', this.handle.withQueueName(toRedelayed(failed)))
    })
    hub.emit('quarantined', { queue: this.name, reason: 'undecodable', count: deliveries.length, error })
  }

  /** Those that could be acknowledged: of the others it is unknown whether another consumer has them by now. */
  async #acknowledged(messages: readonly ReliableMessage<T>[]): Promise<ReliableMessage<T>[]> {
    const done = await this.acknowledge(...messages)
    return messages.filter((_, at) => done[at] === true)
  }

  #message(polled: Polled): ReliableMessage<T> {
    const { id, member, priority, lease, visibleAt, polledAt, visibleUntil, heldUntil } = polled
    const { headers, payload } = readRecord(polled.record)
    const times = { visibleAt, polledAt, visibleUntil, heldUntil }
    const delivery = { id, member, priority, lease }
    if (!isSuspect(delivery)) {
      return new ReliableMessage(this.#actions, delivery, { payload: this.handle.decode(payload), headers, ...times })
    }
    const suspect = new ReliableMessage<T>(this.#actions, delivery, { payload: payload as T, headers, ...times })
    suspect.isSuspect = true
    return suspect
  }

  #prepare(payload: T, given: Omit<AddOptions, keyof AddManyOptions>, what: string): PendingMessage {
    return prepare(this.#instrumented(given), this.handle.encode(payload, what), () =>
      idOf(this.context.ids.next(ID_BYTES)),
    )
  }

  #instrumented(given: Omit<AddOptions, keyof AddManyOptions>): Omit<AddOptions, keyof AddManyOptions> {
    const { instrumentation } = this.reliable
    if (instrumentation?.onAdd === undefined) return given
    return { ...given, headers: instrumentation.onAdd(this.name, checkHeaders(given.headers)) }
  }

  async #giveBack(delivery: Delivery, options: NegativeOptions = {}): Promise<boolean> {
    const how = this.handle.checked(() => giveBackOf(options))
    const [done = false] = await this.handle.attribute(this.#handling.giveBack([delivery], how))
    return done
  }

  async #extend(message: ReliableMessage<T>, visibilityTimeout: number | undefined): Promise<boolean> {
    const [extended = false] = await this.extend([message], visibilityTimeout)
    return extended
  }

  #deliveriesOf(messages: readonly unknown[]): Delivery[] {
    return messages.map((message, at) => {
      const isMessage = message instanceof ReliableMessage
      if (isMessage && message.queueKey === this.identity.keys.messages) return message.delivery
      const received = isMessage ? inWords('one of another queue') : message
      throw new InvalidArgumentError(`messages[${at}]`, 'a message that was polled from this queue', received)
    })
  }
}

function giveBackOf(options: NegativeOptions): GiveBack {
  onlyKnown('options', options, ['delay', 'reject', 'countAttempt', 'error'])
  const reject = boolean('reject', options.reject ?? false)
  const countAttempt = boolean('countAttempt', options.countAttempt ?? true)
  if (reject && !countAttempt) throw new InvalidArgumentError('countAttempt', 'true for what is rejected', countAttempt)
  return {
    how: reject ? 'rejected' : countAttempt ? 'failed' : 'released',
    delayMs: toMillis('delay', options.delay ?? 0),
    reason: reasonOf(options.error),
  }
}
