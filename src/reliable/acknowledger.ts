import { CommandError, InvalidArgumentError, PayloadTooLargeError, inWords, toError } from '../errors.js'
import type { MessagesEventName } from '../events.js'
import { boolean, onlyKnown } from '../options.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import { warnOfTimestamp } from '../queues/warn-of-timestamp.js'
import type { Claim } from '../store/reliable-scripts.js'
import { AS_SET, MOST_HANDLED, NO_DEAD_LETTER, type GiveBack, type ReliableStore } from '../store/reliable-store.js'
import { clean, cut } from '../text.js'
import { systemClock } from '../timing/clock.js'
import { Seldom } from '../timing/seldom.js'
import { TurnCollector } from '../timing/turn-collector.js'
import { durationMs, type Duration } from '../duration.js'
import { visibilityMs } from './visibility.js'
import { ReliableMessage, type AcknowledgeOptions, type MessageActions, type NegativeOptions } from './message.js'
import { MAX_PROGRESS_BYTES, type ProgressOptions } from './progress.js'
import { claimOf } from './receipt.js'

/** A call whose acknowledgement is sent at the end of this turn of the event loop. */
interface Waiting {
  readonly claim: Claim
  readonly result: Buffer | null
  readonly resolve: (isDone: boolean) => void
  readonly reject: (error: unknown) => void
}

const MAX_REASON_BYTES = 2_000

/** The operations of a consumer on its messages. Each method resolves with whether the message was still the consumer's. */
export class Acknowledger<T> implements MessageActions {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore
  readonly #acknowledgements = new TurnCollector<Waiting>(
    (waiting) => void this.#acknowledgeTogether(waiting),
    MOST_HANDLED,
  )
  readonly #seldom = new Seldom(systemClock)

  constructor(handle: QueueHandle<T>, store: ReliableStore) {
    this.#handle = handle
    this.#store = store
  }

  get queueName(): string {
    return this.#handle.name
  }

  get queueKey(): string {
    return this.#store.keys.messages
  }

  /** As `acknowledgeMany`, in one script with all other calls of this turn. */
  acknowledge(claim: Claim, options?: AcknowledgeOptions): Promise<boolean> {
    return options === undefined ? this.#add(claim, null) : this.#addWith(claim, options)
  }

  async #addWith(claim: Claim, options: AcknowledgeOptions): Promise<boolean> {
    onlyKnown('options', options, ['result'])
    return this.#add(claim, this.resultOf(options.result))
  }

  #add(claim: Claim, result: Buffer | null): Promise<boolean> {
    return new Promise<boolean>((resolve, reject) => {
      this.#acknowledgements.add({ claim, result, resolve, reject })
    })
  }

  /** `results`: one for each message, `null` for none. */
  async acknowledgeMany(claims: readonly Claim[], results?: readonly (Buffer | null)[]): Promise<boolean[]> {
    const hasResults = results?.some((result) => result !== null) === true
    const answers = await this.#store.acknowledge(claims, hasResults ? results : undefined)
    this.#emit('acknowledged', claims, (at) => answers[at] === true)
    return answers
  }

  /** The bytes of a result; `null` for none. */
  resultOf(result: unknown): Buffer | null {
    return result === undefined || result === null ? null : this.#handle.encode(result as T, 'result')
  }

  async negativeAcknowledge(claim: Claim, options?: NegativeOptions): Promise<boolean> {
    const [isDone = false] = await this.giveBack([claim], giveBackOf(options))
    return isDone
  }

  async giveBack(claims: readonly Claim[], how: GiveBack): Promise<boolean[]> {
    const results = await this.#store.giveBack(claims, how)
    warnOfTimestamp(this.#handle.context, this.#handle.name, how.delayMs)
    if (how.how !== 'released') this.#emit('failed', claims, (at) => results[at] === 1)
    this.#emit('rejected', claims, (at) => results[at] === 2)
    if (results.includes(NO_DEAD_LETTER) && this.#seldom.may('the dead letters')) {
      const problem =
        'the dead letters: one of their keys holds another type of value; messages for them are delivered again'
      this.#handle.context.hub.emit('error', this.#handle.withQueueName(new CommandError('WRONGTYPE', problem)))
    }
    return results.map((result) => result > 0)
  }

  async extend(message: ReliableMessage, visibilityTimeout?: Duration): Promise<boolean> {
    const [isExtended = false] = await this.extendMany([message], 0, visibilityTimeout)
    return isExtended
  }

  /** Extends messages. The first `unbegun` are not being handled yet; the others count as attempts from now on. */
  async extendMany(
    claims: readonly (ReliableMessage | Claim)[],
    unbegun: number,
    visibilityTimeout: Duration | undefined,
  ): Promise<boolean[]> {
    const given = visibilityTimeout === undefined ? undefined : visibilityMs('visibilityTimeout', visibilityTimeout)
    const heldUntil = given === undefined ? undefined : performance.now() + given
    const messages = claims.map((claim) => (claim instanceof ReliableMessage ? claim : undefined))
    for (const message of messages) if (message) message.extensions++
    try {
      const ends = await this.#store.extend(claims, given ?? AS_SET, unbegun)
      ends.forEach((end, at) => {
        if (end !== null) messages[at]?.onExtended(end, heldUntil)
      })
      return ends.map((end) => end !== null)
    } finally {
      for (const message of messages) if (message) message.extensions--
    }
  }

  async progress(given: ReliableMessage | Claim, value: unknown, options: ProgressOptions = {}): Promise<boolean> {
    onlyKnown('options', options, ['extend'])
    const extendMs = extensionOf(options)
    const bytes = this.#handle.encode(value as T, 'progress')
    if (bytes.length > MAX_PROGRESS_BYTES) throw new PayloadTooLargeError(bytes.length, MAX_PROGRESS_BYTES)
    const isKept = await this.#keepProgress(given, bytes, extendMs)
    if (isKept) this.#handle.context.hub.progress(this.#handle.name, given.id, value)
    return isKept
  }

  async #keepProgress(given: ReliableMessage | Claim, bytes: Buffer, extendMs: number | null): Promise<boolean> {
    const message = given instanceof ReliableMessage && extendMs !== null ? given : undefined
    const heldUntil = extendMs === null || extendMs === AS_SET ? undefined : performance.now() + extendMs
    if (message) message.extensions++
    try {
      const end = await this.#store.progress(given, bytes, extendMs)
      if (end !== null) message?.onExtended(end, heldUntil)
      return end !== null
    } finally {
      if (message) message.extensions--
    }
  }

  /** The deliveries of messages and receipts. Throws for a message of another queue. */
  claimsOf<M extends ReliableMessage>(messages: readonly (M | string)[]): (M | Claim)[] {
    return messages.map((message, at) => {
      if (typeof message === 'string') return claimOf(`messages[${at}]`, message)
      const isMessage = message instanceof ReliableMessage
      if (isMessage && message.queueKey === this.queueKey) return message
      const received = isMessage ? inWords('one of another queue') : message
      throw new InvalidArgumentError(`messages[${at}]`, 'a message that was polled from this queue', received)
    })
  }

  async #acknowledgeTogether(waiting: readonly Waiting[]): Promise<void> {
    try {
      const claims = waiting.map(({ claim }) => claim)
      const kept = waiting.map(({ result }) => result)
      const results = await this.acknowledgeMany(claims, kept)
      waiting.forEach(({ resolve }, at) => resolve(results[at] === true))
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    }
  }

  #emit(event: MessagesEventName, claims: readonly Claim[], fits: (at: number) => boolean): void {
    const { name, context } = this.#handle
    if (!context.hub.hasListener(event, name)) return
    const ids = claims.filter((_, at) => fits(at)).map(({ id }) => id)
    context.hub.messages(event, name, ids)
  }
}

