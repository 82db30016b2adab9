const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export interface Range {
  readonly key: string
  readonly name: string
  readonly words: string
  readonly ms: number
  readonly buckets: number
  readonly refreshMs: number
  /** The format of a bar's time. */
  readonly clock: 'seconds' | 'minutes' | 'days'
}

const DEFAULT = 'hour'

export const RANGES: readonly [Range, ...Range[]] = [
  { key: 'minute', name: 'Minute', words: 'minute', ms: MINUTE, buckets: 60, refreshMs: 1_000, clock: 'seconds' },
  { key: 'hour', name: 'Hour', words: 'hour', ms: HOUR, buckets: 60, refreshMs: 5_000, clock: 'minutes' },
  { key: 'day', name: 'Day', words: 'day', ms: DAY, buckets: 48, refreshMs: 15_000, clock: 'minutes' },
  { key: 'week', name: 'Week', words: 'week', ms: 7 * DAY, buckets: 84, refreshMs: 30_000, clock: 'days' },
]

export function rangeOf(key: string): Range {
  return RANGES.find((range) => range.key === (key || DEFAULT)) ?? RANGES[0]
}
