import type { Delivery } from './delivery.js'
import type { Headers } from './record.js'

/** How a message that was not handled goes back. */
export interface NegativeOptions {
  /** It is visible again after so many milliseconds. Default 0. */
  readonly delay?: number | undefined
  /** It goes to the dead letters at once, or is removed where the queue keeps none. Default false. */
  readonly reject?: boolean | undefined
  /** False: this delivery is no attempt, and nothing is noted, because the message had no part in it. Default true. */
  readonly countAttempt?: boolean | undefined
  /** Why; its name and message are kept with the message. */
  readonly error?: unknown
}

/** What a message can be asked to do, by the queue it came from. */
export interface MessageActions {
  /** Identifies that queue. */
  readonly queueKey: string
  acknowledge(delivery: Delivery): Promise<boolean>
  negativeAcknowledge(delivery: Delivery, options?: NegativeOptions): Promise<boolean>
  extend(message: ReliableMessage, visibilityTimeout?: number): Promise<boolean>
}

/** What a delivery is made of. */
export interface MessageContent<T> {
  readonly payload: T
  readonly headers: Headers
  readonly visibleAt: number
  readonly polledAt: number
  readonly visibleUntil: number
  readonly heldUntil: number
}

/** One delivery of a message. Until its visibility ends no other consumer gets it. */
export class ReliableMessage<T = unknown> {
  readonly id: string
  readonly payload: T
  readonly headers: Headers
  /** 0 to 9, 9 the highest. */
  readonly priority: number
  /** The number of this delivery, from 1. */
  readonly attempt: number
  /** Since when it could be delivered, epoch milliseconds by the Redis clock. */
  readonly visibleAt: number
  /** When it was handed out, epoch milliseconds by the Redis clock. */
  readonly polledAt: number
  /** @internal */
  readonly delivery: Delivery
  /** @internal How many extensions are under way. */
  extensions = 0
  /**
   * @internal Taken beforehand once before and never begun: it may have killed its process when it was decoded or handled. So it is begun first,
   * which counts the delivery, and decoded only then.
   */
  isSuspect = false
  readonly #actions: MessageActions
  #visibleUntil: number
  #heldUntil: number

  /** @internal */
  constructor(actions: MessageActions, delivery: Delivery, content: MessageContent<T>) {
    this.#actions = actions
    this.delivery = delivery
    this.id = delivery.id
    this.payload = content.payload
    this.headers = content.headers
    this.priority = delivery.priority
    this.attempt = attemptOf(delivery)
    this.visibleAt = content.visibleAt
    this.polledAt = content.polledAt
    this.#visibleUntil = content.visibleUntil
    this.#heldUntil = content.heldUntil
  }

  /** When another consumer can get it, epoch milliseconds by the Redis clock. */
  get visibleUntil(): number {
    return this.#visibleUntil
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

  /** It was handled: removes it. False when it was not yours any more; then nothing was changed. */
  acknowledge(): Promise<boolean> {
    return this.#actions.acknowledge(this.delivery)
  }

  /** It was not handled. False when it was not yours any more; then nothing was changed. */
  negativeAcknowledge(options?: NegativeOptions): Promise<boolean> {
    return this.#actions.negativeAcknowledge(this.delivery, options)
  }

  /** More time: so many milliseconds from now (at least 1; default: what the queue says). False when it was not yours any more. */
  extend(visibilityTimeout?: number): Promise<boolean> {
    return this.#actions.extend(this, visibilityTimeout)
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
export function isSuspect({ lease }: Delivery): boolean {
  return lease.includes(' ~')
}

/** The number of a delivery, from 1. */
export function attemptOf({ lease }: Delivery): number {
  return Number.parseInt(lease, 10)
}
