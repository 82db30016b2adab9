import { InvalidArgumentError } from '../errors.js'
import { oneOf, onlyKnown } from '../options.js'
import { durationMs, type Duration } from '../duration.js'

/**
 * How long a failed message waits: a constant, exponentially longer, a list (its last delay for all further attempts), or a
 * function of the attempt, from 1, and its error. Milliseconds, or texts such as `'15s'`.
 */
export type RetryPolicy =
  | { readonly type: 'fixed'; readonly delay: Duration }
  | { readonly type: 'exponential'; readonly delay: Duration; readonly maxDelay?: Duration; readonly jitter?: number }
  | readonly Duration[]
  | ((attempt: number, error: Error) => Duration)

/** The wait before the next delivery, in milliseconds, after attempt number `attempt`, from 1. Throws if the user's function does. */
export type RetryDelay = (attempt: number, error: Error) => number

const MAX_DELAY_MS = 366 * 86_400_000
const HOUR_MS = 3_600_000
const DEFAULT: RetryPolicy = { type: 'exponential', delay: 1_000, maxDelay: HOUR_MS, jitter: 0.2 }

/** `random` is in [0, 1). */
export function retryDelays(policy: RetryPolicy = DEFAULT, random: () => number = Math.random): RetryDelay {
  if (Array.isArray(policy)) return listed(policy as readonly unknown[])
  if (typeof policy === 'function') {
    return (attempt, error) => {
      const delay: unknown = policy(attempt, error)
      if (delay instanceof Promise) delay.catch(() => undefined) // a promise is not a delay, and must not be an unhandled rejection
      return durationMs('what backoff returns', typeof delay === 'number' ? Math.round(delay) : delay, 0, MAX_DELAY_MS)
    }
  }
  onlyKnown('backoff', policy, ['type', 'delay', 'maxDelay', 'jitter'])
  const { type, delay, maxDelay, jitter } = policy as Record<string, unknown>
  const first = durationMs('backoff.delay', delay, 0, MAX_DELAY_MS)
  if (oneOf('backoff.type', type, ['fixed', 'exponential']) === 'fixed') return () => first
  const most = durationMs('backoff.maxDelay', maxDelay ?? Math.max(first, HOUR_MS), first, MAX_DELAY_MS)
  const share: unknown = jitter ?? 0
  if (typeof share !== 'number' || !(share >= 0 && share <= 1)) {
    throw new InvalidArgumentError('backoff.jitter', 'a number from 0 to 1', jitter)
  }
  return (attempt) => {
    const whole = Math.min(most, first * 2 ** Math.min(attempt - 1, 50))
    return Math.round(whole * (1 - share * random()))
  }
}

/** The delays to use when the user's function failed. */
export const usualDelay: RetryDelay = retryDelays()

function listed(policy: readonly unknown[]): RetryDelay {
  if (policy.length === 0) throw new InvalidArgumentError('backoff', 'at least one delay', policy)
  const delays = policy.map((delay, at) => durationMs(`backoff[${at}]`, delay, 0, MAX_DELAY_MS))
  return (attempt) => delays[Math.min(attempt, delays.length) - 1] ?? 0
}
