import { InvalidArgumentError } from '../errors.js'
import { integer, oneOf, onlyKnown } from '../options.js'

/** How long a failed message waits: the same each time, longer each time, or as listed (the last one for all further). */
export type RetryPolicy =
  | { readonly type: 'fixed'; readonly delay: number }
  | { readonly type: 'exponential'; readonly delay: number; readonly maxDelay?: number; readonly jitter?: number }
  | readonly (number | string)[]

/** The wait before the next delivery, in milliseconds, after attempt number `attempt`, from 1. */
export type RetryDelay = (attempt: number) => number

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const MAX_DELAY_MS = 366 * 86_400_000
const DEFAULT: RetryPolicy = { type: 'exponential', delay: 1_000, maxDelay: 3_600_000, jitter: 0.2 }

/** `random` is in [0, 1). */
export function retryDelays(policy: RetryPolicy = DEFAULT, random: () => number = Math.random): RetryDelay {
  if (Array.isArray(policy)) return listed(policy as readonly unknown[])
  onlyKnown('backoff', policy, ['type', 'delay', 'maxDelay', 'jitter'])
  const { type, delay, maxDelay, jitter } = policy as Record<string, unknown>
  const first = integer('backoff.delay', delay, 0, MAX_DELAY_MS)
  if (oneOf('backoff.type', type, ['fixed', 'exponential']) === 'fixed') return () => first
  const most = integer('backoff.maxDelay', maxDelay ?? 3_600_000, first, MAX_DELAY_MS)
  if (
    typeof (jitter ?? 0) !== 'number' ||
    !(((jitter as number | undefined) ?? 0) >= 0 && ((jitter as number | undefined) ?? 0) <= 1)
  ) {
    throw new InvalidArgumentError('backoff.jitter', 'a number from 0 to 1', jitter)
  }
  const share = (jitter as number | undefined) ?? 0
  return (attempt) => {
    const whole = Math.min(most, first * 2 ** Math.min(attempt - 1, 50))
    return Math.round(whole * (1 - share * random()))
  }
}

function listed(policy: readonly unknown[]): RetryDelay {
  if (policy.length === 0) throw new InvalidArgumentError('backoff', 'at least one delay', policy)
  const delays = policy.map((delay, at) => parse(`backoff[${at}]`, delay))
  return (attempt) => delays[Math.min(attempt, delays.length) - 1] ?? 0
}

function parse(what: string, delay: unknown): number {
  if (typeof delay === 'number') return integer(what, delay, 0, MAX_DELAY_MS)
  const [, amount, unit = ''] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(String(delay)) ?? []
  if (amount === undefined)
    throw new InvalidArgumentError(what, 'milliseconds, or a text such as "15s", "3m", "2h"', delay)
  return integer(what, Number(amount) * (UNITS[unit] ?? NaN), 0, MAX_DELAY_MS)
}
