import { namesOperations } from '../queues/operations.js'
import type { Claim, PolledRecord } from '../store/reliable-scripts.js'
import type { ProgressOptions } from './progress.js'
import { receiptOf } from './receipt.js'
import type { Headers } from './record.js'
import type { Duration } from '../duration.js'

/** How an unhandled message is given back. */
export interface NegativeOptions {
  /** After how many milliseconds the message is visible again. Default 0. */
  readonly delay?: Duration | undefined
  /** Moves the message to the dead letters at once, or removes it if the queue keeps none. Default false. */
  readonly reject?: boolean | undefined
  /**
   * False: this delivery does not count as an attempt and is not in the history, because the message did not cause the failure. Default
   * true.
   */
  readonly countAttempt?: boolean | undefined
  /** The reason; its name and message are stored with the message. */
  readonly error?: unknown
}

/** Options of an acknowledgement. */
export interface AcknowledgeOptions {
  /**
   * The result of the message for `waitUntilFinished`, encoded with the queue's codec; kept if the queue keeps completed messages
   * (`keepCompleted`). `null` and `undefined` mean no result.
   */
  readonly result?: unknown
}

/** The operations of a message, which its queue carries out. */
export interface MessageActions {
  readonly queueName: string
  /** Identifies that queue. */
  readonly queueKey: string
  acknowledge(message: Claim, options?: AcknowledgeOptions): Promise<boolean>
  negativeAcknowledge(message: Claim, options?: NegativeOptions): Promise<boolean>
  extend(message: ReliableMessage, visibilityTimeout?: Duration): Promise<boolean>
  progress(message: ReliableMessage, value: unknown, options?: ProgressOptions): Promise<boolean>
}

/** One delivery of a message. Until its visibility timeout ends no other consumer gets it. */
export class ReliableMessage<T = unknown> {
  readonly id: string
  readonly payload: T
  readonly headers: Headers
  /** The priority, 0 to 9, 9 the highest. */
  readonly priority: number
  /** The message's group; `null` for none. */
  readonly group: string | null
  /** The number of this delivery, from 1. */
  readonly attempt: number
  /** Since when the message could be delivered, epoch milliseconds by the Redis clock. */
  readonly visibleAt: number
  /** When the message was handed out, epoch milliseconds by the Redis clock. */
  readonly polledAt: number
  /** @internal */
  readonly member: string | Buffer
  /** @internal */
  readonly delivery: string
  /** @internal The stored size in bytes. */
  readonly storedBytes: number
  /** @internal How many extensions are under way. */
  extensions = 0
  /**
   * @internal The message was prefetched before and never begun: it may have killed its process when it was decoded or handled. So the
   *   worker begins it first, which counts the delivery, and decodes it only then.
   */
  isSuspect: boolean
  readonly #actions: MessageActions
  #visibleUntil: number
  #heldUntil: number

  static {
    namesOperations(this, { queueOf: (message) => message.#actions.queueName })
  }

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
   * This delivery as a short text of URL-safe characters. With it, any process can acknowledge, give back or extend the message through a
   * queue of the same name, such as after handing the message on over HTTP. It contains the message's id, and whoever has it can
   * acknowledge the message.
   */
  get receipt(): string {
    return receiptOf(this)
  }

  /** @internal */
  get queueKey(): string {
    return this.#actions.queueKey
  }

  /** @internal The end of the visibility by this process's monotonic clock, a little earlier than by the Redis clock. */
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
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing
   *   was sent
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
   * Extends the visibility to `visibilityTimeout` milliseconds from now (at least 1; default: the queue's). Resolves with false when the
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
   * Reports the progress of the message: a number, or any value of at most 4,096 encoded bytes, which replaces the last one. Every process
   * can read it with `get` and, if the queue keeps changes, with `changes` and the event `progress`. The progress stays with the message
   * through redeliveries and in the dead letters, and is removed with the message. Resolves with false when the message was not yours any
   * more; then nothing was changed.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`, EncodeError `ERR_ENCODE`, PayloadTooLargeError `ERR_PAYLOAD_TOO_LARGE`: nothing
   *   was sent
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

  /** @internal Sets the payload of a suspect whose delivery was counted. */
  open(payload: T): void {
    ;(this as { payload: T }).payload = payload
    this.isSuspect = false
  }

  /** @internal `heldUntil` moves as far as `until` unless the caller knows it. */
  onExtended(until: number, heldUntil: number = this.#heldUntil + until - this.#visibleUntil): void {
    this.#visibleUntil = until
    this.#heldUntil = heldUntil
  }
}

/** Whether the poll script marked the delivery as suspect: see `ReliableMessage.isSuspect`. */
export function isSuspect({ delivery }: Claim): boolean {
  return delivery.includes(' ~')
}

/** The number of a delivery, from 1. */
export function attemptOf({ delivery }: Claim): number {
  return Number.parseInt(delivery, 10)
}
