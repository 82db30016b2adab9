import { isTransient } from '../redis/replies/server-errors.js'
import {
  ConnectionError,
  DecodeError,
  PayloadTooLargeError,
  RedelayedError,
  ShutdownError,
  toError,
} from '../errors.js'
import type { ReliableMessage } from '../reliable/message.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { pause } from '../timing/pause.js'
import type { Handler, HandlerContext } from './handlers.js'
import { HandlerTimeoutError, RejectMessage, RetryLater, VisibilityLostError } from './outcomes.js'
import type { RetryDelay } from './retry-delays.js'

/** The outcome of a message in a worker. */
export type Outcome =
  | { readonly is: 'completed'; readonly result?: unknown }
  | { readonly is: 'deferred'; readonly delayMs: number }
  | { readonly is: 'failed'; readonly error: Error; readonly delayMs: number }
  | { readonly is: 'rejected'; readonly error: Error }
  | { readonly is: 'released' }
  /** Another consumer has the message, or will get it. */
  | { readonly is: 'lost'; readonly error: Error }

const ANSWER_RETRY_MS = 200

export const COMPLETED: Outcome = Object.freeze({ is: 'completed' })

/** One message of a worker, from its arrival until Redis has its outcome. */
export class Assignment {
  readonly queue: ReliableQueue
  readonly message: ReliableMessage
  /** The name of the worker's queue, of which `queue` may be a shard. */
  readonly source: string
  /** The encoded result of the handler; `null` for none. */
  result: Buffer | null = null
  /** When the handler was called, by the monotonic clock. */
  begunAt: number | undefined
  /** Whether the handler has ended; Redis may not have the outcome yet. */
  isHandled = false
  /** Its place in `InHand`, which alone sets it. */
  place: number | undefined
  #abort: AbortController | undefined
  #reason: Error | undefined
  /** Ends the wait for the handler. */
  #cut: ((reason: Error) => void) | undefined

  constructor(queue: ReliableQueue, message: ReliableMessage, source = queue.name) {
    this.queue = queue
    this.message = message
    this.source = source
  }

  abort(reason: Error): void {
    this.#reason ??= reason
    this.#abort?.abort(this.#reason)
    this.#cut?.(this.#reason)
  }

  /**
   * Runs the handler, unless the message is lost; a result that is not a promise costs none. Never throws or rejects. A suspect is begun
   * first with `visibilityTimeout`.
   */
  handle(
    handler: Handler,
    timeout: number | undefined,
    retryDelay: RetryDelay,
    visibilityTimeout: number,
  ): Outcome | Promise<Outcome> {
    this.begunAt = performance.now()
    if (this.message.isSuspect) return this.#handleSuspect(handler, timeout, retryDelay, visibilityTimeout)
    // there may have been no heartbeat: the previous handler can have blocked the process
    if (!this.message.isHeld) this.abort(new VisibilityLostError())
    if (this.#reason !== undefined) return this.#outcomeOf(this.#reason, retryDelay)
    try {
      const result = handler(this.message.payload, new Context(this))
      if (isThenable(result))
        return this.#end(result, timeout).then(outcomeOf, (thrown: unknown) => this.#outcomeOf(thrown, retryDelay))
      const reason = this.#reason as Error | undefined // set if the handler's call aborted it
      return reason === undefined ? outcomeOf(result) : this.#outcomeOf(reason, retryDelay)
    } catch (thrown) {
      return this.#outcomeOf(thrown, retryDelay)
    }
  }

  async #handleSuspect(
    handler: Handler,
    timeout: number | undefined,
    retryDelay: RetryDelay,
    visibilityTimeout: number,
  ): Promise<Outcome> {
    try {
      if (!(await this.queue.begin(this.message, visibilityTimeout))) this.abort(new VisibilityLostError())
    } catch (thrown) {
      const error = toError(thrown)
      // A message that cannot be decoded has failed. After any other error Redis redelivers the message when its visibility timeout ends.
      if (error instanceof DecodeError || error instanceof PayloadTooLargeError)
        return this.#outcomeOf(error, retryDelay)
      return { is: 'lost', error }
    }
    this.message.isSuspect = false
    return this.handle(handler, timeout, retryDelay, visibilityTimeout)
  }

