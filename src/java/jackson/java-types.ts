/** How the reader handles values with the name of a Java class. */
export type Kind =
  | 'long'
  | 'integer'
  | 'double'
  | 'string'
  | 'boolean'
  | 'date'
  | 'uuid'
  | 'decimal'
  | 'biginteger'
  | 'bytes'
  | 'array'
  | 'doubles'
  | 'list'
  | 'set'
  | 'map'
  | 'unknown'

const KINDS = new Map<string, Kind>([
  ['java.lang.Long', 'long'],
  ['java.util.HashMap', 'map'],
  ['java.util.Date', 'date'],
  ['java.math.BigDecimal', 'decimal'],
  ['java.math.BigInteger', 'biginteger'],
  ['java.util.UUID', 'uuid'],
  ['[B', 'bytes'],
  ['[C', 'string'],
  ['[D', 'doubles'],
  ['[F', 'doubles'],
  ['java.lang.Integer', 'integer'],
  ['java.lang.Short', 'integer'],
  ['java.lang.Byte', 'integer'],
  ['java.lang.Double', 'double'],
  ['java.lang.Float', 'double'],
  ['java.lang.String', 'string'],
  ['java.lang.Character', 'string'],
  ['java.lang.Boolean', 'boolean'],
  ['java.util.Properties', 'map'],
  ['java.util.Hashtable', 'map'],
])

/** The longest name and the most dimensions of a known class. */
const MAX_NAME = 200
const MAX_DIMENSIONS = 16
const ARRAY = /^\[+(?:[ZSIJFDCB]|L[\w.$]+;)$/
const PLAIN_NAME = /^[\w.$]*$/
const LIST_ENDS = ['Vector', 'Stack', 'Deque', 'Queue', 'Collection']

/** Lists, sets and maps of `java.util` are recognized by their names, and so are their wrappers. */
export function kindOf(className: string): Kind {
  if (className === 'java.util.LinkedHashMap') return 'map'
  if (className === 'java.util.ArrayList') return 'list'
  const known = KINDS.get(className)
  if (known !== undefined) return known
  if (className.length > MAX_NAME) return 'unknown'
  if (className.startsWith('[')) {
    return className.lastIndexOf('[') < MAX_DIMENSIONS && ARRAY.test(className) ? 'array' : 'unknown'
  }
  return className.startsWith('java.util.') ? kindOfCollection(className) : 'unknown'
}

/** The kind by the last part of the name; type arguments may follow that of a set or a map. */
function kindOfCollection(className: string): Kind {
  const generic = className.endsWith('>') ? className.indexOf('<') : -1
  const name = generic < 0 ? className : className.slice(0, generic)
  if (!PLAIN_NAME.test(name)) return 'unknown'
  const last = name.slice(Math.max(name.lastIndexOf('.'), name.lastIndexOf('$')) + 1)
  if (last.includes('Map')) return 'map'
  if (last.includes('Set')) return 'set'
  if (generic >= 0) return 'unknown'
  return last.includes('List') || LIST_ENDS.some((end) => last.endsWith(end)) ? 'list' : 'unknown'
}

const CLASS_NAME = /^(?:[A-Za-z_]\w*\.)+[A-Z_$][\w$]*(?:<[\w.$,<>]*>)?$/

/**
 * Whether the first item of a bare two-item array names a class, as in `["com.x.Color","RED"]`, and is not an ordinary text.
 * By convention packages are dotted and the last part of a class name begins with a capital.
 */
export function looksLikeClassName(text: string): boolean {
  return text.length <= 500 && CLASS_NAME.test(text)
}
