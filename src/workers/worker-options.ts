import { InvalidArgumentError } from '../errors.js'
import { boolean, integer, onlyKnown } from '../options.js'
import { durationMs, type Duration } from '../duration.js'
import { retryDelays, type RetryDelay, type RetryPolicy } from './retry-delays.js'

export interface WorkerOptions {
  /** The most messages handled at the same time. 1 to 10,000; default 1. */
  readonly concurrency?: number | undefined
  /** How many more messages are taken in advance, so that handlers need not wait for the next one. 0 to 10,000; default 0. */
  readonly prefetch?: number | undefined
  /**
   * For how many milliseconds no other consumer gets a message; the worker extends it every third of that time. After
   * a crash it takes this long until another consumer gets the message. 300 to 86,400,000; default 30,000.
   */
  readonly visibilityTimeout?: Duration | undefined
  /** How long a handler may take, in milliseconds, before its message has failed. 1 to 86,400,000; default: no limit. */
  readonly timeout?: Duration | undefined
  /** How long a failed message waits. Default: exponential from 1 second to 1 hour with a fifth of jitter. */
  readonly backoff?: RetryPolicy | undefined
  /** Always ask the queues in the order given, however long the later ones wait. Default false: by their weights. */
  readonly strict?: boolean | undefined
  /** Take at most `max` messages in any `perMs` milliseconds, in this worker. */
  readonly rateLimit?: { readonly max: number; readonly perMs: Duration } | undefined
  /**
   * Keep what handlers return as results, where the queue keeps completed messages (`keepCompleted`). A result that the queue's codec
   * cannot encode is an `error` event, and the message is completed without it. Default false.
   */
  readonly keepResults?: boolean | undefined
  /** Close the worker when the process gets one of these signals. Default: none. */
  readonly shutdownSignals?: readonly NodeJS.Signals[] | undefined
  /** How long `close` waits for handlers, in milliseconds, before their signals are aborted. 0 to 86,400,000; default 30,000. */
  readonly shutdownTimeout?: Duration | undefined
}

export interface WorkerSettings {
  readonly concurrency: number
  readonly prefetch: number
  readonly visibilityTimeout: number
  readonly timeout: number | undefined
  readonly retryDelay: RetryDelay
  readonly strict: boolean
  readonly rateLimit: { readonly max: number; readonly perMs: number } | undefined
  readonly keepResults: boolean
  readonly shutdownSignals: readonly NodeJS.Signals[]
  readonly shutdownTimeout: number
}

const DAY_MS = 86_400_000
const NAMES = [
  'concurrency',
  'prefetch',
  'visibilityTimeout',
  'timeout',
  'backoff',
  'strict',
  'rateLimit',
  'keepResults',
  'shutdownSignals',
  'shutdownTimeout',
] as const satisfies readonly (keyof WorkerOptions)[]

export function resolveWorkerOptions(options: WorkerOptions): WorkerSettings {
  onlyKnown('options', options, NAMES)
  const { timeout, rateLimit, shutdownSignals = [] } = options
  if (rateLimit !== undefined) onlyKnown('rateLimit', rateLimit, ['max', 'perMs'])
  if (!Array.isArray(shutdownSignals))
    throw new InvalidArgumentError('shutdownSignals', 'an array of signals', shutdownSignals)
  return Object.freeze({
    concurrency: integer('concurrency', options.concurrency ?? 1, 1, 10_000),
    prefetch: integer('prefetch', options.prefetch ?? 0, 0, 10_000),
    visibilityTimeout: durationMs('visibilityTimeout', options.visibilityTimeout ?? 30_000, 300, DAY_MS),
    timeout: timeout === undefined ? undefined : durationMs('timeout', timeout, 1, DAY_MS),
    retryDelay: retryDelays(options.backoff),
    strict: boolean('strict', options.strict ?? false),
    rateLimit: rateLimit && {
      max: integer('rateLimit.max', rateLimit.max, 1, 100_000),
      perMs: durationMs('rateLimit.perMs', rateLimit.perMs, 1, DAY_MS),
    },
    keepResults: boolean('keepResults', options.keepResults ?? false),
    shutdownSignals: [...(shutdownSignals as readonly NodeJS.Signals[])],
    shutdownTimeout: durationMs('shutdownTimeout', options.shutdownTimeout ?? 30_000, 0, DAY_MS),
  })
}
