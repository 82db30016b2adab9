import { InvalidArgumentError, inQuotes } from './errors.js'

/**
 * A time span: whole milliseconds, or a text of a number and its unit (`ms`, `s`, `m`, `h` or `d`): `'500ms'`, `'1.5s'`, `'15m'`, `'2h'`.
 */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** The type of an option's value once its durations are converted to milliseconds. */
export type InMillis<T> = Duration extends T ? number | Exclude<T, Duration> : T

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const TEXT = /^(\d{1,16})(?:\.(\d{1,6}))?(ms|s|m|h|d)$/
/** Texts that resemble a duration. An error quotes no other text, because a payload can be here by mistake. */
const SIMILAR = /^[+-]?(?:[\d.]{1,9} ?[a-z]{1,7} ?){1,3}$/i

/** The duration in milliseconds, which must be whole and from `min` to `max`. */
export function durationMs(what: string, given: unknown, min = 0, max = Number.MAX_SAFE_INTEGER): number {
  const ms = typeof given === 'string' ? millisOfText(given) : given
  if (typeof ms === 'number' && Number.isSafeInteger(ms) && ms >= min && ms <= max && !Object.is(ms, -0)) return ms
  throw new InvalidArgumentError(what, durationForms(min, max), isSimilar(given) ? inQuotes(given) : given)
}

/** The milliseconds of a text; `NaN` for a text that is not a duration. */
export function millisOfText(text: string): number {
  const [, whole = '', fraction = '', unit = ''] = TEXT.exec(text) ?? []
  // one division of whole numbers, so that 4.35s are 4350 ms
  return whole === '' ? NaN : (Number(whole + fraction) * UNITS[unit as keyof typeof UNITS]) / 10 ** fraction.length
}

/** The forms that a duration can have, for an error's message. */
export function durationForms(min = 0, max = Number.MAX_SAFE_INTEGER): string {
  const most = max === Number.MAX_SAFE_INTEGER ? '2^53-1' : String(max)
  return `a whole number of milliseconds from ${min} to ${most}, or a text such as '5s', '15m', '2h'`
}

function isSimilar(given: unknown): given is string {
  return typeof given === 'string' && given.length <= 40 && SIMILAR.test(given)
}

const STEPS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

/** The duration for people: in the largest unit of which it has at least one, with one decimal. */
export function inLargestUnit(ms: number): string {
  const [size, unit] = STEPS.find(([step]) => ms >= step) ?? [1, 'ms']
  return `${size === 1 ? Math.round(ms) : Math.round(ms / (size / 10)) / 10} ${unit}`
}
