import { InvalidArgumentError } from '../../errors.js'
import { onlyKnown } from '../../options.js'
import { ARRAYS, arrayOf } from './arrays.js'
import { COLLECTIONS } from './collections.js'
import { JavaEnum, JavaValue } from './java-values.js'
import { MAPS } from './maps.js'
import { CLASS_KEY, EnumSerializer, PojoSerializer } from './pojo.js'
import { SERIALIZED } from './java-serialized.js'
import { SCALARS } from './scalars.js'
import type { Classes, Serializer } from './serializer.js'
import { TIMES } from './time.js'
import { parseType, tagged, type NamedClass } from './types.js'

/** The declaration of a Java class, for classes that the wire alone does not describe. */
export interface ClassDeclaration {
  /** Decoded objects get its prototype (its constructor is not called), and its instances are written as this class. */
  readonly type?: abstract new (...args: never[]) => object
  /** All fields, also those of superclasses, that are neither static nor transient, with their Java types. */
  readonly fields?: Readonly<Record<string, string>>
  /** The class is final, so fields of this type omit the class. Default: true for enums and records, else false. */
  readonly final?: boolean
  /** The class is a record: final, and type arguments of its components are ignored. Default false. */
  readonly record?: boolean
  /** An enum: the names of its constants, in order. With `final: false` when constants have bodies of their own. */
  readonly enum?: readonly string[]
}

const BUILT_IN: ReadonlyMap<string, Serializer> = new Map(
  [...SCALARS, ...TIMES, ...COLLECTIONS, ...MAPS, ...SERIALIZED, ...ARRAYS].map((serializer) => [
    serializer.name,
    serializer,
  ]),
)
/** The primitives by their names in Java's source, with the box of each and its letter in array classes. */
const PRIMITIVES = new Map<string, readonly [box: string, code: string]>([
  ['int', ['java.lang.Integer', 'I']],
  ['long', ['java.lang.Long', 'J']],
  ['short', ['java.lang.Short', 'S']],
  ['byte', ['java.lang.Byte', 'B']],
  ['char', ['java.lang.Character', 'C']],
  ['float', ['java.lang.Float', 'F']],
  ['double', ['java.lang.Double', 'D']],
  ['boolean', ['java.lang.Boolean', 'Z']],
])
const PACKAGES = ['java.lang.', 'java.util.', 'java.math.', 'java.time.', '']
/** Built-in classes that can have subclasses; all others here are final in Java. */
const OPEN = /^java\.(?:util\.(?!UUID$|Optional$|Currency$|Locale$)|sql\.|math\.)/
/** Interfaces and abstract classes, with the class of a JavaScript value in their place. */
const INTERFACES = new Map<string, string>([
  ['java.util.List', 'java.util.ArrayList'],
  ['java.util.Set', 'java.util.LinkedHashSet'],
  ['java.util.Map', 'java.util.LinkedHashMap'],
  ['java.util.EnumSet', 'java.util.RegularEnumSet'],
  ['java.util.Collection', ''],
  ['java.lang.Iterable', ''],
  ['java.lang.Object', ''],
  ['java.lang.Number', ''],
  ['java.lang.CharSequence', ''],
  ['java.lang.Comparable', ''],
  ['java.io.Serializable', ''],
])
/** The longest name: Java allows longer ones, but no built-in or declared class has one. */
const MAX_NAME = 512
/** The most undeclared enums to remember, because their names come from the data. */
const MAX_MET_ENUMS = 256

/** The class of a JavaScript value without a declaration. */
const PROTOTYPES = new Map<object, Serializer>()
const natural: readonly [object, string][] = [
  [Object.prototype, 'java.util.LinkedHashMap'],
  [Map.prototype, 'java.util.LinkedHashMap'],
  [Set.prototype, 'java.util.LinkedHashSet'],
  [Array.prototype, 'java.util.ArrayList'],
  [Date.prototype, 'java.util.Date'],
  [Buffer.prototype, '[B'],
  [Uint8Array.prototype, '[B'],
  [Int16Array.prototype, '[S'],
  [Int32Array.prototype, '[I'],
  [BigInt64Array.prototype, '[J'],
  [Float32Array.prototype, '[F'],
  [Float64Array.prototype, '[D'],
]
for (const [prototype, name] of natural) {
  const serializer = BUILT_IN.get(name)
  if (serializer !== undefined) PROTOTYPES.set(prototype, serializer)
}
const NUMBERED = SCALARS.slice(0, 9)
/** The first number of registered classes; Kryo's own classes have the numbers before. */
const FIRST_ID = 9

/** A class, found by its name in a declaration or on the wire. */
interface Found extends NamedClass {
  readonly full: string
}

/** The classes of one codec. */
export class Registry implements Classes {
  readonly ids: ReadonlyMap<string, number> | undefined
  readonly #allowed: readonly string[]
  readonly #declared = new Map<string, Found & { readonly serializer: Serializer }>()
  readonly #prototypes = new Map(PROTOTYPES)
  /** Arrays of known classes, created on first use. */
  readonly #arrays = new Map<string, Serializer>()
  /** Enums that are not declared, the oldest first. */
  readonly #enums = new Map<string, Serializer>()

