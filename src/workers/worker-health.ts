import { durationMs, type Duration } from '../duration.js'
import { onlyKnown } from '../options.js'

export interface WorkerHealthOptions {
  /**
   * The longest time without a reply to a poll while the worker asks for messages. Default: a minute, or three times the client's
   * `sweepInterval` if that is longer.
   */
  readonly maxSilence?: Duration | undefined
}

/** The state of a worker for a liveness probe, with its reasons. */
export interface WorkerHealth {
  /**
   * True if neither the worker is closed nor its client shut down, and Redis has answered a poll within `maxSilence`. A worker that is
   * paused, or asks for no messages because all its handlers are busy, is alive.
   */
  readonly isAlive: boolean
  readonly state: 'running' | 'paused' | 'closed'
  /** When Redis last answered a poll of one of its queues, with messages or without; `null` for never. */
  readonly lastPollAt: Date | null
  /** When the worker last acknowledged a message; `null` for never. */
  readonly lastSuccessAt: Date | null
  /** How many handlers are running. */
  readonly active: number
  /** The age of the oldest call of a handler whose outcome Redis does not have yet, in milliseconds; 0 when there is none. */
  readonly longestMs: number
}

/** The facts of a worker; times by the monotonic clock, `-Infinity` for never. */
export interface WorkerFacts {
  readonly state: WorkerHealth['state']
  readonly polledAt: number
  readonly succeededAt: number
  /** Since when the worker has been asking for messages, if it is. */
  readonly askingSince: number | undefined
  readonly active: number
  /** The call times of the handlers whose outcomes Redis does not have yet. */
  readonly begun: readonly number[]
  readonly now: number
}

const MAX_SILENCE_MS = 60_000
const SWEEPS = 3

export function healthOf(facts: WorkerFacts, options: WorkerHealthOptions, sweepInterval: number): WorkerHealth {
  onlyKnown('options', options, ['maxSilence'])
  const { state, polledAt, succeededAt, askingSince, active, begun, now } = facts
  const maxSilence = durationMs('maxSilence', options.maxSilence ?? Math.max(MAX_SILENCE_MS, SWEEPS * sweepInterval), 1)
  const date = (at: number): Date | null => (at === -Infinity ? null : new Date(Date.now() - Math.max(0, now - at)))
  const isSilent = askingSince !== undefined && now - Math.max(polledAt, askingSince) > maxSilence
  return {
    isAlive: state !== 'closed' && !isSilent,
    state,
    lastPollAt: date(polledAt),
    lastSuccessAt: date(succeededAt),
    active,
    longestMs: Math.max(0, ...begun.map((at) => now - at)),
  }
}
