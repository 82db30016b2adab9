/** How the reader treats what is marked with the name of a Java class. */
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

const LIST = /^java\.util\.[\w.$]*(?:List\w*|Vector|Stack|Deque|Queue|Collection)$/
const SET = /^java\.util\.[\w.$]*Set[\w]*(?:<.*>)?$/
const MAP = /^java\.util\.[\w.$]*Map[\w]*(?:<.*>)?$/
const ARRAY = /^\[+(?:[ZSIJFDCB]|L[\w.$]+;)$/

/** Lists, sets and maps of `java.util` are known by the way they are named, so that wrappers of them are too. */
export function kindOf(className: string): Kind {
  if (className === 'java.util.LinkedHashMap') return 'map'
  if (className === 'java.util.ArrayList') return 'list'
  const known = KINDS.get(className)
  if (known !== undefined) return known
  if (ARRAY.test(className)) return 'array'
  if (!className.startsWith('java.util.') || className.length > 200) return 'unknown'
  if (MAP.test(className)) return 'map'
  if (SET.test(className)) return 'set'
  return LIST.test(className) ? 'list' : 'unknown'
}

const CLASS_NAME = /^(?:[A-Za-z_]\w*\.)+[A-Z_$][\w$]*(?:<[\w.$,<>]*>)?$/

/**
 * Whether the first item of a bare two-item array names a class, as in `["com.x.Color","RED"]`, and is no text of its own.
 * By convention packages are dotted and the last part of a class name begins with a capital.
 */
export function looksLikeClassName(text: string): boolean {
  return text.length <= 500 && CLASS_NAME.test(text)
}
