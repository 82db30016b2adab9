import { describe } from '../../errors.js'
import { quoted } from '../../text.js'
import { isConvertible, isPlain } from '../../codecs/instances.js'
import { JavaValue } from '../kryo/java-values.js'
import type { BytesOut } from './bytes-out.js'
import { ANY, BOOLEAN, BYTE, BYTES, DOUBLE, FLOAT, INT, SHORT, STRING, itemOfArray, type Spec } from './field-types.js'
import { kindOf } from './java-types.js'
import { Output } from './output.js'
import type { ClassPlan } from './plan.js'

const CLASS = '@class'
const ARRAY_LIST = 'java.util.ArrayList'
const HASH_SET = 'java.util.HashSet'
const LINKED_HASH_MAP = 'java.util.LinkedHashMap'

type Properties = Readonly<Record<string, unknown>>

/** Walks a value once and writes what Jackson would, with the types that Redisson's readers need. */
export abstract class Writer extends Output {
  protected abstract readonly out: BytesOut

  /** One value at a time. */
  encode(value: unknown): Buffer {
    try {
      this.#typed(value, this.plan.root)
      return this.out.copy()
    } finally {
      this.out.reset()
      this.reset()
    }
  }

  /** A value where Java sees an Object. */
  #any(value: unknown): void {
    switch (typeof value) {
      case 'string':
        this.text(value)
        break
      case 'number':
        this.number(value, this.wrapped)
        break
      case 'boolean':
        this.bool(value)
        break
      case 'bigint':
        this.long(value, this.wrapped)
        break
      case 'object':
        if (value === null) this.nil()
        else this.#object(value)
        break
      default:
        this.fail(describe(value))
    }
  }

  #object(value: object): void {
    if (Array.isArray(value)) return this.#list(value, ARRAY_LIST, ANY)
    const prototype = Object.getPrototypeOf(value) as object | null
    if (prototype === Object.prototype || prototype === null) return this.#plainObject(value as Properties)
    const known = this.plan.byPrototype.get(prototype)
    if (known !== undefined) return this.#fields(value as Properties, known.name, known)
    if (value instanceof Date) return this.date(value)
    if (value instanceof Uint8Array) {
      return this.nativeBytes && this.atRoot ? this.bytes(value) : this.#pair('[B', value, BYTES)
    }
    if (value instanceof JavaValue) return this.#javaValue(value)
    if (value instanceof Set) return this.#list([...(value as Set<unknown>)], HASH_SET, ANY)
    if (value instanceof Map) return this.#map(value, LINKED_HASH_MAP, ANY)
    if (!isConvertible(value)) this.fail(undeclared(value))
    const result = this.#converted(value)
    if (isConvertible(result) && !this.#isKnown(result)) {
      this.fail(`the toJSON of ${describe(value)} gives an object with another toJSON`)
    }
    this.#any(result)
  }

  #converted(value: { toJSON(key: string): unknown }): unknown {
    return value.toJSON(String(this.lastKey))
  }

  #isKnown(value: object): boolean {
    return value instanceof JavaValue || this.plan.byPrototype.has(Object.getPrototypeOf(value) as object)
  }

  #pair(className: string, value: unknown, spec: Spec): void {
    if (this.wrapped) this.pair(className)
    this.#typed(value, spec)
    if (this.wrapped) this.closePair()
  }

  #list(items: readonly unknown[], className: string | undefined, spec: Spec): void {
    this.nest()
    this.claim(items.length)
    const typed = this.wrapped && className !== undefined
    if (typed) this.pair(className)
    this.openArray(items.length, typed)
    for (let i = 0; i < items.length; i++) {
      this.enter(i)
      this.item(i)
      this.#typed(items[i], spec)
      this.leave()
    }
    this.closeArray(typed)
    if (typed) this.closePair()
  }

  #map(map: ReadonlyMap<unknown, unknown>, className: string, spec: Spec): void {
    const entries = Object.create(null) as Record<string, unknown>
    for (const [key, value] of map) {
      if (typeof key !== 'string') this.fail(`a key of the Map is ${describe(key)}, not a string`)
      if (value === undefined) this.fail(`the Map holds undefined for ${quoted(key)}`)
      if (key === CLASS && this.wrapped) this.fail('a key of the Map is "@class", which means the class')
      entries[key] = value
    }
    this.#entries(entries, className, spec)
  }

  /** A plain object: of the declared class that its `@class` names, else a map. */
  #plainObject(value: Properties): void {
    const name = this.#classIn(value)
    if (name === undefined) return this.#properEntries(value, LINKED_HASH_MAP, ANY)
    const known = this.plan.classes.get(name)
    if (known === undefined && !this.plan.plainClasses) this.fail(undeclaredClass(name))
    if (known === undefined && kindOf(name) === 'map') this.#entries(value, name, ANY)
    else this.#fields(value, name, known)
  }

  #classIn(value: Properties): string | undefined {
    if (!this.wrapped || !Object.hasOwn(value, CLASS) || value[CLASS] === undefined) return undefined
    const name = value[CLASS]
    return typeof name === 'string' && name !== '' ? name : this.fail(`its @class is ${describe(name)}`)
  }

  /** What the data say of a class that is decided already. */
  #assertClass(value: Properties, className: string): void {
    const name = this.#classIn(value)
    if (name !== undefined && name !== className) this.fail(`its @class is ${describe(name)}, expected ${className}`)
  }

  /** The entries of a map, in their order; a null stays. */
  #entries(value: Properties, className: string, spec: Spec): void {
    if (this.wrapped) this.#assertClass(value, className)
    this.#properEntries(value, className, spec)
  }

  /** The entries of a map whose data are known to name no other class. */
  #properEntries(value: Properties, className: string, spec: Spec): void {
    this.nest()
    const keys = Object.keys(value)
    this.claim(2 * keys.length + (this.wrapped ? 2 : 0))
    const isClass = this.wrapped ? CLASS : undefined
    const count = this.counts ? keys.filter((key) => value[key] !== undefined && key !== isClass).length : 0
    this.openObject(this.wrapped ? className : undefined, count)
    let first = !this.wrapped
    for (const key of keys) {
      const part = value[key]
      if (part === undefined || key === isClass) continue
      this.enter(key)
      this.key(key, first)
      first = false
      if (typeof part === 'string' && spec === ANY) this.text(part)
      else this.#typed(part, spec)
      this.leave()
    }
    this.closeObject()
  }

  /** The fields of a class: without nulls, as Jackson leaves them out, and where it is registered in alphabetical order. */
  #fields(value: Properties, className: string, known: ClassPlan | undefined): void {
    this.nest()
    const keys = Object.keys(value)
    this.claim(2 * keys.length + (this.wrapped ? 2 : 0))
    if (this.wrapped) this.#assertClass(value, className)
    if (known !== undefined) sort(keys)
    const isClass = this.wrapped ? CLASS : undefined
    const isNull = (key: string): boolean => value[key] === undefined || value[key] === null
    const count = this.counts ? keys.filter((key) => !isNull(key) && key !== isClass).length : 0
    this.openObject(this.wrapped ? className : undefined, count)
    let first = !this.wrapped
    for (const key of keys) {
      const part = value[key]
      if (part === undefined || part === null || key === isClass) continue
      this.enter(key)
      this.key(key, first)
      first = false
      const spec = known?.fields.get(key)
      if (spec !== undefined) this.#typed(part, spec)
      // without a declaration a large integer is a `long` field, or an Object field, which reads it as a Long
      else if (typeof part === 'number') this.number(part, false)
      else this.#any(part)
      this.leave()
    }
    this.closeObject()
  }

  #typed(given: unknown, spec: Spec): void {
    if (given === null) return this.nil()
    const value = spec !== ANY && isConvertible(given) && !this.#isKnown(given) ? this.#converted(given) : given
    switch (spec.kind) {
      case 'any':
        return this.#any(value)
      case 'int':
        if (typeof value !== 'number' || !Number.isInteger(value) || value < spec.min || value > spec.max) {
          this.fail(`expected a whole number from ${spec.min} to ${spec.max}, got ${describe(value)}`)
        }
        return this.int(value)
      case 'long':
        return this.long(value, false)
      case 'Long':
        return this.long(value, this.wrapped)
      case 'double':
      case 'float':
        return this.#floating(value instanceof JavaValue ? value.value : value, spec)
      case 'boolean':
        if (typeof value !== 'boolean') this.fail(`expected true or false, got ${describe(value)}`)
        return this.bool(value)
      case 'string':
        if (typeof value !== 'string') this.fail(`expected a string, got ${describe(value)}`)
        return this.text(value)
      case 'date':
        return this.date(value)
      case 'uuid':
        return this.uuid(value instanceof JavaValue ? value.value : value, !this.plan.bareUuidFields)
      case 'decimal':
        return this.bigDecimal(value instanceof JavaValue ? value.value : value)
      case 'biginteger':
        return this.bigInteger(value instanceof JavaValue ? value.value : value)
      case 'bytes':
        if (!(value instanceof Uint8Array)) this.fail(`expected a Buffer or Uint8Array, got ${describe(value)}`)
        return this.bytes(value)
      case 'array':
        return this.#list(this.#items(value), spec.wrapper, spec.item)
      case 'list':
      case 'set':
        if (value instanceof JavaValue) return this.#javaValue(value)
        return this.#list(this.#items(value), spec.className, spec.item)
      case 'map':
        if (value instanceof JavaValue && value.type !== spec.className) return this.#javaValue(value)
        if (value instanceof Map) return this.#map(value, spec.className, spec.item)
        return this.#entries(this.#plain(value), spec.className, spec.item)
      case 'class': {
        if (value instanceof JavaValue) return this.#javaValue(value)
        const fields = this.#properties(value)
        if (this.#classIn(fields) !== undefined) return this.#plainObject(fields)
        const known =
          this.plan.byPrototype.get(Object.getPrototypeOf(fields) as object) ?? this.plan.classes.get(spec.name)
        return this.#fields(fields, known?.name ?? spec.name, known)
      }
      default:
        return spec satisfies never
    }
  }

  #floating(value: unknown, spec: Spec): void {
    if (typeof value !== 'number') this.fail(`expected a number, got ${describe(value)}`)
    if (spec.kind === 'double') return this.double(value, true)
    if (Number.isFinite(value) && !Number.isFinite(Math.fround(value))) this.fail(`${value} is too large for a float`)
    this.float(value)
  }

  #items(value: unknown): readonly unknown[] {
    const items: unknown = value instanceof Set ? [...(value as Set<unknown>)] : value
    if (!Array.isArray(items)) this.fail(`expected an array or a Set, got ${describe(value)}`)
    return items
  }

  /** The fields of a declared class: of a plain object, or of an instance whose properties can be seen. */
  #properties(value: unknown): Properties {
    if (Object.prototype.toString.call(value) !== '[object Object]') this.fail(describe(value))
    const object = value as Properties
    if (isPlain(object) || this.#isKnown(object) || Object.keys(object).length > 0) return object
    return this.fail(`${describe(value)} has no properties that can be seen`)
  }

  /** The entries of a map: those of a plain object. */
  #plain(value: unknown): Properties {
    if (typeof value === 'object' && value !== null && isPlain(value)) return value as Properties
    return this.fail(`expected an object or a Map, got ${describe(value)}`)
  }

  #javaValue({ type, value }: JavaValue): void {
    if (value === undefined || value === null) this.fail(`a ${type} without a value`)
    const kind = kindOf(type)
    if (value instanceof JavaValue && kind !== 'unknown') this.fail(`a ${type} cannot be made of a ${value.type}`)
    switch (kind) {
      case 'long':
        return this.long(value, this.wrapped)
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
        return this.date(value)
      case 'uuid':
        return this.uuid(value, true)
      case 'decimal':
        return this.bigDecimal(value)
      case 'biginteger':
        return this.bigInteger(value)
      case 'bytes':
        return this.#pair(type, value, BYTES)
      case 'array':
      case 'doubles':
        return this.#list(this.#items(value), type, itemOfArray(type))
      case 'list':
      case 'set':
        return this.#list(this.#items(value), type, ANY)
      case 'map':
        return this.#typed(value, { kind: 'map', className: type, item: ANY })
      case 'unknown':
        return this.#unknown(type, value)
    }
  }

  #unknown(className: string, value: unknown): void {
    if (!this.wrapped) this.fail(`plain JSON has no place for the class ${className}`)
    if (className === '') this.fail('a class without a name')
    if (typeof value === 'object' && value !== null && (isPlain(value) || this.plan.classes.has(className))) {
      return this.#fields(this.#properties(value), className, this.plan.classes.get(className))
    }
    this.pair(className)
    if (Array.isArray(value)) this.#list(value, undefined, ANY)
    else if (typeof value === 'number') this.number(value, false)
    else if (typeof value === 'bigint') this.long(value, false)
    else if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'object') this.#any(value)
    else this.fail(`a ${className} made of ${describe(value)}`)
    this.closePair()
  }
}

function undeclared(value: object): string {
  if (Object.prototype.toString.call(value) !== '[object Object]') return describe(value)
  return `${describe(value)}, whose class is not declared and has no toJSON`
}

function undeclaredClass(name: string): string {
  return `a plain object has the @class ${quoted(name)}, which is not declared: use java.of, classes, or plainClasses`
}

/** By UTF-16 units, as Java sorts; most often they are sorted already. */
function sort(keys: string[]): void {
  if (keys.some((key, i) => i > 0 && key < (keys[i - 1] ?? ''))) keys.sort()
}
