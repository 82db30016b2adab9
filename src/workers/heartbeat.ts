import type { ReliableQueue } from '../reliable/reliable-queue.js'
import type { Assignment } from './assignment.js'
import type { InHand } from './in-hand.js'
import { VisibilityLostError } from './outcomes.js'

/** Extensions per visibility timeout: when one fails, two more follow before the message is lost. */
const BEATS = 3

/** Extends the messages of a worker until Redis has their outcome; an extension also marks messages whose handler has begun. */
export class Heartbeat {
  readonly #inHand: InHand
  readonly #visibilityTimeout: number
  readonly #onError: (thrown: unknown) => void
  readonly #timer: NodeJS.Timeout
  /** The queues whose messages are being extended now. */
  readonly #extending = new Set<ReliableQueue>()

  constructor(inHand: InHand, visibilityTimeout: number, onError: (thrown: unknown) => void) {
    this.#inHand = inHand
    this.#visibilityTimeout = visibilityTimeout
    this.#onError = onError
    this.#timer = setInterval(() => this.#beat(), visibilityTimeout / BEATS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Extends queue by queue, so that an unresponsive queue does not cost the others their messages. */
  #beat(): void {
    const queues = new Set<ReliableQueue>()
    for (const assignment of this.#inHand) {
      if (!assignment.message.isHeld) assignment.abort(new VisibilityLostError())
      queues.add(assignment.queue)
    }
    for (const queue of queues) {
      if (this.#extending.has(queue)) continue
      this.#extending.add(queue)
      void this.#extend(queue).finally(() => this.#extending.delete(queue))
    }
  }

  async #extend(queue: ReliableQueue): Promise<void> {
    const until = performance.now() + this.#visibilityTimeout
    const isUnbegun = ({ begunAt }: Assignment): boolean => begunAt === undefined
    // never shortens the extension of a handler
    const due = [...this.#inHand].filter(
      ({ queue: from, message }) => from === queue && message.extensions === 0 && message.heldUntil < until,
    )
    if (due.length === 0) return
    const unbegun = due.filter(isUnbegun)
    const own = [...unbegun, ...due.filter((assignment) => !isUnbegun(assignment))]
    try {
      const messages = own.map(({ message }) => message)
      const extended = await queue.extendSome(messages, unbegun.length, this.#visibilityTimeout)
      own.forEach((assignment, at) => {
        if (extended[at] === false && this.#inHand.has(assignment)) assignment.abort(new VisibilityLostError())
      })
    } catch (thrown) {
      this.#onError(thrown)
    }
  }
}
