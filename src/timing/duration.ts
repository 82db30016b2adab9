import { InvalidArgumentError } from '../errors.js'
import { integer } from '../options.js'

/** The milliseconds of each unit. */
export const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Milliseconds from a number of them, or from a text such as `'15s'`, `'3m'`, `'2h'`. */
export function parseDuration(what: string, duration: unknown, most: number = Number.MAX_SAFE_INTEGER): number {
  if (typeof duration === 'number') return integer(what, duration, 0, most)
  const [, amount, unit = ''] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(String(duration)) ?? []
  if (amount === undefined)
    throw new InvalidArgumentError(what, 'milliseconds, or a text such as "15s", "3m", "2h"', duration)
  return integer(what, Number(amount) * (UNITS[unit] ?? NaN), 0, most)
}

const STEPS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

/** In the largest unit that is full once, with one decimal. */
export function duration(ms: number): string {
  const [size, unit] = STEPS.find(([step]) => ms >= step) ?? [1, 'ms']
  return `${size === 1 ? Math.round(ms) : Math.round(ms / (size / 10)) / 10} ${unit}`
}
