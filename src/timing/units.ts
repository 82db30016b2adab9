import { InvalidArgumentError, describe, inWords } from '../errors.js'
import { durationForms, durationMs } from '../duration.js'

/** The units that a number can be given in; without one it is milliseconds. */
export type TimeUnit = 'milliseconds' | 'seconds' | 'minutes' | 'hours' | 'days'

const MILLIS: Readonly<Record<TimeUnit, number>> = Object.freeze({
  milliseconds: 1,
  seconds: 1_000,
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
})

/**
 * Converts a delay to whole milliseconds. Refuses fractions of a millisecond (`1.5` seconds is 1,500 ms and
 * fine), negative and non-finite numbers, and delays above 2^53-1 ms. A text such as `'5s'` includes
 * its unit.
 */
export function toMillis(what: string, amount: unknown, unit?: unknown): number {
  if (unit === undefined) return durationMs(what, amount)
  if (typeof unit !== 'string' || !Object.hasOwn(MILLIS, unit)) {
    throw new InvalidArgumentError(`unit of ${what}`, Object.keys(MILLIS).join(', '), unit)
  }
  if (typeof amount !== 'number') throw new InvalidArgumentError(what, `a number of ${unit}`, amount)
  const millis = amount * MILLIS[unit as TimeUnit]
  if (!Number.isSafeInteger(millis) || millis < 0 || Object.is(millis, -0)) {
    throw new InvalidArgumentError(what, durationForms(), inWords(`${describe(amount)} ${unit}`))
  }
  return millis
}