  /** The `allowed` classes are numbered in their order. */
  constructor(declarations: Readonly<Record<string, ClassDeclaration>>, allowed: readonly string[] | undefined) {
    this.#allowed = [...new Set(allowed)].filter((name) => BUILT_IN.get(name)?.id === undefined)
    if (allowed !== undefined && allowed.length > 0) {
      this.ids = new Map(this.#allowed.map((name, index) => [name, FIRST_ID + index]))
    }
    const pojos = Object.entries(declarations).map(([name, declaration]) => this.#declare(name, declaration))
    for (const fill of pojos) fill()
  }

  #declare(name: string, declaration: ClassDeclaration): () => void {
    const what = `kryo5.classes[${JSON.stringify(name)}]`
    onlyKnown(what, declaration, ['type', 'fields', 'final', 'record', 'enum'])
    if (BUILT_IN.has(name)) throw new InvalidArgumentError(what, 'a class that is not built in', declaration)
    if (declaration.enum !== undefined) {
      const final = declaration.final ?? true
      this.#declared.set(name, { full: name, serializer: new EnumSerializer(name, declaration.enum), final })
      return () => {}
    }
    const prototype = declaration.type?.prototype as object | undefined
    const pojo = new PojoSerializer(name, prototype)
    const final = declaration.final ?? declaration.record ?? false
    this.#declared.set(name, { full: name, serializer: pojo, final })
    if (prototype !== undefined) {
      if (this.#prototypes.has(prototype))
        throw new InvalidArgumentError(`${what}.type`, 'a class of its own', prototype)
      this.#prototypes.set(prototype, pojo)
    }
    return () => {
      const fields = Object.entries(declaration.fields ?? {}).map(([field, type]) => {
        if (field === '__proto__') throw new InvalidArgumentError(what, 'fields with other names', field)
        const slot = parseType(`${what}.fields.${field}`, type, (each) => this.#find(each))
        return { name: field, slot: declaration.record ? { ...slot, args: tagged(slot.args) } : slot }
      })
      pojo.declare(fields)
    }
  }

  of(value: object): Serializer | undefined {
    const prototype = Object.getPrototypeOf(value) as object | null
    if (prototype === Object.prototype || prototype === null) return this.#object(value)
    const serializer = this.#prototypes.get(prototype)
    if (serializer !== undefined) return serializer
    if (value instanceof JavaValue) return this.#ofJavaValue(value)
    if (Array.isArray(value)) return PROTOTYPES.get(Array.prototype)
    if (value instanceof Uint8Array) return PROTOTYPES.get(Uint8Array.prototype)
    for (const type of [Date, Map, Set]) if (value instanceof type) return PROTOTYPES.get(type.prototype as object)
    return undefined
  }

  #object(value: object): Serializer | undefined {
    const name = (value as Record<string, unknown>)[CLASS_KEY]
    return typeof name === 'string' ? this.#declared.get(name)?.serializer : PROTOTYPES.get(Object.prototype)
  }

  #ofJavaValue(value: JavaValue): Serializer | undefined {
    const found = this.known(value.type)
    if (found !== undefined || !(value instanceof JavaEnum)) return found
    const serializer = new EnumSerializer(value.type)
    const [oldest] = this.#enums.keys()
    if (this.#enums.size >= MAX_MET_ENUMS && oldest !== undefined) this.#enums.delete(oldest)
    this.#enums.set(value.type, serializer)
    return serializer
  }

  named(name: string): Serializer | undefined {
    if (this.ids !== undefined && !this.ids.has(name)) return undefined
    return this.known(name)
  }

  numbered(id: number): Serializer | undefined {
    const name = this.#allowed[id - FIRST_ID]
    if (id >= FIRST_ID) return name === undefined || this.ids === undefined ? undefined : this.known(name)
    return NUMBERED[id]
  }

  known(name: string): Serializer | undefined {
    const known =
      this.#declared.get(name)?.serializer ?? BUILT_IN.get(name) ?? this.#arrays.get(name) ?? this.#enums.get(name)
    if (known !== undefined) return known
    if (name.length > MAX_NAME) return undefined
    if (!name.startsWith('[')) return this.#constant(name)
    const serializer = arrayOf(name, (element) => this.#binary(element))
    if (serializer !== undefined) this.#arrays.set(name, serializer)
    return serializer
  }

  /** The enum of a constant with a body, which has a class of its own that Kryo writes. */
  #constant(name: string): Serializer | undefined {
    const serializer = this.#declared.get(name.replace(/\$\d+$/, ''))?.serializer
    return serializer instanceof EnumSerializer ? serializer : undefined
  }

  /** A class as a declaration names it: by its simple name, or with the brackets of an array. */
  #find(name: string): Found | undefined {
    if (name.length > MAX_NAME) return undefined
    const declared = this.#declared.get(name)
    if (declared !== undefined) return declared
    if (name.endsWith('[]')) return this.#array(name.slice(0, -2))
    const [box] = PRIMITIVES.get(name) ?? []
    if (box !== undefined) return { full: name, serializer: BUILT_IN.get(box), final: true, primitive: true }
    for (const start of PACKAGES) {
      const found = this.#binary(start + name)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** A class by its binary name, which is the one on the wire. */
  #binary(full: string): Found | undefined {
    const declared = this.#declared.get(full)
    if (declared !== undefined) return declared
    const serializer = BUILT_IN.get(full)
    if (serializer !== undefined) return { full, serializer, final: !OPEN.test(full) }
    const standing = INTERFACES.get(full)
    return standing === undefined ? undefined : { full, serializer: BUILT_IN.get(standing), final: false }
  }

  #array(component: string): Found | undefined {
    const found = this.#find(component)
    if (found === undefined) return undefined
    let full = `[L${found.full};`
    if (found.primitive) full = `[${PRIMITIVES.get(found.full)?.[1] ?? ''}`
    else if (found.full.startsWith('[')) full = `[${found.full}`
    return { full, serializer: this.known(full), final: found.final }
  }
}
