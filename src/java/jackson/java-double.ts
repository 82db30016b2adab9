/**
 * The text of Java's `Double.toString` (JDK 19 and later; older ones write more digits for some values): plain between
 * 1e-3 and 1e7, else `d.dddE±n`, always with a decimal point. `NaN`, `Infinity` and `-Infinity` as they are.
 */
export function javaDouble(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0'
  const magnitude = Math.abs(value)
  if (magnitude >= 1e-3 && magnitude < 1e7) {
    const text = String(value)
    return text.includes('.') ? text : `${text}.0`
  }
  let text = value.toExponential()
  if (!text.includes('.')) {
    // of one digit and two Java takes the nearer: Double.MIN_VALUE is 4.9E-324 there and 5e-324 here
    const two = value.toExponential(1)
    text = Number(two) === value ? two : text.replace('e', '.0e')
  }
  return text.replace('e+', 'E').replace('e', 'E')
}

const DOUBLE = /^[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/

/** Parses decimal text as Java's `Double.valueOf`; `undefined` for other text and for numbers beyond a double's range. */
export function parseJavaDouble(text: string): number | undefined {
  if (!DOUBLE.test(text)) return undefined
  if (text.endsWith('NaN')) return NaN
  const value = Number(text)
  return Number.isFinite(value) || text.endsWith('Infinity') ? value : undefined
}
