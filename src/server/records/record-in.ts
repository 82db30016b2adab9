/** The kind of a field of a record; `?`: or `null`. */
type Kind = 'text' | 'text?' | 'number' | 'number?' | 'flag'

/** For each field of a record its kind, or a check. */
export type Form<T> = { readonly [K in keyof T]-?: Kind | ((value: unknown) => boolean) }

/**
 * Reads a record from a JSON text that another program can have written: the fields of its form and no others; `undefined` if one of them
 * does not match.
 */
export function recordIn<T>(text: string, form: Form<T>): T | undefined {
  const found = objectIn(text)
  if (found === undefined) return undefined
  const record: Record<string, unknown> = {}
  for (const [name, kind] of Object.entries<Form<T>[keyof T]>(form)) {
    const value = Object.hasOwn(found, name) ? found[name] : undefined
    if (!(typeof kind === 'function' ? kind(value) : isOf(kind, value))) return undefined
    record[name] = value
  }
  return record as T
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const found: unknown = JSON.parse(text)
    return typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function isOf(kind: Kind, value: unknown): boolean {
  if (kind.endsWith('?') && value === null) return true
  if (kind === 'flag') return typeof value === 'boolean'
  return kind.startsWith('text') ? typeof value === 'string' : Number.isFinite(value)
}
