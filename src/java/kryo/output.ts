import { EncodeError, describe } from '../../errors.js'
import { MAX_ELEMENTS } from '../../codecs/budget.js'
import { MAX_DEPTH } from '../../codecs/codec.js'
import { formatPath } from '../../codecs/encodable.js'
import { isConvertible } from '../../codecs/instances.js'
import { EnumMapStream } from './enum-map.js'
import { JavaValue } from './java-values.js'
import { CLASS_KEY } from './pojo.js'
import { NAME } from './reader.js'
import { DOUBLE, INTEGER, LONG, STRING, BOOLEAN } from './scalars.js'
import type { Args, Classes, Output, Serializer } from './serializer.js'
import { Writer } from './writer.js'

const NOT_NULL = 1
const STRING_TAG = 3

/** Writes one value and its content: Kryo's `writeClassAndObject` and related methods. */
export class ValueWriter extends Writer implements Output {
  readonly #classes: Classes
  readonly exact: boolean
  readonly #references: boolean
  readonly #names: Serializer[] = []
  readonly #written = new Map<unknown, number>()
  #count = 0
  #elements = 0
  #enumMaps: EnumMapStream | undefined
  #depth = 0
  readonly #path: (string | number)[] = []

  constructor(classes: Classes, { references, exact }: { references: boolean; exact: boolean }) {
    super()
    this.#classes = classes
    this.#references = references
    this.exact = exact
  }

  encode(value: unknown): Buffer {
    this.#depth = 0
    this.#count = 0
    this.#elements = 0
    this.#names.length = 0
    this.#enumMaps = undefined
    try {
      if (value === null || value === undefined) this.refuse(`${describe(value)} is no element of a queue`)
      this.any(value)
      return this.take()
    } finally {
      this.rewind()
      if (this.#references) this.#written.clear()
    }
  }

  key(key: string | number): void {
    this.#path[this.#depth - 1] = key
  }

  refuse(message: string): never {
    throw new EncodeError(NAME, formatPath(this.#path.slice(0, this.#depth)), message)
  }

  enter(): void {
    if (this.#depth >= MAX_DEPTH) {
      this.#depth = 8 // a path of 128 steps would not help
      this.refuse(`it nests deeper than ${MAX_DEPTH} levels or contains itself`)
    }
    this.#depth++
  }

  leave(): void {
    this.#depth--
  }

  claim(count: number): void {
    this.#elements += count
    if (this.#elements > MAX_ELEMENTS) this.refuse(`the value has more than ${MAX_ELEMENTS} elements`)
  }

  get enumMaps(): EnumMapStream {
    return (this.#enumMaps ??= new EnumMapStream())
  }

  own(value: unknown): unknown {
    if (!isConvertible(value) || value instanceof JavaValue || this.#classes.of(value) !== undefined) return value
    const result = value.toJSON(String(this.#path[this.#depth - 1] ?? ''))
    if (isConvertible(result) && this.#classes.of(result) === undefined) {
      this.refuse(`the toJSON of ${describe(value)} gives an object with another toJSON`)
    }
    return result
  }

  classOf(value: unknown): Serializer {
    return this.#classIfKnown(value) ?? this.refuse(unknownClass(value))
  }

  known(value: object): Serializer | undefined {
    return this.#classes.of(value)
  }

  /** `undefined` for an object whose `toJSON` result has to replace it. */
  #classIfKnown(value: unknown): Serializer | undefined {
    switch (typeof value) {
      case 'string':
        return STRING
      case 'number':
        if (!Number.isSafeInteger(value) || Object.is(value, -0)) return DOUBLE
        return (value | 0) === value ? INTEGER : LONG
      case 'bigint':
        return LONG
      case 'boolean':
        return BOOLEAN
      case 'object': {
        const serializer = value === null ? undefined : this.#classes.of(value)
        if (serializer !== undefined) return serializer
        if (isConvertible(value) && !(value instanceof JavaValue)) return undefined
        return this.refuse(unknownClass(value))
      }
      default:
        return this.refuse(describe(value))
    }
  }

  writeClass(serializer: Serializer): void {
    const ids = this.#classes.ids
    const id = serializer.id ?? ids?.get(serializer.name)
    if (id !== undefined) this.varint(id + 2)
    else if (ids !== undefined) this.refuse(`class ${serializer.name} is not among the allowedClasses`)
    else {
      this.byte(1)
      const known = this.#names.indexOf(serializer)
      if (known >= 0) this.varint(known)
      else {
        this.varint(this.#names.push(serializer) - 1)
        this.className(serializer.name)
      }
    }
  }

  any(value: unknown, args?: Args): void {
    if (value === null) this.byte(0)
    else if (typeof value === 'string' && !this.#references) {
      this.byte(STRING_TAG)
      this.string(value)
    } else {
      const serializer = this.#classIfKnown(value)
      if (serializer === undefined) return this.any(this.own(value), args)
      this.writeClass(serializer)
      this.object(serializer, value, args)
    }
  }

  object(serializer: Serializer, value: unknown, args?: Args): void {
    if (this.#references && serializer.referable && this.#refersBack(value)) return
    serializer.write(this, value instanceof JavaValue ? this.#unwrap(serializer, value) : value, args)
  }

  nullable(serializer: Serializer, value: unknown, args?: Args): void {
    if (value === null) this.byte(this.#references ? 0 : (serializer.nullByte ?? 0))
    else {
      const marked = this.#references ? !serializer.referable : serializer.nullByte === undefined
      if (marked) this.byte(NOT_NULL)
      this.object(serializer, value, args)
    }
  }

  #unwrap(serializer: Serializer, value: JavaValue): unknown {
    if (value.type !== serializer.name) this.refuse(`expected ${serializer.name}, got ${value.type}`)
    if (value.value instanceof JavaValue && serializer.holds !== true) {
      this.refuse(`a ${value.type} cannot be made of a ${value.value.type}`)
    }
    return 'ordinal' in value ? value : value.value
  }

  /** Writes the number of an object that was written before; a new object gets the next number, which the reader counts too. */
  #refersBack(value: unknown): boolean {
    const number = typeof value === 'object' ? this.#written.get(value) : undefined
    if (number !== undefined) {
      this.varint(number + 2)
      return true
    }
    if (typeof value === 'object') this.#written.set(value, this.#count)
    this.#count++
    this.byte(NOT_NULL)
    return false
  }
}

function unknownClass(value: unknown): string {
  const name = value instanceof JavaValue ? value.type : (value as Record<string, unknown>)[CLASS_KEY]
  if (typeof name === 'string') return `class ${name.slice(0, 200)} is neither built in nor declared`
  const prototype = Object.getPrototypeOf(value) as object | null
  if (typeof value !== 'object' || prototype === null || Object.prototype.toString.call(value) !== '[object Object]')
    return describe(value)
  return `${describe(value)}, whose class is not declared and has no toJSON`
}
