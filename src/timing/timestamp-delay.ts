const YEAR_2001_MS = Date.UTC(2001, 0)
const YEAR_2100_MS = Date.UTC(2100, 0)
const DAY_S = 86_400

/**
 * The unit of the timestamp that a delay of milliseconds most likely is; `undefined` for an ordinary delay. Seconds since 1970 count only
 * from yesterday to 30 days ahead, because such a number is also a delay of about 20 days; whole minutes of it are delays.
 */
export function timestampUnit(delayMs: number, nowMs: number): 'milliseconds' | 'seconds' | undefined {
  if (delayMs >= YEAR_2001_MS && delayMs < YEAR_2100_MS) return 'milliseconds'
  const aheadS = delayMs - nowMs / 1_000
  const isNear = aheadS > -DAY_S && aheadS < 30 * DAY_S
  return isNear && delayMs % 60_000 !== 0 ? 'seconds' : undefined
}
