import { describe } from '../../errors.js'
import { JavaValue } from './java-values.js'
import type { Input, Output, Serializer } from './serializer.js'

/** The java.time classes have the ISO text of Java's own `toString` as their value. */
interface Part<T> {
  readonly pattern: RegExp
  parse(groups: readonly string[]): T | undefined
  write(out: Output, parsed: T): void
  read(input: Input): string
}

function timeClass<T>(simpleName: string, part: Part<T>): Serializer {
  const name = `java.time.${simpleName}`
  return {
    name,
    referable: true,
    natural: false,
    write: (out, value) => {
      const text = value instanceof Date && simpleName === 'Instant' ? isoOf(value) : value
      const match = typeof text === 'string' && text.length < 200 ? part.pattern.exec(text) : null
      const parsed = match === null ? undefined : part.parse(match.slice(1).map((group) => group ?? ''))
      if (parsed === undefined) out.refuse(`expected the text of a ${name}, got ${describe(value)}`)
      else part.write(out, parsed)
    },
    read: (input) => new JavaValue(name, part.read(input)),
  }
}

function isoOf(value: Date): string | undefined {
  return Number.isNaN(value.getTime()) ? undefined : value.toISOString()
}

const two = (value: number) => String(value).padStart(2, '0')

function fraction(nanos: number): string {
  if (nanos === 0) return ''
  const digits = String(nanos).padStart(9, '0')
  return `.${digits.replace(/(?:000){1,2}$/, '')}`
}

function nanosOf(digits: string): number {
  return Number(digits.padEnd(9, '0'))
}

function readNanos(input: Input): number {
  return within(input, input.varint(), 0, 999_999_999)
}

function within(input: Input, value: number, least: number, most: number): number {
  if (value < least || value > most) input.fail(`a part of a time at ${input.at} is out of range`)
  return value
}

interface LocalDate {
  readonly year: number
  readonly month: number
  readonly day: number
}

function dateOf(year: string, month: string, day: string): LocalDate | undefined {
  const date = { year: Number(year), month: Number(month), day: Number(day) }
  if (date.month < 1 || date.month > 12 || date.day < 1 || date.day > daysIn(date.year, date.month)) return undefined
  return date
}

function daysIn(year: number, month: number): number {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
}

function writeDate(out: Output, date: LocalDate): void {
  out.varint(date.year)
  out.byte(date.month)
  out.byte(date.day)
}

function readDate(input: Input): string {
  const year = within(input, input.varint(), -999_999_999, 999_999_999)
  const month = within(input, input.byte(), 1, 12)
  const day = within(input, input.byte(), 1, daysIn(year, month))
  const digits = String(Math.abs(year)).padStart(4, '0')
  const sign = year < 0 ? '-' : year > 9999 ? '+' : ''
  return `${sign}${digits}-${two(month)}-${two(day)}`
}

interface LocalTime {
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly nanos: number
}

function timeOf(hour: string, minute: string, second: string, digits: string): LocalTime | undefined {
  const time = { hour: Number(hour), minute: Number(minute), second: Number(second), nanos: nanosOf(digits) }
  return time.hour > 23 || time.minute > 59 || time.second > 59 ? undefined : time
}

/** Writes a time, in which the complement of the last non-zero part marks the end. */
function writeTime(out: Output, { hour, minute, second, nanos }: LocalTime): void {
  const parts = [hour, minute, second]
  const last = nanos !== 0 ? 3 : second !== 0 ? 2 : minute !== 0 ? 1 : 0
  for (let i = 0; i < Math.min(last + 1, 3); i++) out.byte(i === last ? ~(parts[i] ?? 0) : (parts[i] ?? 0))
  if (last === 3) out.varint(nanos)
}

function readTime(input: Input): string {
  const parts = [0, 0, 0]
  let nanos = 0
  for (let i = 0; i <= 3; i++) {
    if (i === 3) nanos = readNanos(input)
    else {
      const value = input.int8()
      parts[i] = within(input, value < 0 ? ~value : value, 0, i === 0 ? 23 : 59)
      if (value < 0) break
    }
  }
  const [hour = 0, minute = 0, second = 0] = parts
  const seconds = second === 0 && nanos === 0 ? '' : `:${two(second)}${fraction(nanos)}`
  return `${two(hour)}:${two(minute)}${seconds}`
}

function offsetOf(text: string): number | undefined {
  if (text === 'Z') return 0
  const [, sign, hour = '', minute = '', second = ''] = /^([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text) ?? []
  const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second)
  if (sign === undefined || seconds > 18 * 3600) return undefined
  return sign === '-' ? -seconds : seconds
}

/** Writes an offset: quarters of an hour in one byte, others as 127 and four bytes. */
function writeOffset(out: Output, seconds: number): void {
  if (seconds % 900 === 0) return out.byte(seconds / 900)
  out.byte(127)
  out.int32(seconds)
}

function readOffset(input: Input): string {
  const quarters = input.int8()
  const seconds = within(input, quarters === 127 ? input.int32() : quarters * 900, -18 * 3600, 18 * 3600)
  if (seconds === 0) return 'Z'
  const rest = Math.abs(seconds)
  const tail = rest % 60 === 0 ? '' : `:${two(rest % 60)}`
  return `${seconds < 0 ? '-' : '+'}${two(Math.floor(rest / 3600))}:${two(Math.floor(rest / 60) % 60)}${tail}`
}

