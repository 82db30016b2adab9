import type { Delivery } from './handling.js'
import type { Headers } from './record.js'

/** How a message that was not handled goes back. */
export interface NegativeOptions {
  /** It is visible again after so many milliseconds. Default 0. */
  readonly delay?: number | undefined
  /** It goes to the dead letters at once, or is removed where the queue keeps none. Default false. */
  readonly reject?: boolean | undefined
  /** This delivery does not count as an attempt, and nothing is noted: the message had no part in it. Default false. */
  readonly uncounted?: boolean | undefined
  /** Why; its name and message are kept with the message. */
  readonly error?: unknown
}

/** What a message can be asked to do, by the queue it came from. */
export interface MessageActions {
  acknowledge(delivery: Delivery): Promise<boolean>
  negativeAcknowledge(delivery: Delivery, options?: NegativeOptions): Promise<boolean>
  extend(delivery: Delivery, visibility?: number): Promise<number | null>
}

/** One delivery of a message. Until its visibility ends nobody else gets it. */
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
  /** @internal */
  readonly delivery: Delivery
  readonly #actions: MessageActions
  #visibleUntil: number

  /** @internal */
  constructor(
    actions: MessageActions,
    delivery: Delivery,
    content: { id: string; payload: T; headers: Headers; visibleAt: number; visibleUntil: number },
  ) {
    this.#actions = actions
    this.delivery = delivery
    this.id = content.id
    this.payload = content.payload
    this.headers = content.headers
    this.priority = delivery.priority
    this.attempt = Number.parseInt(delivery.lease, 10)
    this.visibleAt = content.visibleAt
    this.#visibleUntil = content.visibleUntil
  }

  /** When somebody else can get it, epoch milliseconds by the Redis clock. */
  get visibleUntil(): number {
    return this.#visibleUntil
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
  async extend(visibility?: number): Promise<boolean> {
    const until = await this.#actions.extend(this.delivery, visibility)
    if (until !== null) this.#visibleUntil = until
    return until !== null
  }

  /** @internal */
  onExtended(until: number): void {
    this.#visibleUntil = until
  }
}
