import { describe } from '../../errors.js'
import { quoted } from '../../text.js'
import { isConvertible, isPlain } from '../../codecs/instances.js'
import { JavaValue } from '../kryo/java-values.js'
import { ANY, BOOLEAN, BYTE, BYTES, DOUBLE, FLOAT, INT, SHORT, STRING, itemOfArray, type Spec } from './field-types.js'
import type { Fail, Format } from './format.js'
import { kindOf } from './java-types.js'
import type { ClassPlan, Plan } from './plan.js'
import { Position } from './position.js'
import { ScalarWriter } from './scalars-out.js'
import {
  entriesOf,
  isKnown,
  itemsOf,
  propertiesOf,
  sortKeys,
  undeclared,
  undeclaredClass,
  type Properties,
} from './shapes.js'

const CLASS = '@class'
const ARRAY_LIST = 'java.util.ArrayList'
const HASH_SET = 'java.util.HashSet'
const LINKED_HASH_MAP = 'java.util.LinkedHashMap'

/** Walks a value once and writes it as Jackson would, with the types that Redisson's readers need. */
export class Writer {
  readonly #plan: Plan
  readonly #wrapped: boolean
  readonly #position: Position
  readonly #format: Format
  readonly #scalars: ScalarWriter
  readonly #fail: Fail

  constructor(plan: Plan, formatOf: (fail: Fail) => Format) {
    this.#plan = plan
    this.#wrapped = plan.wrapped
    this.#position = new Position(plan.codec)
    this.#fail = (message) => this.#position.fail(message)
    this.#format = formatOf(this.#fail)
    this.#scalars = new ScalarWriter(this.#format, this.#position, plan.wrapped)
  }

  /** Writes one value at a time. */
  encode(value: unknown): Buffer {
    try {
      this.#typed(value, this.#plan.root)
      return this.#format.out.copy()
    } finally {
      this.#format.out.reset()
      this.#position.reset()
    }
  }

