const YEAR_2001_MS = Date.UTC(2001, 0)
const YEAR_2100_MS = Date.UTC(2100, 0)
const DAY_S = 86_400

/**
 * The unit of the point in time that a delay of milliseconds most likely is, or `undefined` for an ordinary delay. As seconds since 1970 only what
 * is from yesterday to in 30 days counts, because as a delay that is a good 20 days; of these, whole minutes are delays.
 */
export function timestampUnit(delayMs: number, nowMs: number): 'milliseconds' | 'seconds' | undefined {
  if (delayMs >= YEAR_2001_MS && delayMs < YEAR_2100_MS) return 'milliseconds'
  const aheadS = delayMs - nowMs / 1_000
  const isNear = aheadS > -DAY_S && aheadS < 30 * DAY_S
  return isNear && delayMs % 60_000 !== 0 ? 'seconds' : undefined
}
