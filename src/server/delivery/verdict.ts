import type { Answer } from './sender.js'

/** The meaning of an answer for the message and for its endpoint. */
export type Verdict =
  | { readonly is: 'delivered' }
  /** The endpoint wants no more webhooks: it gets disabled. */
  | { readonly is: 'gone' }
  /** The endpoint is overloaded: it gets no webhooks for this time. */
  | { readonly is: 'throttled'; readonly waitMs: number }
  | { readonly is: 'failed' }
  /** The endpoint works but does not take this message: other messages are not affected. */
  | { readonly is: 'refused' }

/** The pause of an overloaded endpoint that asks for none. */
const DEFAULT_PAUSE_MS = 5_000
/** The longest pause that an endpoint can ask for. */
const MOST_PAUSE_MS = 24 * 3_600_000

const OF_ONE_MESSAGE = new Set([400, 409, 413, 415, 422])
const OVERLOADED = new Set([429, 502, 503, 504])

/** @param now epoch milliseconds, for a `Retry-After` that is a date */
export function verdictOn(answer: Answer, now: number): Verdict {
  if (answer.is === 'none') return { is: 'failed' }
  const { status, retryAfter } = answer
  if (status >= 200 && status < 300) return { is: 'delivered' }
  if (status === 410) return { is: 'gone' }
  if (OVERLOADED.has(status)) return { is: 'throttled', waitMs: pauseOf(retryAfter, now) }
  return { is: OF_ONE_MESSAGE.has(status) ? 'refused' : 'failed' }
}

/** RFC 9110: seconds, or a date. */
function pauseOf(retryAfter: string | undefined, now: number): number {
  if (retryAfter === undefined) return DEFAULT_PAUSE_MS
  const isDate = retryAfter.endsWith('GMT')
  const ms = /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) * 1_000 : isDate ? Date.parse(retryAfter) - now : NaN
  return Number.isNaN(ms) ? DEFAULT_PAUSE_MS : Math.min(Math.max(ms, 0), MOST_PAUSE_MS)
}