const DATE = '([+-]?\\d{4,9})-(\\d\\d)-(\\d\\d)'
const TIME = '(\\d\\d):(\\d\\d)(?::(\\d\\d)(?:\\.(\\d{1,9}))?)?'
const full = (pattern: string) => new RegExp(`^${pattern}$`)

function both(groups: readonly string[]): { date: LocalDate; time: LocalTime } | undefined {
  const [year = '', month = '', day = '', hour = '', minute = '', second = '', digits = ''] = groups
  const date = dateOf(year, month, day)
  const time = timeOf(hour, minute, second, digits)
  return date === undefined || time === undefined ? undefined : { date, time }
}

function writeBoth(out: Output, { date, time }: { date: LocalDate; time: LocalTime }): void {
  writeDate(out, date)
  writeTime(out, time)
}

function readBoth(input: Input): string {
  const date = readDate(input)
  return `${date}T${readTime(input)}`
}

const instant = timeClass('Instant', {
  pattern: /^([+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/,
  parse: ([whole = '', digits = '']) => {
    const seconds = Date.parse(`${whole}Z`) / 1000
    return Number.isNaN(seconds) ? undefined : { seconds, nanos: nanosOf(digits) }
  },
  write: (out, { seconds, nanos }) => {
    out.varlongOf(seconds)
    out.varint(nanos)
  },
  read: (input) => {
    const date = new Date(Number(input.varlong()) * 1000)
    const nanos = readNanos(input)
    if (Number.isNaN(date.getTime())) input.fail(`an instant at ${input.at} is out of the range of Date`)
    return date.toISOString().replace('.000Z', `${fraction(nanos)}Z`)
  },
})

const duration = timeClass('Duration', {
  pattern:
    /^(-?)P(?=-?\d|T)(?:(-?\d{1,10})D)?(?:T(?=-?\d)(?:(-?\d{1,12})H)?(?:(-?\d{1,13})M)?(?:(-?)(\d{1,15})(?:\.(\d{1,9}))?S)?)?$/,
  parse: ([sign, days, hours, minutes, minus, seconds, digits = '']) => {
    const whole = BigInt(days ?? 0) * 86_400n + BigInt(hours ?? 0) * 3600n + BigInt(minutes ?? 0) * 60n
    const rest = BigInt(seconds ?? 0) * 1_000_000_000n + BigInt(nanosOf(digits))
    const nanos = whole * 1_000_000_000n + (minus === '-' ? -rest : rest)
    return sign === '-' ? -nanos : nanos
  },
  write: (out, total) => {
    const nanos = ((total % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n
    out.int64((total - nanos) / 1_000_000_000n)
    out.varint(Number(nanos))
  },
  read: (input) => {
    const total = input.int64() * 1_000_000_000n + BigInt(readNanos(input))
    const size = total < 0n ? -total : total
    return `PT${total < 0n ? '-' : ''}${size / 1_000_000_000n}${fraction(Number(size % 1_000_000_000n))}S`
  },
})

export const TIMES: readonly Serializer[] = [
  instant,
  duration,
  timeClass('LocalDate', {
    pattern: full(DATE),
    parse: ([year = '', month = '', day = '']) => dateOf(year, month, day),
    write: writeDate,
    read: readDate,
  }),
  timeClass('Period', {
    pattern: /^P(?=-?\d)(?:(-?\d{1,10})Y)?(?:(-?\d{1,10})M)?(?:(-?\d{1,10})D)?$/,
    parse: (groups) => {
      const parts = groups.map(Number)
      return parts.every((part) => part === (part | 0)) ? parts : undefined
    },
    write: (out, parts) => {
      for (const part of parts) out.varint(part)
    },
    read: (input) => {
      const parts = ['Y', 'M', 'D'].map((unit) => [input.varint(), unit] as const)
      return `P${parts.map(([part, unit]) => (part === 0 ? '' : `${part}${unit}`)).join('') || '0D'}`
    },
  }),
  timeClass('Year', {
    pattern: /^(-?\d{1,9})$/,
    parse: ([year]) => Number(year),
    write: (out, year) => out.varint(year),
    read: (input) => String(within(input, input.varint(), -999_999_999, 999_999_999)),
  }),
  timeClass('LocalTime', {
    pattern: full(TIME),
    parse: ([hour = '', minute = '', second = '', digits = '']) => timeOf(hour, minute, second, digits),
    write: writeTime,
    read: readTime,
  }),
  timeClass('LocalDateTime', { pattern: full(`${DATE}T${TIME}`), parse: both, write: writeBoth, read: readBoth }),
  timeClass('OffsetDateTime', {
    pattern: full(`${DATE}T${TIME}(Z|[+-][\\d:]{5,8})`),
    parse: (groups) => {
      const local = both(groups)
      const offset = offsetOf(groups[7] ?? '')
      return local === undefined || offset === undefined ? undefined : { ...local, offset }
    },
    write: (out, value) => {
      writeBoth(out, value)
      writeOffset(out, value.offset)
    },
    read: (input) => {
      const local = readBoth(input)
      return `${local}${readOffset(input)}`
    },
  }),
  timeClass('ZonedDateTime', {
    pattern: full(`${DATE}T${TIME}(?:Z|[+-][\\d:]{5,8})?\\[([\\w/+:.~-]{1,100})\\]`),
    parse: (groups) => {
      const local = both(groups)
      return local === undefined ? undefined : { ...local, zone: groups[7] ?? '' }
    },
    write: (out, value) => {
      writeBoth(out, value)
      out.string(value.zone)
    },
    read: (input) => {
      const local = readBoth(input)
      return `${local}[${input.string() ?? ''}]`
    },
  }),
]
