import { isTransient } from '../connection/server-errors.js'
import { ConnectionError, RedelayedError, ShutdownError, toError } from '../errors.js'
import type { ReliableMessage } from '../reliable/message.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { pause } from '../timing/pause.js'
import type { Handler } from './handlers.js'
import { HandlerTimeoutError, LeaseLostError, RejectMessage, RetryLater } from './outcomes.js'
import type { RetryDelay } from './retry-delays.js'

/** What became of a message in a worker. */
export type Outcome =
  | { readonly is: 'completed' }
  | { readonly is: 'deferred'; readonly delayMs: number }
  | { readonly is: 'failed'; readonly error: Error; readonly delayMs: number }
  | { readonly is: 'rejected'; readonly error: Error }
  | { readonly is: 'released' }
  /** Somebody else has it, or will. */
  | { readonly is: 'lost'; readonly error: Error }

const ANSWER_RETRY_MS = 200

/** One message in the hands of a worker, from when it came until Redis knows what became of it. */
export class Assignment {
  readonly queue: ReliableQueue
  readonly message: ReliableMessage
  readonly #abort = new AbortController()

  constructor(queue: ReliableQueue, message: ReliableMessage) {
    this.queue = queue
    this.message = message
  }

  abort(reason: Error): void {
    this.#abort.abort(reason)
  }

  /** Runs the handler and tells Redis what came of it. Never rejects. */
  async run(
    handler: Handler,
    timeout: number | undefined,
    retryDelay: RetryDelay,
    mayTryAgain: () => boolean,
  ): Promise<Outcome> {
    let outcome: Outcome
    try {
      const result = await this.#handle(handler, timeout)
      outcome = result instanceof RetryLater ? { is: 'deferred', delayMs: result.delayMs } : { is: 'completed' }
    } catch (thrown) {
      outcome = this.#outcomeOf(thrown, retryDelay)
    }
    return this.settle(outcome, mayTryAgain)
  }

  /** Tells Redis, as long as nobody else can have the message. Where it cannot be told, that comes back when its visibility ends. */
  async settle(outcome: Outcome, mayTryAgain: () => boolean): Promise<Outcome> {
    if (outcome.is === 'lost') return outcome
    // a client that repeats by itself what it sent may hear false for what was carried out
    let isUnknown = this.queue.context.commands.resends
    for (;;) {
      try {
        if (await this.#tell(outcome)) return outcome
        // false while it is held: it was carried out by an attempt whose answer was lost, as far as one can tell
        return isUnknown && this.message.isHeld ? outcome : { is: 'lost', error: new LeaseLostError() }
      } catch (thrown) {
        const error = toError(thrown)
        const mayPass = error instanceof RedelayedError && isTransient(error)
        if (!mayPass || !this.message.isHeld || !mayTryAgain()) return { is: 'lost', error }
        isUnknown ||= error instanceof ConnectionError && error.outcome === 'unknown'
        await pause(ANSWER_RETRY_MS)
      }
    }
  }

  /** What the handler gives, or a rejection with the reason of the signal, whichever is first: a handler may never end. */
  async #handle(handler: Handler, timeout: number | undefined): Promise<unknown> {
    const { signal } = this.#abort
    const timer =
      timeout === undefined ? undefined : setTimeout(() => this.abort(new HandlerTimeoutError(timeout)), timeout)
    try {
      return await new Promise((resolve, reject) => {
        const onAbort = (): void => reject(toError(signal.reason))
        if (signal.aborted) return onAbort()
        signal.addEventListener('abort', onAbort, { once: true })
        const { message, queue } = this
        Promise.resolve()
          .then(() => handler(message.payload, { queue: queue.name, message, signal }))
          .then(resolve, reject)
          .finally(() => signal.removeEventListener('abort', onAbort))
      })
    } finally {
      clearTimeout(timer)
    }
  }

  async #tell(outcome: Outcome): Promise<boolean> {
    const { message } = this
    switch (outcome.is) {
      case 'completed':
        return message.acknowledge()
      case 'deferred':
        return message.negativeAcknowledge({ delay: outcome.delayMs, uncounted: true })
      case 'failed':
        return message.negativeAcknowledge({ delay: outcome.delayMs, error: outcome.error })
      case 'rejected':
        return message.negativeAcknowledge({ reject: true, error: outcome.error })
      case 'released':
        return message.negativeAcknowledge({ uncounted: true })
      case 'lost':
        return false
    }
  }

  #outcomeOf(thrown: unknown, retryDelay: RetryDelay): Outcome {
    if (thrown instanceof RetryLater) return { is: 'deferred', delayMs: thrown.delayMs }
    const error = toError(thrown)
    const { signal } = this.#abort
    if (signal.aborted && thrown === signal.reason) {
      // of the worker's own making; what a handler throws by itself is a failure, whatever it is
      if (error instanceof LeaseLostError) return { is: 'lost', error }
      if (error instanceof ShutdownError) return { is: 'released' }
    }
    if (error instanceof RejectMessage) return { is: 'rejected', error }
    return { is: 'failed', error, delayMs: retryDelay(this.message.attempt) }
  }
}
