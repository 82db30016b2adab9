import { InvalidArgumentError, inQuotes } from '../../errors.js'
import { MAX_INT32, MIN_INT32 } from '../scalars.js'

/**
 * The declared type of a Java field, as its source says: `'int'`, `'Long'`, `'Date'`, `'byte[]'`, `'List<Long>'`,
 * `'Map<String, Date>'`, the full name of a class, or `'enum'`. `'Object'` is the same as no declaration.
 */
export type FieldType = string

/** A parsed {@link FieldType}. */
export type Spec =
  | { readonly kind: 'any' | 'long' | 'Long' | 'double' | 'float' | 'boolean' | 'string' }
  | { readonly kind: 'date' | 'uuid' | 'decimal' | 'biginteger' | 'bytes' }
  | { readonly kind: 'int'; readonly min: number; readonly max: number }
  /** `wrapper` is the class name before the items; arrays of primitives and of final classes have none. */
  | { readonly kind: 'array'; readonly wrapper: string | undefined; readonly item: Spec }
  | { readonly kind: 'list' | 'set'; readonly className: string; readonly item: Spec }
  | { readonly kind: 'map'; readonly className: string; readonly item: Spec }
  | { readonly kind: 'class'; readonly name: string }

export const ANY: Spec = Object.freeze({ kind: 'any' })

export const INT: Spec = { kind: 'int', min: MIN_INT32, max: MAX_INT32 }
export const SHORT: Spec = { kind: 'int', min: -(2 ** 15), max: 2 ** 15 - 1 }
export const BYTE: Spec = { kind: 'int', min: -(2 ** 7), max: 2 ** 7 - 1 }
export const LONG: Spec = { kind: 'long' }
export const DOUBLE: Spec = { kind: 'double' }
export const FLOAT: Spec = { kind: 'float' }
export const STRING: Spec = { kind: 'string' }
export const BOOLEAN: Spec = { kind: 'boolean' }
export const BYTES: Spec = { kind: 'bytes' }

const SIMPLE = new Map<string, Spec>([
  ['Object', ANY],
  ['int', INT],
  ['Integer', INT],
  ['short', SHORT],
  ['Short', SHORT],
  ['byte', BYTE],
  ['Byte', BYTE],
  ['long', LONG],
  ['Long', { kind: 'Long' }],
  ['double', DOUBLE],
  ['Double', DOUBLE],
  ['float', FLOAT],
  ['Float', FLOAT],
  ['boolean', BOOLEAN],
  ['Boolean', BOOLEAN],
  ['String', STRING],
  ['char', STRING],
  ['Character', STRING],
  ['enum', STRING],
  ['Date', { kind: 'date' }],
  ['UUID', { kind: 'uuid' }],
  ['BigDecimal', { kind: 'decimal' }],
  ['BigInteger', { kind: 'biginteger' }],
])

/** The classes for fields whose declared type is an interface. */
const COLLECTIONS = new Map<string, readonly ['list' | 'set' | 'map', string]>([
  ['Collection', ['list', 'java.util.ArrayList']],
  ['List', ['list', 'java.util.ArrayList']],
  ['ArrayList', ['list', 'java.util.ArrayList']],
  ['LinkedList', ['list', 'java.util.LinkedList']],
  ['Set', ['set', 'java.util.HashSet']],
  ['HashSet', ['set', 'java.util.HashSet']],
  ['LinkedHashSet', ['set', 'java.util.LinkedHashSet']],
  ['TreeSet', ['set', 'java.util.TreeSet']],
  ['Map', ['map', 'java.util.LinkedHashMap']],
  ['HashMap', ['map', 'java.util.HashMap']],
  ['LinkedHashMap', ['map', 'java.util.LinkedHashMap']],
  ['TreeMap', ['map', 'java.util.TreeMap']],
  ['ConcurrentHashMap', ['map', 'java.util.concurrent.ConcurrentHashMap']],
])

