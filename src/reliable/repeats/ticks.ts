import type { Cron } from 'croner'
import { InvalidArgumentError, toError, inWords } from '../../errors.js'
import { optional } from '../../optional.js'
import { nonEmptyString } from '../../options.js'
import { durationMs, type Duration } from '../../duration.js'
import { quoted } from '../../text.js'

/** The times of a schedule: either `every` or `cron`. */
export interface RepeatTimes {
  /** The milliseconds between ticks, counted from `startAt`, or from 1970-01-01T00:00Z. 1 to 31,622,400,000 (366 days). */
  readonly every?: Duration | undefined
  /**
   * A cron expression of five fields (minute, hour, day of the month, month, day of the week), or six with the seconds before them, or
   * `@daily` and the like. Needs the package `croner`.
   */
  readonly cron?: string | undefined
  /** The IANA time zone of the cron expression, such as `'Europe/Berlin'`. Default `'UTC'`. */
  readonly timeZone?: string | undefined
  /** The earliest time of a tick; with `every`, the first tick. */
  readonly startAt?: Date | undefined
  /** The latest time of a tick. */
  readonly endAt?: Date | undefined
}

/** The stored times of a repeat: epoch milliseconds for dates. */
export interface TickRule {
  readonly every?: number
  readonly cron?: string
  readonly timeZone?: string
  readonly startAt?: number
  readonly endAt?: number
}

/** The first tick after a time, epoch milliseconds; `null` when there is none. */
export type NextTick = (after: number) => number | null

const MAX_EVERY_MS = 366 * 86_400_000
const MAX_CRON_CHARS = 256
const MAX_TIME_ZONE_CHARS = 64
/** The latest time of a Date. */
export const MAX_DATE_MS = 8_640_000_000_000_000

export function tickRuleOf({ every, cron, timeZone, startAt, endAt }: RepeatTimes): TickRule {
  if ((every === undefined) === (cron === undefined)) {
    throw new InvalidArgumentError('every and cron', 'one of the two', inWords(every === undefined ? 'none' : 'both'))
  }
  if (timeZone !== undefined && cron === undefined) {
    throw new InvalidArgumentError('timeZone', 'none without cron', timeZone)
  }
  const rule: TickRule = {
    ...(every !== undefined && { every: durationMs('every', every, 1, MAX_EVERY_MS) }),
    ...(cron !== undefined && { cron: shortText('cron', cron, MAX_CRON_CHARS) }),
    ...(cron !== undefined && { timeZone: shortText('timeZone', timeZone ?? 'UTC', MAX_TIME_ZONE_CHARS) }),
    ...(startAt !== undefined && { startAt: dateMs('startAt', startAt) }),
    ...(endAt !== undefined && { endAt: dateMs('endAt', endAt) }),
  }
  // refuses an unreadable expression, and one without any tick, such as the 30th of February
  if (rule.cron !== undefined && nextTickOf({ cron: rule.cron, timeZone: rule.timeZone ?? 'UTC' })(0) === null) {
    throw new InvalidArgumentError('cron', 'an expression with at least one tick', rule.cron)
  }
  return rule
}

export function nextTickOf(rule: TickRule): NextTick {
  const { startAt = 0, endAt = MAX_DATE_MS } = rule
  const following =
    rule.every === undefined ? byCron(rule.cron ?? '', rule.timeZone ?? 'UTC') : byInterval(rule.every, startAt)
  return (after) => {
    const tick = following(Math.max(after, startAt - 1))
    return tick === null || tick > endAt ? null : tick
  }
}

function byInterval(every: number, first: number): NextTick {
  return (after) => first + (Math.floor((after - first) / every) + 1) * every
}

function byCron(expression: string, timeZone: string): NextTick {
  const { Cron } = library()
  let cron: Cron | undefined
  return (after) => {
    try {
      cron ??= new Cron(expression, { timezone: timeZone, paused: true })
      return cron.nextRun(new Date(after))?.getTime() ?? null // an unknown time zone throws only here
    } catch (thrown) {
      const expected = `an expression and a time zone that can be read (${toError(thrown).message})`
      throw new InvalidArgumentError('cron', expected, inWords(`${quoted(expression)} in ${quoted(timeZone)}`))
    }
  }
}

function shortText(what: string, value: unknown, most: number): string {
  const text = nonEmptyString(what, value)
  if (text.length > most) {
    throw new InvalidArgumentError(what, `at most ${most} characters`, inWords(`${text.length} characters`))
  }
  return text
}

function dateMs(what: string, date: unknown): number {
  if (!(date instanceof Date) || Number.isNaN(date.getTime()))
    throw new InvalidArgumentError(what, 'a valid Date', date)
  return date.getTime()
}

/** `croner` is optional: only cron expressions need it. */
function library(): { readonly Cron: typeof Cron } {
  return optional('croner', 'a cron expression') as { readonly Cron: typeof Cron }
}