  /**
   * Sends the outcome to Redis, and retries as long as no other consumer can have the message. Where that fails, Redis redelivers the
   * message when its visibility timeout ends. `answer` is the result of an earlier attempt.
   */
  async settle(outcome: Outcome, mayTryAgain: () => boolean, answer?: boolean | Error): Promise<Outcome> {
    if (outcome.is === 'lost') return outcome
    // a client that resends by itself may get false although the first attempt was carried out
    let isUnknown = this.queue.context.commands.resends
    for (; ; answer = undefined) {
      answer ??= await this.#send(outcome).catch(toError)
      if (answer === true) return outcome
      // false while the message is held: most likely an attempt with a lost reply was carried out
      if (answer === false) {
        return isUnknown && this.message.isHeld ? outcome : { is: 'lost', error: new VisibilityLostError() }
      }
      const mayPass = answer instanceof RedelayedError && isTransient(answer)
      if (!mayPass || !this.message.isHeld || !mayTryAgain()) return { is: 'lost', error: answer }
      isUnknown ||= answer instanceof ConnectionError && answer.outcome === 'unknown'
      await pause(ANSWER_RETRY_MS)
    }
  }

  /** Settles as the handler's promise, or rejects with the signal's reason, whichever is first: a handler may never end. */
  #end(result: PromiseLike<unknown>, timeout: number | undefined): Promise<unknown> {
    const ended = new Promise<unknown>((resolve, reject) => {
      this.#cut = reject
      if (this.#reason !== undefined) reject(this.#reason)
      void Promise.resolve(result).then(resolve, reject)
    })
    if (timeout === undefined) return ended
    const passed = performance.now() - (this.begunAt ?? NaN) // until the handler returned its promise
    const timer = setTimeout(() => this.abort(new HandlerTimeoutError(timeout)), Math.max(0, timeout - passed))
    return ended.finally(() => clearTimeout(timer))
  }

  /** Made on first use: most handlers need none, and it costs more than the rest. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#reason !== undefined) this.#abort.abort(this.#reason)
    }
    return this.#abort.signal
  }

  async #send(outcome: Outcome): Promise<boolean> {
    const { message } = this
    switch (outcome.is) {
      case 'completed':
        if (this.result === null) return message.acknowledge()
        return (await this.queue.complete([message], [this.result]))[0] === true
      case 'deferred':
        return message.negativeAcknowledge({ delay: outcome.delayMs, countAttempt: false })
      case 'failed':
        return message.negativeAcknowledge({ delay: outcome.delayMs, error: outcome.error })
      case 'rejected':
        return message.negativeAcknowledge({ reject: true, error: outcome.error })
      case 'released':
        return message.negativeAcknowledge({ countAttempt: false })
      case 'lost':
        return false
    }
  }

  #outcomeOf(thrown: unknown, retryDelay: RetryDelay): Outcome {
    if (thrown instanceof RetryLater) return { is: 'deferred', delayMs: thrown.delayMs }
    const error = toError(thrown)
    if (thrown === this.#reason) {
      // only the worker makes this error; any error of a handler is a failure
      if (error instanceof VisibilityLostError) return { is: 'lost', error }
      if (error instanceof ShutdownError) return { is: 'released' }
    }
    if (error instanceof RejectMessage) return { is: 'rejected', error }
    return { is: 'failed', error, delayMs: retryDelay(this.message.attempt, error) }
  }
}

/** All contexts share one getter (decision 0052). The property is the object's own, so that a copy has it. */
class Context implements HandlerContext {
  static readonly #SIGNAL = {
    enumerable: true,
    configurable: true,
    get(this: Context): AbortSignal {
      return this.#assignment.signal
    },
  }

  readonly queue: string
  readonly message: ReliableMessage
  declare readonly signal: AbortSignal
  readonly #assignment: Assignment

  constructor(assignment: Assignment) {
    this.queue = assignment.source
    this.message = assignment.message
    this.#assignment = assignment
    Object.defineProperty(this, 'signal', Context.#SIGNAL)
  }
}

/** Whether `await` would wait for the value; also a function can be thenable, such as a proxy for a remote call. */
function isThenable(result: unknown): result is PromiseLike<unknown> {
  if ((typeof result !== 'object' && typeof result !== 'function') || result === null) return false
  return 'then' in result && typeof result.then === 'function'
}

function outcomeOf(result: unknown): Outcome {
  if (result instanceof RetryLater) return { is: 'deferred', delayMs: result.delayMs }
  return result === undefined || result === null ? COMPLETED : { is: 'completed', result }
}
