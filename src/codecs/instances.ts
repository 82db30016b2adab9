/** Whether an object is a plain object, without a class. */
export function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null
  return prototype === Object.prototype || prototype === null
}

interface Convertible {
  toJSON(key: string): unknown
}

/**
 * Whether the object has a `toJSON` whose result is encoded instead, as `JSON.stringify` does. Dates and bytes are encoded
 * as themselves.
 */
export function isConvertible(value: unknown): value is Convertible {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isPlain(value)) return false
  if (value instanceof Date || value instanceof Uint8Array) return false
  return typeof (value as Partial<Convertible>).toJSON === 'function'
}
