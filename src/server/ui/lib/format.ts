const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
/** Nothing is counted that far: another program has written it, and its three hundred digits would stand in the way. */
const BEYOND = 1e15

export function count(value: number): string {
  return Math.abs(value) < BEYOND ? numbers.format(value) : value.toExponential(1)
}

/** `12,345` as `12.3 k`, for axes and tiles. */
export function short(value: number): string {
  const size = Math.abs(value)
  if (size < 10_000 || size >= BEYOND) return count(value)
  const [by, unit] = size < 1e6 ? [1e3, 'k'] : size < 1e9 ? [1e6, 'M'] : [1e9, 'G']
  const scaled = value / by
  return `${scaled.toFixed(Math.abs(scaled) < 100 ? 1 : 0)} ${unit}`
}

/** A number per second. */
export function rate(value: number): string {
  return value === 0 ? '0' : value < 10 ? value.toFixed(1) : short(Math.round(value))
}

export function bytes(value: number): string {
  if (value < 1_024) return `${value} B`
  if (value >= 1_024 ** 5) return `${value.toExponential(1)} B`
  const power = Math.min(4, Math.floor(Math.log2(value) / 10))
  const scaled = value / 1_024 ** power
  return `${scaled.toFixed(scaled < 10 ? 1 : 0)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power] ?? ''}`
}

/** A duration in at most two units: `850 ms`, `12 s`, `3 m 20 s`, `2 d 4 h`. */
export function duration(ms: number): string {
  const value = Math.abs(ms)
  if (value >= BEYOND) return `${(value / (365 * DAY)).toExponential(1)} y`
  if (value < SECOND) return `${Math.round(value)} ms`
  if (value < 10 * SECOND) return `${(value / SECOND).toFixed(1).replace(/\.0$/, '')} s`
  const units: [number, string][] = [
    [365 * DAY, 'y'],
    [DAY, 'd'],
    [HOUR, 'h'],
    [MINUTE, 'm'],
    [SECOND, 's'],
  ]
  const first = units.findIndex(([size]) => value >= size)
  const [size, unit] = units[first] ?? [SECOND, 's']
  const whole = Math.floor(value / size)
  const [smaller, smallerUnit] = units[first + 1] ?? [0, '']
  const rest = smaller === 0 ? 0 : Math.floor((value - whole * size) / smaller)
  return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${smallerUnit}`
}

const two = (value: number): string => String(value).padStart(2, '0')
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** A time in the reader's zone: `14:03:07` for today, `24 Nov 14:03` for this year, otherwise with the year. */
export function moment(at: number, now = Date.now()): string {
  const date = new Date(at)
  const today = new Date(now)
  if (Number.isNaN(date.getTime())) return 'no time'
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`
  if (date.toDateString() === today.toDateString()) return `${clock}:${two(date.getSeconds())}`
  const day = `${date.getDate()} ${MONTHS[date.getMonth()] ?? ''}`
  return date.getFullYear() === today.getFullYear() ? `${day} ${clock}` : `${day} ${date.getFullYear()} ${clock}`
}

/** The exact instant, for `datetime` and the tip. */
export function iso(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}

export function ago(at: number, now: number): string {
  const ms = at - now
  if (Number.isNaN(new Date(at).getTime())) return ''
  if (Math.abs(ms) < SECOND) return 'now'
  return ms > 0 ? `in ${duration(ms)}` : `${duration(ms)} ago`
}

/** A value for `<input type="datetime-local">`: in the reader's zone, to the second. */
export function localInput(at: number): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return ''
  const day = `${String(date.getFullYear()).padStart(4, '0')}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

export function fromLocalInput(text: string): number | undefined {
  const at = text === '' ? Number.NaN : new Date(text).getTime()
  return Number.isNaN(at) ? undefined : at
}
