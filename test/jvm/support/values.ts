/** Java values as the line protocol carries them: the class's name without its package, and the value as JSON. */
export interface Typed {
  readonly t: string
  readonly v?: unknown
}

const of =
  <V>(t: string, toJson: (value: V) => unknown = (value) => value) =>
  (value: V): Typed => ({ t, v: toJson(value) })

type Entry = readonly [key: Typed, value: Typed]

/** One maker per class; what would not survive JSON travels as text. */
export const java = Object.freeze({
  nothing: Object.freeze({ t: 'null' }),
  string: of<string>('String'),
  boolean: of<boolean>('Boolean'),
  byte: of<number>('Byte'),
  short: of<number>('Short'),
  integer: of<number>('Integer'),
  long: of<bigint | number>('Long', String),
  /** As Java prints it. */
  float: of<string>('Float'),
  /** As Java prints it. */
  double: of<string>('Double'),
  character: of<string>('Character'),
  bigInteger: of<string>('BigInteger'),
  bigDecimal: of<string>('BigDecimal'),
  date: of<number>('Date'),
  uuid: of<string>('UUID'),
  bytes: of<Uint8Array>('byte[]', (bytes) => Buffer.from(bytes).toString('base64')),
  color: of<'RED' | 'GREEN' | 'BLUE'>('Color'),
  list: (items: readonly Typed[], t = 'ArrayList'): Typed => ({ t, v: items }),
  set: (items: readonly Typed[], t = 'HashSet'): Typed => ({ t, v: items }),
  map: (entries: readonly Entry[], t = 'HashMap'): Typed => ({ t, v: entries }),
  array: (items: readonly Typed[]): Typed => ({ t: 'Object[]', v: items }),
  order: of<Readonly<Record<string, Typed>>>('Order'),
  item: of<Readonly<Record<string, Typed>>>('Item'),
})

/** For comparing: HashMap and HashSet have no order, and Java lists the fields of an object in its own. */
export function normalised(value: Typed): unknown {
  if (value.v === null || typeof value.v !== 'object') return value
  if (!Array.isArray(value.v)) {
    const fields = Object.entries(value.v as Record<string, Typed>).sort(([a], [b]) => (a < b ? -1 : 1))
    return { t: value.t, v: fields.map(([name, field]) => [name, normalised(field)]) }
  }
  const items = (value.v as (Typed | Entry | string)[]).map((item) => {
    if (typeof item === 'string') return item
    return Array.isArray(item) ? item.map((part: Typed) => normalised(part)) : normalised(item as Typed)
  })
  const unordered = value.t === 'HashMap' || value.t === 'HashSet'
  return { t: value.t, v: unordered ? items.map((item) => JSON.stringify(item)).sort() : items }
}