/** The class name before the items of an array of these; the other types are primitive or final, and their arrays have none. */
const ARRAY_WRAPPERS = new Map<string, string>([
  ['Object', '[Ljava.lang.Object;'],
  ['Long', '[Ljava.lang.Long;'],
  ['Date', '[Ljava.util.Date;'],
  ['BigDecimal', '[Ljava.math.BigDecimal;'],
  ['BigInteger', '[Ljava.math.BigInteger;'],
])

const TYPE = /^([A-Za-z_$][\w$.]*)(?:<(.*)>)?((?:\[\])*)$/
const MAX_TYPE_LENGTH = 1000

/** Parses a declared type; `isClass` returns whether a class of that name is registered. `what` names the option in the error. */
export function parseFieldType(what: string, type: unknown, isClass: (name: string) => boolean): Spec {
  const refuse = (): never => {
    const known = [...SIMPLE.keys(), 'byte[]', ...COLLECTIONS.keys()].join(', ')
    throw new InvalidArgumentError(
      what,
      `a Java type (${known}, or the full name of a class, each with [] or <>)`,
      inQuotes(type),
    )
  }
  if (typeof type !== 'string' || type.length > MAX_TYPE_LENGTH) return refuse()
  const [, name = '', generics, brackets = ''] = TYPE.exec(type.replaceAll(' ', '')) ?? []
  const collection = COLLECTIONS.get(name)
  let dimensions = brackets.length / 2
  let spec: Spec
  let wrapper = ARRAY_WRAPPERS.get(name)
  if (collection !== undefined) {
    if (dimensions > 0) return refuse() // the class in its wrapper depends on the declaration
    const [kind, className] = collection
    const parts = generics === undefined ? [] : splitGenerics(generics)
    if (parts.length > (kind === 'map' ? 2 : 1)) return refuse()
    const last = parts.at(-1)
    return { kind, className, item: last === undefined ? ANY : parseFieldType(what, last, isClass) }
  }
  if (generics !== undefined) return refuse()
  const simple = SIMPLE.get(name)
  if ((name === 'byte' || name === 'char') && dimensions > 0) {
    spec = name === 'byte' ? BYTES : STRING
    dimensions--
  } else if (simple !== undefined) spec = simple
  else if (name.includes('.') || isClass(name)) {
    spec = { kind: 'class', name }
    wrapper = `[L${name};`
  } else return refuse()
  for (; dimensions > 0; dimensions--) {
    spec = { kind: 'array', wrapper, item: spec }
    if (wrapper !== undefined) wrapper = `[${wrapper}`
  }
  return spec
}

const PRIMITIVES = new Map<string, Spec>([
  ['B', BYTE],
  ['C', STRING],
  ['D', DOUBLE],
  ['F', FLOAT],
  ['I', INT],
  ['J', LONG],
  ['S', SHORT],
  ['Z', BOOLEAN],
])

/** The items of a Java array by the name of its class, e.g. `[I`, `[[D`, `[Ljava.lang.Long;`. */
export function itemOfArray(className: string): Spec {
  if (className === '[[B') return BYTES
  if (className === '[[C') return STRING
  const primitive = PRIMITIVES.get(className.charAt(1))
  if (className.length === 2 && primitive !== undefined) return primitive
  // arrays of primitives have no class name inside other arrays
  if (/^\[\[+[A-Z]$/.test(className))
    return { kind: 'array', wrapper: undefined, item: itemOfArray(className.slice(1)) }
  return ANY
}

/** Splits type arguments at the commas outside inner brackets. */
function splitGenerics(generics: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let i = 0; i < generics.length; i++) {
    const char = generics[i]
    if (char === '<') depth++
    else if (char === '>') depth--
    else if (char === ',' && depth === 0) {
      parts.push(generics.slice(start, i))
      start = i + 1
    }
  }
  return [...parts, generics.slice(start)]
}
