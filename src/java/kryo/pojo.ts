import { describe } from '../../errors.js'
import { quoted } from '../../text.js'
import { isPlain } from '../../codecs/instances.js'
import { JavaEnum, JavaValue } from './java-values.js'
import type { Input, Output, Serializer, Slot } from './serializer.js'
import { writeIn } from './slot.js'

/** The property with the class of an object without a JavaScript class, as in the codecs of Jackson. */
export const CLASS_KEY = '@class'

export interface Field {
  readonly name: string
  readonly slot: Slot
}

/** An object by its fields in the order of their names, without the names: Kryo's FieldSerializer and RecordSerializer. */
export class PojoSerializer implements Serializer {
  readonly name: string
  readonly referable = true
  readonly natural = true
  readonly #prototype: object | undefined
  #fields: readonly Field[] = []
  #names = new Set<string>()

  constructor(name: string, prototype: object | undefined) {
    this.name = name
    this.#prototype = prototype
  }

  /** Fields come after the constructor, because classes can name each other. */
  declare(fields: readonly Field[]): void {
    this.#fields = fields.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    this.#names = new Set(fields.map((field) => field.name))
  }

  /** Whether `its` is this class or a subclass, which has all fields of its superclass. */
  accepts(its: Serializer): boolean {
    if (!(its instanceof PojoSerializer)) return false
    const names = its.#names
    return this.#fields.every(({ name }) => names.has(name))
  }

  write(out: Output, value: unknown): void {
    if (Object.prototype.toString.call(value) !== '[object Object]') {
      out.refuse(`expected an object of ${this.name}, got ${describe(value)}`)
    }
    const object = value as Record<string, unknown>
    out.claim(this.#fields.length)
    const keys = Object.keys(object)
    const foreign = Object.getPrototypeOf(object) !== this.#prototype && !isPlain(object)
    const its = foreign ? out.known(object) : undefined
    if (its !== undefined && its !== this) out.refuse(`expected ${this.name}, got ${its.name}`)
    if (foreign && keys.length === 0 && this.#fields.length > 0) {
      out.refuse(`${describe(value)} has no properties that can be seen`)
    }
    out.enter()
    for (const key of keys) {
      if (key === CLASS_KEY) this.#assertClass(out, object[key])
      else if (!this.#names.has(key) && object[key] !== undefined) {
        out.key(key)
        out.refuse(`class ${this.name} is declared without such a field`)
      }
    }
    for (const { name, slot } of this.#fields) {
      out.key(name)
      // inherited properties, such as `constructor`, are not fields
      const inherited = name in Object.prototype && !Object.hasOwn(object, name)
      writeField(out, slot, inherited ? null : (object[name] ?? null))
    }
    out.leave()
  }

  #assertClass(out: Output, name: unknown): void {
    if (name !== this.name)
      out.refuse(`expected class ${this.name}, got ${typeof name === 'string' ? quoted(name) : describe(name)}`)
  }

  has(field: string): boolean {
    return this.#names.has(field)
  }

  read(input: Input): unknown {
    return this.make(input, ({ slot }) => readSlot(input, slot))
  }

  /** An object with these values of its fields. */
  make(input: Input, valueOf: (field: Field) => unknown): unknown {
    const object = (this.#prototype ? Object.create(this.#prototype) : { [CLASS_KEY]: this.name }) as Record<
      string,
      unknown
    >
    input.started(object)
    input.claim(this.#fields.length)
    input.enter()
    for (const field of this.#fields) {
      input.key(field.name)
      setField(object, field.name, valueOf(field))
    }
    input.leave()
    return object
  }
}

/** Sets a field without calling a setter of the class. */
function setField(object: Record<string, unknown>, name: string, value: unknown): void {
  if (!(name in object)) object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

function writeField(out: Output, slot: Slot, given: unknown): void {
  const serializer = slot.serializer
  // Java code expects an empty Optional, not null
  if (given === null && serializer?.holds === true && !out.exact)
    return writeIn(out, slot, new JavaValue(serializer.name, null))
  if (!slot.primitive || serializer === undefined) return writeIn(out, slot, given)
  const value = out.own(given)
  if (value === null) out.refuse(`a field of type ${slot.text} cannot be null`)
  out.object(serializer, value)
}

function readSlot(input: Input, slot: Slot): unknown {
  const serializer = slot.serializer
  if (slot.primitive && serializer !== undefined) {
    const value = serializer.read(input)
    return value instanceof JavaValue ? value.value : value
  }
  const value = slot.final && serializer !== undefined ? input.nullable(serializer, slot.args) : input.any(slot.args)
  return plainIn(input, slot, value)
}

/** A value without its class where `slot` declares it: the declaration gives the class back when it is encoded again. */
export function plainIn(input: Input, slot: Slot, value: unknown): unknown {
  if (value instanceof JavaValue && value.type === slot.serializer?.name && !input.exact) return plain(value)
  return value
}

function plain(value: JavaValue): unknown {
  return value instanceof JavaEnum && value.value === undefined ? value : value.value
}

/** An enum: the position of the constant. Java's own readers refuse a position that the enum does not have. */
export class EnumSerializer implements Serializer {
  readonly name: string
  readonly nullByte = 0
  readonly referable = false
  readonly natural = true
  readonly #constants: readonly string[] | undefined

  /** Without the names of the constants, only values with an ordinal can be written. */
  constructor(name: string, constants?: readonly string[]) {
    this.name = name
    this.#constants = constants
  }

  accepts(its: Serializer): boolean {
    return its === this
  }

  write(out: Output, value: unknown): void {
    out.varint(this.ordinalOf(out, value) + 1)
  }

  ordinalOf(out: Output, value: unknown): number {
    let ordinal: unknown = value
    if (value instanceof JavaEnum) ordinal = value.ordinal
    else if (typeof value === 'string') ordinal = this.#constants?.indexOf(value) ?? -1
    const count = this.#constants?.length ?? 0x7fff_fffe
    if (typeof ordinal !== 'number' || !Number.isInteger(ordinal) || ordinal < 0 || ordinal >= count) {
      return out.refuse(`expected a constant of ${this.name}, got ${describe(value)}`)
    }
    return ordinal
  }

  nameOf(out: Output, value: unknown): string {
    return this.#constants?.[this.ordinalOf(out, value)] ?? out.refuse(`the constants of ${this.name} are not declared`)
  }

  constant(name: string): JavaEnum | undefined {
    const ordinal = this.#constants?.indexOf(name) ?? -1
    return ordinal < 0 ? undefined : new JavaEnum(this.name, ordinal, name)
  }

  read(input: Input): unknown {
    const ordinal = input.length() - 1
    if (ordinal < 0) return null
    const name = this.#constants?.[ordinal]
    if (name === undefined && this.#constants !== undefined) input.fail(`enum ${this.name} has no constant ${ordinal}`)
    return new JavaEnum(this.name, ordinal, name)
  }
}
