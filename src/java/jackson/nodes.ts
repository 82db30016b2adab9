import { MAX_DEPTH } from '../../codecs/codec.js'
import { JavaValue } from '../kryo/java-values.js'

/**
 * The nodes that a parser passes to the reader: null, booleans, strings, numbers, bigints for integers beyond 2^53, `NumberText`,
 * `Buffer`, `JavaValue` for numbers that CBOR tags and whole doubles in exact mode, arrays, and plain objects that nothing else refers to.
 */
export type Node = unknown

/** A number of a JSON text whose digits matter: an integer beyond 2^53, or one that may be a BigDecimal. */
export class NumberText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** A double as a node; exact mode distinguishes a whole one from an integer. */
export function asDouble(input: { readonly exact: boolean }, value: number): Node {
  return input.exact && Number.isSafeInteger(value) ? new JavaValue('java.lang.Double', value) : value
}

/**
 * The deepest nesting on the wire: each level of a value takes up to two levels, the pair and the list in it, and the last one can be a
 * pair such as a Long.
 */
export const MAX_WIRE_DEPTH = 2 * MAX_DEPTH + 1

/** Sets an own property of a plain object, whatever the name: `__proto__` is a key like any other. */
export function setProperty(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') defineProperty(target, key, value)
  else target[key] = value
}

/** Sets an own property where a prototype may have one of that name: no setter is called. */
export function defineProperty(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
}
