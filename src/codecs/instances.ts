/** Whether an object is made of its own properties only, and of no class. */
export function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null
  return prototype === Object.prototype || prototype === null
}

interface Convertible {
  toJSON(key: string): unknown
}

/**
 * Whether the object is of a class that says by `toJSON` what stands for it, as `JSON.stringify` asks. Dates and bytes are what they
 * are.
 */
export function isConvertible(value: unknown): value is Convertible {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isPlain(value)) return false
  if (value instanceof Date || value instanceof Uint8Array) return false
  return typeof (value as Partial<Convertible>).toJSON === 'function'
}