/** The extension of a progress in milliseconds; `null` for none. */
function extensionOf({ extend = false }: ProgressOptions): number | null {
  if (typeof extend === 'boolean') return extend ? AS_SET : null
  return visibilityMs('extend', extend)
}

export function giveBackOf(options: NegativeOptions = {}): GiveBack {
  onlyKnown('options', options, ['delay', 'reject', 'countAttempt', 'error'])
  const reject = boolean('reject', options.reject ?? false)
  const countAttempt = boolean('countAttempt', options.countAttempt ?? true)
  if (reject && !countAttempt) throw new InvalidArgumentError('countAttempt', 'true together with reject', countAttempt)
  return {
    how: reject ? 'rejected' : countAttempt ? 'failed' : 'released',
    delayMs: durationMs('delay', options.delay ?? 0),
    reason: reasonOf(options.error),
  }
}

/** An error as one line for the history: cleaned and without its stack, which may hold secrets. */
export function reasonOf(error: unknown): string {
  if (error === undefined) return '""'
  const { name, message } = toError(error)
  const text = error instanceof PayloadTooLargeError ? error.code : clean(`${name}: ${message}`, MAX_REASON_BYTES)
  // a character has at most three bytes per UTF-16 unit
  return JSON.stringify(
    Buffer.byteLength(text) <= MAX_REASON_BYTES ? text : cut(text, Math.floor(MAX_REASON_BYTES / 3)),
  )
}
