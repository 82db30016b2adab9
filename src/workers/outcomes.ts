import { RedelayedError } from '../errors.js'
import { durationMs, type Duration } from '../duration.js'

/** The value that a handler returns or throws if it cannot work now, for a reason other than the message. */
export class RetryLater {
  readonly delayMs: number

  /** @internal use `retryIn` */
  constructor(delayMs: number) {
    this.delayMs = delayMs
  }
}

/**
 * The result of a handler that meets a held lock or the like: the message is redelivered after `delay` (milliseconds, or a text such as
 * `'5s'`), this delivery does not count as an attempt, and the worker is free for other messages.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: `delay` is not a duration
 *
 * @example
 * ```ts
 * import { retryIn } from 'redelayed'
 *
 * client.createWorker(mails, ({ to }) => (to === 'ada' ? retryIn('5s') : undefined))
 * ```
 */
export function retryIn(delay: Duration): RetryLater {
  return new RetryLater(durationMs('the delay of retryIn', delay))
}

/** The error that a handler throws if a retry is useless: the message goes to the dead letters at once. */
export class RejectMessage extends Error {
  override readonly name = 'RejectMessage'
}

/** No handler has the name of the message's task. */
export class UnknownTaskError extends RedelayedError {
  constructor(task: string, known: readonly string[]) {
    super(
      'ERR_UNKNOWN_TASK',
      `no handler for the task ${JSON.stringify(task)}; there are ${known.join(', ') || 'none'}`,
    )
  }
}

/** The reason of a message's signal: another consumer may have the message by now. */
export class VisibilityLostError extends RedelayedError {
  constructor() {
    super('ERR_VISIBILITY_LOST', 'the visibility of the message ended before it was extended')
  }
}

/** The reason of a message's signal, and of its failure: its handler took too long. */
export class HandlerTimeoutError extends RedelayedError {
  constructor(ms: number) {
    super('ERR_HANDLER_TIMEOUT', `the handler took longer than ${ms} ms`)
  }
}
