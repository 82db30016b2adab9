import type { Claim, PolledRecord } from '../store/reliable-scripts.js'
import type { ProgressOptions } from './progress.js'
import { receiptOf } from './receipt.js'
import type { Headers } from './record.js'
import type { Duration } from '../duration.js'

/** How a message that was not handled goes back. */
export interface NegativeOptions {
  /** It is visible again after so many milliseconds. Default 0. */
  readonly delay?: Duration | undefined
  /** It goes to the dead letters at once, or is removed where the queue keeps none. Default false. */
  readonly reject?: boolean | undefined
  /** False: this delivery is no attempt, and nothing is noted, because the message had no part in it. Default true. */
  readonly countAttempt?: boolean | undefined
  /** Why; its name and message are kept with the message. */
  readonly error?: unknown
}

/** What goes with an acknowledgement. */
export interface AcknowledgeOptions {
  /**
   * What came of the message, for those who wait for it; kept where the queue keeps completed messages (`keepCompleted`), as the queue's codec writes it. `null`
   * and `undefined` are none.
   */
  readonly result?: unknown
}

/** What a message asks of the queue it came from. */
export interface MessageActions {
  /** Identifies that queue. */
  readonly queueKey: string
  acknowledge(message: Claim, options?: AcknowledgeOptions): Promise<boolean>
  negativeAcknowledge(message: Claim, options?: NegativeOptions): Promise<boolean>
  extend(message: ReliableMessage, visibilityTimeout?: Duration): Promise<boolean>
  progress(message: ReliableMessage, value: unknown, options?: ProgressOptions): Promise<boolean>
}

/** One delivery of a message. Until its visibility ends no other consumer gets it. */
export class ReliableMessage<T = unknown> {
  readonly id: string
  readonly payload: T
  readonly headers: Headers
  /** 0 to 9, 9 the highest. */
  readonly priority: number
  /** The group that it was added with; `null` for none. */
  readonly group: string | null
  /** The number of this delivery, from 1. */
  readonly attempt: number
  /** Since when it could be delivered, epoch milliseconds by the Redis clock. */
  readonly visibleAt: number
  /** When it was handed out, epoch milliseconds by the Redis clock. */
  readonly polledAt: number
  /** @internal */
  readonly member: string | Buffer
  /** @internal */
  readonly delivery: string
  /** @internal How many bytes it has as it is stored. */
  readonly storedBytes: number
  /** @internal How many extensions are under way. */
  extensions = 0
  /**
   * @internal Prefetched once before and never begun: it may have killed its process when it was decoded or handled. So it is begun first,
   * which counts the delivery, and decoded only then.
   */
  isSuspect: boolean
  readonly #actions: MessageActions
  #visibleUntil: number
  #heldUntil: number

  /** @internal */
  constructor(
    actions: MessageActions,
    polled: PolledRecord,
    headers: Headers,
    payload: T,
    group: string | null = null,
  ) {
    this.#actions = actions
    this.id = polled.id
    this.payload = payload
    this.headers = headers
    this.priority = polled.priority
    this.group = group
    this.attempt = attemptOf(polled)
    this.visibleAt = polled.visibleAt
    this.polledAt = polled.polledAt
    this.member = polled.member
    this.delivery = polled.delivery
    this.storedBytes = polled.record.length
    this.isSuspect = isSuspect(polled)
    this.#visibleUntil = polled.visibleUntil
    this.#heldUntil = polled.heldUntil
  }

  /** When another consumer can get it, epoch milliseconds by the Redis clock. */
  get visibleUntil(): number {
    return this.#visibleUntil
  }

  /**
   * This delivery as a short text of URL-safe characters. Every process can acknowledge, give back or extend the message with it, through a queue of
   * the same name: where a message is handed on, such as over HTTP, it goes along. It has the message's id, and is as secret as the right to acknowledge.
   */
  get receipt(): string {
    return receiptOf(this)
  }

  /** @internal */
  get queueKey(): string {
    return this.#actions.queueKey
  }

  /** @internal Until then no other consumer gets it, by this process's monotonic clock; a little earlier than by the Redis clock. */
  get heldUntil(): number {
    return this.#heldUntil
  }

  /** @internal */
  get isHeld(): boolean {
    return performance.now() < this.#heldUntil
  }

  /**
   * Removes the message: it was handled. Resolves with false when it was not yours any more; then nothing was changed.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the message may have been removed
   *
   * @example
   * ```ts
   * if (!(await message.acknowledge())) console.warn('another consumer has it by now')
   * ```
   */
  acknowledge(options?: AcknowledgeOptions): Promise<boolean> {
    return this.#actions.acknowledge(this, options)
  }

  /**
   * Gives the message back: it was not handled. Resolves with false when it was not yours any more; then nothing was changed.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: its `outcome` says whether the message may have been given back
   *
   * @example
   * ```ts
   * await message.negativeAcknowledge({ delay: 5_000, error: new Error('the server is busy') })
   * ```
   */
  negativeAcknowledge(options?: NegativeOptions): Promise<boolean> {
    return this.#actions.negativeAcknowledge(this, options)
  }

  /**
   * Extends the visibility: to so many milliseconds from now (at least 1; default: what the queue says). Resolves with false when the
   * message was not yours any more.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: the message may have been extended
   *
   * @example
   * ```ts
   * await message.extend(60_000)
   * ```
   */
  extend(visibilityTimeout?: Duration): Promise<boolean> {
    return this.#actions.extend(this, visibilityTimeout)
  }

  /**
   * Says how far the message is: a number, or any value of at most 4,096 bytes of the queue's codec, in the place of the last one. Every process sees it by `get`, and,
   * where the queue keeps changes, by `changes` and the event `progress`. It stays with the message when this is delivered again or becomes a dead letter, and goes
   * with its end. Resolves with false when the message was not yours any more; then nothing was changed.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: the progress may have been kept
   *
   * @example
   * ```ts
   * await message.progress(50, { extend: '30s' })
   * ```
   */
  progress(value: unknown, options?: ProgressOptions): Promise<boolean> {
    return this.#actions.progress(this, value, options)
  }

  /** @internal Of a suspect that was begun. */
  open(payload: T): void {
    ;(this as { payload: T }).payload = payload
    this.isSuspect = false
  }

  /** @internal `heldUntil`: where the caller does not know it, it moves as far as `until` does. */
  onExtended(until: number, heldUntil: number = this.#heldUntil + until - this.#visibleUntil): void {
    this.#visibleUntil = until
    this.#heldUntil = heldUntil
  }
}

/** See `ReliableMessage.isSuspect`; the poll script says it so. */
export function isSuspect({ delivery }: Claim): boolean {
  return delivery.includes(' ~')
}

/** The number of a delivery, from 1. */
export function attemptOf({ delivery }: Claim): number {
  return Number.parseInt(delivery, 10)
}