  /** Writes a value whose declared type in Java is Object. */
  #any(value: unknown): void {
    switch (typeof value) {
      case 'string':
        this.#format.text(value)
        break
      case 'number':
        this.#scalars.number(value, this.#wrapped)
        break
      case 'boolean':
        this.#format.bool(value)
        break
      case 'bigint':
        this.#scalars.long(value, this.#wrapped)
        break
      case 'object':
        if (value === null) this.#format.nil()
        else this.#object(value)
        break
      default:
        this.#fail(describe(value))
    }
  }

  #object(value: object): void {
    if (Array.isArray(value)) return this.#list(value, ARRAY_LIST, ANY)
    const prototype = Object.getPrototypeOf(value) as object | null
    if (prototype === Object.prototype || prototype === null) return this.#plainObject(value as Properties)
    const known = this.#plan.byPrototype.get(prototype)
    if (known !== undefined) return this.#fields(value as Properties, known.name, known)
    if (value instanceof Date) return this.#scalars.date(value)
    if (value instanceof Uint8Array) {
      return this.#format.nativeBytes && this.#position.isRoot
        ? this.#format.bytes(value)
        : this.#pair('[B', value, BYTES)
    }
    if (value instanceof JavaValue) return this.#javaValue(value)
    if (value instanceof Set) return this.#list([...(value as Set<unknown>)], HASH_SET, ANY)
    if (value instanceof Map) return this.#map(value, LINKED_HASH_MAP, ANY)
    if (!isConvertible(value)) this.#fail(undeclared(value))
    const result = this.#converted(value)
    if (isConvertible(result) && !isKnown(this.#plan, result)) {
      this.#fail(`the toJSON of ${describe(value)} gives an object with another toJSON`)
    }
    this.#any(result)
  }

  #converted(value: { toJSON(key: string): unknown }): unknown {
    return value.toJSON(String(this.#position.lastKey))
  }

  #pair(className: string, value: unknown, spec: Spec): void {
    if (this.#wrapped) this.#scalars.openPair(className)
    this.#typed(value, spec)
    if (this.#wrapped) this.#format.closePair()
  }

  #list(items: readonly unknown[], className: string | undefined, spec: Spec): void {
    this.#position.nest()
    this.#position.claim(items.length)
    const typed = this.#wrapped && className !== undefined
    if (typed) this.#scalars.openPair(className)
    this.#format.openArray(items.length, typed)
    for (let i = 0; i < items.length; i++) {
      this.#position.enter(i)
      this.#format.item(i)
      this.#typed(items[i], spec)
      this.#position.leave()
    }
    this.#format.closeArray(typed)
    if (typed) this.#format.closePair()
  }

  #map(map: ReadonlyMap<unknown, unknown>, className: string, spec: Spec): void {
    const entries = Object.create(null) as Record<string, unknown>
    for (const [key, value] of map) {
      if (typeof key !== 'string') this.#fail(`a key of the Map is ${describe(key)}, not a string`)
      if (value === undefined) this.#fail(`the Map holds undefined for ${quoted(key)}`)
      if (key === CLASS && this.#wrapped) this.#fail('a key of the Map is "@class", which means the class')
      entries[key] = value
    }
    this.#entries(entries, className, spec)
  }

  /** A plain object: of the declared class that its `@class` names, else a map. */
  #plainObject(value: Properties): void {
    const name = this.#classIn(value)
    if (name === undefined) return this.#properEntries(value, LINKED_HASH_MAP, ANY)
    const known = this.#plan.classes.get(name)
    if (known === undefined && !this.#plan.plainClasses) this.#fail(undeclaredClass(name))
    if (known === undefined && kindOf(name) === 'map') this.#entries(value, name, ANY)
    else this.#fields(value, name, known)
  }

  #classIn(value: Properties): string | undefined {
    if (!this.#wrapped || !Object.hasOwn(value, CLASS) || value[CLASS] === undefined) return undefined
    const name = value[CLASS]
    return typeof name === 'string' && name !== '' ? name : this.#fail(`its @class is ${describe(name)}`)
  }

  /** Checks the class in the data when the class is decided already. */
  #assertClass(value: Properties, className: string): void {
    const name = this.#classIn(value)
    if (name !== undefined && name !== className) this.#fail(`its @class is ${describe(name)}, expected ${className}`)
  }

  /** The entries of a map, in their order; a null stays. */
  #entries(value: Properties, className: string, spec: Spec): void {
    if (this.#wrapped) this.#assertClass(value, className)
    this.#properEntries(value, className, spec)
  }

  /** The entries of a map whose data are known to name no other class. */
  #properEntries(value: Properties, className: string, spec: Spec): void {
    this.#position.nest()
    const keys = Object.keys(value)
    this.#position.claim(2 * keys.length + (this.#wrapped ? 2 : 0))
    const isClass = this.#wrapped ? CLASS : undefined
    const count = this.#format.counts ? keys.filter((key) => value[key] !== undefined && key !== isClass).length : 0
    this.#format.openObject(this.#wrapped ? className : undefined, count)
    let first = !this.#wrapped
    for (const key of keys) {
      const part = value[key]
      if (part === undefined || key === isClass) continue
      this.#position.enter(key)
      this.#format.key(key, first)
      first = false
      if (typeof part === 'string' && spec === ANY) this.#format.text(part)
      else this.#typed(part, spec)
      this.#position.leave()
    }
    this.#format.closeObject()
  }

  /** The fields of a class: without nulls, which Jackson omits, and in alphabetical order if the class is registered. */
  #fields(value: Properties, className: string, known: ClassPlan | undefined): void {
    this.#position.nest()
    const keys = Object.keys(value)
    this.#position.claim(2 * keys.length + (this.#wrapped ? 2 : 0))
    if (this.#wrapped) this.#assertClass(value, className)
    if (known !== undefined) sortKeys(keys)
    const isClass = this.#wrapped ? CLASS : undefined
    const isNull = (key: string): boolean => value[key] === undefined || value[key] === null
    const count = this.#format.counts ? keys.filter((key) => !isNull(key) && key !== isClass).length : 0
    this.#format.openObject(this.#wrapped ? className : undefined, count)
    let first = !this.#wrapped
    for (const key of keys) {
      const part = value[key]
      if (part === undefined || part === null || key === isClass) continue
      this.#position.enter(key)
      this.#format.key(key, first)
      first = false
      const spec = known?.fields.get(key)
      if (spec !== undefined) this.#typed(part, spec)
      // without a declaration a large integer is a `long` field, or an Object field, which reads it as a Long
      else if (typeof part === 'number') this.#scalars.number(part, false)
      else this.#any(part)
      this.#position.leave()
    }
    this.#format.closeObject()
  }

  #typed(given: unknown, spec: Spec): void {
    if (given === null) return this.#format.nil()
    const value = spec !== ANY && isConvertible(given) && !isKnown(this.#plan, given) ? this.#converted(given) : given
    switch (spec.kind) {
      case 'any':
        return this.#any(value)
      case 'int':
        if (typeof value !== 'number' || !Number.isInteger(value) || value < spec.min || value > spec.max) {
          this.#fail(`expected a whole number from ${spec.min} to ${spec.max}, got ${describe(value)}`)
        }
        return this.#format.int(value)
      case 'long':
        return this.#scalars.long(value, false)
      case 'Long':
        return this.#scalars.long(value, this.#wrapped)
      case 'double':
      case 'float':
        return this.#floating(value instanceof JavaValue ? value.value : value, spec)
      case 'boolean':
        if (typeof value !== 'boolean') this.#fail(`expected true or false, got ${describe(value)}`)
        return this.#format.bool(value)
      case 'string':
        if (typeof value !== 'string') this.#fail(`expected a string, got ${describe(value)}`)
        return this.#format.text(value)
      case 'date':
        return this.#scalars.date(value)
      case 'uuid':
        return this.#scalars.uuid(value instanceof JavaValue ? value.value : value, !this.#plan.bareUuidFields)
      case 'decimal':
        return this.#scalars.bigDecimal(value instanceof JavaValue ? value.value : value)
      case 'biginteger':
        return this.#scalars.bigInteger(value instanceof JavaValue ? value.value : value)
      case 'bytes':
        if (!(value instanceof Uint8Array)) this.#fail(`expected a Buffer or Uint8Array, got ${describe(value)}`)
        return this.#format.bytes(value)
      case 'array':
        return this.#list(itemsOf(value, this.#fail), spec.wrapper, spec.item)
      case 'list':
      case 'set':
        if (value instanceof JavaValue) return this.#javaValue(value)
        return this.#list(itemsOf(value, this.#fail), spec.className, spec.item)
      case 'map':
        if (value instanceof JavaValue && value.type !== spec.className) return this.#javaValue(value)
        if (value instanceof Map) return this.#map(value, spec.className, spec.item)
        return this.#entries(entriesOf(value, this.#fail), spec.className, spec.item)
      case 'class': {
        if (value instanceof JavaValue) return this.#javaValue(value)
        const fields = propertiesOf(value, this.#plan, this.#fail)
        if (this.#classIn(fields) !== undefined) return this.#plainObject(fields)
        const known =
          this.#plan.byPrototype.get(Object.getPrototypeOf(fields) as object) ?? this.#plan.classes.get(spec.name)
        return this.#fields(fields, known?.name ?? spec.name, known)
      }
      default:
        return spec satisfies never
    }
  }

  #floating(value: unknown, spec: Spec): void {
    if (typeof value !== 'number') this.#fail(`expected a number, got ${describe(value)}`)
    if (spec.kind === 'double') return this.#format.double(value, true)
    if (Number.isFinite(value) && !Number.isFinite(Math.fround(value))) this.#fail(`${value} is too large for a float`)
    this.#format.float(value)
  }

  #javaValue({ type, value }: JavaValue): void {
    if (value === undefined || value === null) this.#fail(`a ${type} without a value`)
    const kind = kindOf(type)
    if (value instanceof JavaValue && kind !== 'unknown') this.#fail(`a ${type} cannot be made of a ${value.type}`)
    switch (kind) {
      case 'long':
        return this.#scalars.long(value, this.#wrapped)
      case 'integer':
        if (type === 'java.lang.Integer') return this.#typed(value, INT)
        return this.#pair(type, value, type === 'java.lang.Short' ? SHORT : BYTE)
      case 'double':
        return type === 'java.lang.Double' ? this.#typed(value, DOUBLE) : this.#pair(type, value, FLOAT)
      case 'string':
        return type === 'java.lang.String' ? this.#typed(value, STRING) : this.#pair(type, value, STRING)
      case 'boolean':
        return this.#typed(value, BOOLEAN)
      case 'date':
        return this.#scalars.date(value)
      case 'uuid':
        return this.#scalars.uuid(value, true)
      case 'decimal':
        return this.#scalars.bigDecimal(value)
      case 'biginteger':
        return this.#scalars.bigInteger(value)
      case 'bytes':
        return this.#pair(type, value, BYTES)
      case 'array':
      case 'doubles':
        return this.#list(itemsOf(value, this.#fail), type, itemOfArray(type))
      case 'list':
      case 'set':
        return this.#list(itemsOf(value, this.#fail), type, ANY)
      case 'map':
        return this.#typed(value, { kind: 'map', className: type, item: ANY })
      case 'unknown':
        return this.#unknown(type, value)
    }
  }

  #unknown(className: string, value: unknown): void {
    if (!this.#wrapped) this.#fail(`plain JSON has no place for the class ${className}`)
    if (className === '') this.#fail('a class without a name')
    if (typeof value === 'object' && value !== null && (isPlain(value) || this.#plan.classes.has(className))) {
      return this.#fields(propertiesOf(value, this.#plan, this.#fail), className, this.#plan.classes.get(className))
    }
    this.#scalars.openPair(className)
    if (Array.isArray(value)) this.#list(value, undefined, ANY)
    else if (typeof value === 'number') this.#scalars.number(value, false)
    else if (typeof value === 'bigint') this.#scalars.long(value, false)
    else if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'object') this.#any(value)
    else this.#fail(`a ${className} made of ${describe(value)}`)
    this.#format.closePair()
  }
}
