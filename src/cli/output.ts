import { cut, escapedInJson, printable } from '../text.js'
import { inLargestUnit } from '../duration.js'

const PREVIEW_LENGTH = 80

/** Formats rows into columns as wide as their widest cell, two spaces apart. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length)))
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** A time as ISO text with its distance from now: `2026-01-31T12:00:00.000Z (in 4.2 s)`. */
export function moment(time: number, now: number): string {
  const distance = time - now
  const relative = distance < 0 ? `${inLargestUnit(-distance)} ago` : `in ${inLargestUnit(distance)}`
  return `${isoTime(time) ?? `${time} ms after 1970`} (${relative})`
}

/** A time as ISO text; `null` if a `Date` cannot hold it, as due times can be later. */
export function isoTime(time: number | null): string | null {
  const date = new Date(time ?? NaN)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}

/** A value in one line that fits a terminal. */
export function preview(value: unknown): string {
  return printable(jsonText(value, 0, PREVIEW_LENGTH), PREVIEW_LENGTH)
}

/**
 * JSON for programs; values without a form in JSON (bigint, bytes, Map, Set) get the nearest one. Texts are cut
 * to `mostText` UTF-16 units.
 */
export function jsonText(document: unknown, indent = 2, mostText = Infinity): string {
  const text = JSON.stringify(
    document,
    function (this: Readonly<Record<string, unknown>>, key, value: unknown): unknown {
      const original = this[key] // before toJSON, which turns a Buffer into a list of numbers
      if (typeof original === 'bigint') return original.toString()
      if (original instanceof Uint8Array) return Buffer.from(original).toString('base64')
      if (original instanceof Map) return Object.fromEntries(original as Map<unknown, unknown>) as unknown
      if (original instanceof Set) return [...(original as Set<unknown>)]
      if (typeof original === 'number' && !Number.isFinite(original)) return String(original)
      return typeof value === 'string' ? cut(value, mostText) : value
    },
    indent,
  ) as string | undefined
  return escapedInJson(text ?? 'null')
}
