import { describe } from '../../errors.js'
import { isPlain } from '../../codecs/instances.js'
import { JavaEnum, JavaValue } from './java-values.js'
import { EnumSerializer } from './pojo.js'
import { integer, longOf } from './scalars.js'
import type { Args, Constants, EnumMaps, Output, Serializer } from './serializer.js'
import { classIn } from './slot.js'

const FIRST_HANDLE = 0x7e0000
/** Java has one object for each smaller number, so the second occurrence in a stream is a reference. */
const SMALL = 128

interface Box {
  readonly version: string
  readonly code: string
  write(out: Output, value: unknown): void
}

/** The boxes that can be values, with the versions of their classes. */
const BOXES: Readonly<Record<string, Box>> = {
  'java.lang.Integer': {
    version: '12e2a0a4f7818738',
    code: 'I',
    write: (out, value) => int(out, integer(out, value, 32)),
  },
  'java.lang.Long': {
    version: '3b8be490cc8f23df',
    code: 'J',
    write: (out, value) => {
      const bytes = Buffer.alloc(8)
      bytes.writeBigInt64BE(BigInt(longOf(out, value)))
      out.raw(bytes)
    },
  },
  'java.lang.Double': {
    version: '80b3c24a296bfb04',
    code: 'D',
    write: (out, value) => {
      if (typeof value !== 'number') return out.refuse(`expected a number, got ${describe(value)}`)
      const bytes = Buffer.alloc(8)
      bytes.writeDoubleBE(value)
      out.raw(bytes)
    },
  },
  'java.lang.Boolean': {
    version: 'cd207280d59cfaee',
    code: 'Z',
    write: (out, value) => {
      if (typeof value !== 'boolean') return out.refuse(`expected a boolean, got ${describe(value)}`)
      out.byte(value ? 1 : 0)
    },
  },
}

/** Writes the `EnumMap`s of one message as an `ObjectOutputStream` does, with references to objects that it has written before. */
export class EnumMapStream implements EnumMaps {
  readonly #handles = new Map<string, number>()
  #next = 0

  write(out: Output, its: Constants, entries: readonly (readonly [unknown, unknown])[], args: Args): void {
    if (this.#next === 0) hex(out, 'aced0005')
    hex(out, '73')
    this.#class(out, 'java.util.EnumMap', '065d7df7be907ca103', ['L', 'keyType'])
    this.#next++ // the map
    hex(out, '76')
    this.#enum(out, its)
    this.#next++ // its `keyType`
    hex(out, '7704')
    int(out, entries.length)
    for (const [key, value] of entries) {
      out.key(String(key))
      this.#constant(out, its, key)
      this.#value(out, value, args)
    }
    hex(out, '78')
  }

  #value(out: Output, given: unknown, args: Args): void {
    if (given === null) return hex(out, '70')
    const its = classIn(out, args?.[1], given)
    if (its instanceof EnumSerializer) return this.#constant(out, its, given)
    const value: unknown = given instanceof JavaValue ? given.value : given
    if (its.name === 'java.lang.String' && typeof value === 'string') this.#string(out, value)
    else this.#box(out, its, value)
  }

  #box(out: Output, { name }: Serializer, value: unknown): void {
    const box = BOXES[name]
    if (box === undefined) return out.refuse(`an EnumMap with a value of ${name} can be read, but not be written`)
    const isShared =
      typeof value === 'boolean' || (box.code !== 'D' && Number(value) >= -SMALL && Number(value) < SMALL)
    const key = isShared ? `${name} ${String(value)}` : undefined
    const known = key === undefined ? undefined : this.#handles.get(key)
    if (known !== undefined) return refer(out, known)
    hex(out, '73')
    const parent = box.code === 'Z' ? undefined : () => this.#class(out, 'java.lang.Number', '86ac951d0b94e08b02')
    this.#class(out, name, `${box.version}02`, [box.code, 'value'], parent)
    this.#note(key)
    box.write(out, value)
  }

  #constant(out: Output, its: Constants, value: unknown): void {
    const constant = its.nameOf(out, value)
    const key = `${its.name} ${constant}`
    const known = this.#handles.get(key)
    if (known !== undefined) return refer(out, known)
    hex(out, '7e')
    this.#enum(out, its)
    this.#note(key)
    this.#string(out, constant)
  }

  #note(key: string | undefined): void {
    if (key !== undefined) this.#handles.set(key, this.#next)
    this.#next++
  }

  #enum(out: Output, { name }: Constants): void {
    const noVersion = '0'.repeat(16)
    this.#class(out, name, `${noVersion}12`, undefined, () => this.#class(out, 'java.lang.Enum', `${noVersion}12`))
  }

  /** The description of a class: its version and flags, its only field, and its superclass. */
  #class(
    out: Output,
    name: string,
    version: string,
    field?: readonly [code: string, name: string],
    parent?: () => void,
  ): void {
    const known = this.#handles.get(name)
    if (known !== undefined) return refer(out, known)
    this.#handles.set(name, this.#next++)
    hex(out, '72')
    utf(out, name)
    hex(out, `${version}000${field === undefined ? 0 : 1}`)
    if (field !== undefined) {
      out.raw(Buffer.from(field[0]))
      utf(out, field[1])
      if (field[0] === 'L') this.#string(out, 'Ljava/lang/Class;')
    }
    hex(out, '78')
    if (parent === undefined) hex(out, '70')
    else parent()
  }

  #string(out: Output, text: string): void {
    this.#next++
    hex(out, '74')
    utf(out, text)
  }
}

export function writeEnumMap(out: Output, value: unknown, args: Args): void {
  const entries = entriesOf(out, value)
  const [first] = entries[0] ?? []
  const its = args?.[0]?.serializer ?? (first instanceof JavaEnum ? out.classOf(first) : undefined)
  if (!(its instanceof EnumSerializer))
    return out.refuse('the enum of the EnumMap is not known: declare the field as EnumMap<com.example.Status, …>')
  out.claim(2 * entries.length)
  out.enter()
  const ordinal = ([key]: readonly [unknown, unknown]) => {
    out.key(String(key))
    return its.ordinalOf(out, key)
  }
  const inOrder = entries.toSorted((one, other) => ordinal(one) - ordinal(other))
  out.enumMaps.write(out, its, inOrder, args)
  out.leave()
}

function entriesOf(out: Output, value: unknown): (readonly [unknown, unknown])[] {
  if (value instanceof Map) return [...value]
  if (typeof value !== 'object' || value === null || !isPlain(value))
    return out.refuse(`expected a Map or an object for java.util.EnumMap, got ${describe(value)}`)
  return Object.entries(value).filter(([, item]) => item !== undefined)
}

function refer(out: Output, handle: number): void {
  hex(out, '71')
  int(out, FIRST_HANDLE + handle)
}

function hex(out: Output, text: string): void {
  out.raw(Buffer.from(text, 'hex'))
}

function int(out: Output, value: number): void {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  out.raw(bytes)
}

/** Java's modified UTF-8 after its length in two bytes. */
function utf(out: Output, text: string): void {
  const bytes: number[] = []
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit > 0 && unit < 0x80) bytes.push(unit)
    else if (unit < 0x800) bytes.push(0xc0 | (unit >> 6), 0x80 | (unit & 0x3f))
    else bytes.push(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f))
  }
  if (bytes.length > 0xffff) out.refuse(`a text in an EnumMap can have 65535 bytes, not ${bytes.length}`)
  out.raw(Buffer.from([bytes.length >> 8, bytes.length & 0xff, ...bytes]))
}
