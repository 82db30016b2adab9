import { describe } from '../../errors.js'
import { BYTES_OF } from '../../codecs/budget.js'
import { SLICE } from '../../codecs/insertions.js'
import { isConvertible } from '../../codecs/instances.js'
import { JavaEnum, JavaValue } from './java-values.js'
import { EnumSerializer } from './pojo.js'
import type { Args, Input, Output, Serializer } from './serializer.js'
import { classIn, nameIn, writeIn } from './slot.js'
import { tagged } from './types.js'

export interface Kind {
  readonly natural?: boolean
  /** The JDK's immutable collections refuse nulls, and their serializer omits the mark for nulls. */
  readonly noNulls?: boolean
  /** Sorted collections write their comparator first; only the natural order, null, can be read here. */
  readonly sorted?: boolean
}

/** A list or set: Kryo's CollectionSerializer. With the class of the elements known it leaves their tags out. */
export function collection(name: string, shape: 'list' | 'set', kind: Kind = {}): Serializer {
  const noNulls = kind.noNulls ?? false
  const serializer: Serializer = {
    name,
    nullByte: 0,
    referable: true,
    natural: kind.natural ?? false,
    write: (out, value, args) => {
      if (!Array.isArray(value) && !(value instanceof Set)) {
        return out.refuse(`expected an array or a Set for ${name}, got ${describe(value)}`)
      }
      const items: readonly unknown[] = Array.isArray(value) ? value : [...value]
      if (items.length === 0) {
        out.byte(1)
        if (kind.sorted) out.byte(0)
        return
      }
      out.claim(items.length)
      out.enter()
      writeItems(out, ownItems(out, items), args, noNulls, kind.sorted ?? false)
      out.leave()
    },
    read: (input, args) => readItems(input, serializer, shape === 'set', args, noNulls, kind.sorted ?? false),
  }
  return serializer
}

/** The items as they are written: the result of `toJSON` replaces an item that has one. */
function ownItems(out: Output, items: readonly unknown[]): readonly unknown[] {
  const own = (item: unknown, i: number): unknown => {
    out.key(i)
    return out.own(item)
  }
  return items.some((item) => isConvertible(item)) ? items.map(own) : items
}

function writeItems(out: Output, items: readonly unknown[], args: Args, noNulls: boolean, sorted: boolean): void {
  const length = items.length
  const inner = args?.at(-1)?.args
  const element = args?.[0]
  let serializer = element?.final ? element.serializer : undefined
  let hasNull = false
  if (serializer !== undefined) {
    hasNull = items.includes(null)
    if (noNulls) out.varint(length + 1)
    else out.flagged(hasNull, length + 1)
    if (sorted) out.byte(0)
  } else {
    let same = true
    for (let i = 0; i < length && same; i++) {
      const item = items[i]
      if (item === null) hasNull = true
      else {
        out.key(i)
        const its = classIn(out, element, item)
        if (serializer === undefined) serializer = its
        else same = serializer === its
      }
    }
    out.flagged(same, length + 1)
    if (sorted) out.byte(0)
    if (!same) {
      for (let i = 0; i < length; i++) {
        out.key(i)
        writeIn(out, element && { ...element, args: inner }, items[i])
      }
      return
    }
    if (serializer === undefined) return out.byte(0) // only nulls
    out.writeClass(serializer)
    if (!noNulls) out.byte(hasNull ? 1 : 0)
  }
  if (noNulls && hasNull) {
    out.key(items.indexOf(null))
    out.refuse('an immutable collection holds no null')
  }
  for (let i = 0; i < length; i++) {
    out.key(i)
    const item = items[i]
    if (hasNull) out.nullable(serializer, item, inner)
    else out.object(serializer, item, inner)
  }
}

function readItems(
  input: Input,
  serializer: Serializer,
  isSet: boolean,
  args: Args,
  noNulls: boolean,
  sorted: boolean,
): unknown {
  const inner = args?.at(-1)?.args
  const element = args?.[0]
  let its = element?.final ? element.serializer : undefined
  let flag = false
  let length: number
  if (its !== undefined && noNulls) length = input.length() - 1
  else {
    const first = input.byte()
    flag = first > 127
    length = input.flagged(first) - 1
  }
  if (length < 0) return null
  input.claim(length)
  if (sorted) natural(input)
  const items: unknown[] = []
  const set = isSet ? new Set() : undefined
  if (isSet) input.spend(BYTES_OF.set)
  // a small one is not measured
  const into = set !== undefined && length <= SLICE ? set : items
  const result = input.wrap(serializer, set ?? items)
  input.started(result)
  if (length === 0) return result
  let nullable = flag
  if (its === undefined && flag) {
    its = input.readClass() ?? undefined
    nullable = its !== undefined && !noNulls && input.boolean()
    if (its === undefined) {
      for (let i = 0; i < length; i++) items.push(null)
      set?.add(null)
      return result
    }
  }
  input.enter()
  for (let i = 0; i < length; i++) {
    let item: unknown
    input.key(i)
    if (its === undefined) item = input.any(inner)
    else if (nullable) item = input.nullable(its, inner)
    else item = input.object(its, inner)
    put(into, nameIn(input, element, item))
  }
  if (set !== undefined && into !== set) input.fillSet(set, items)
  input.leave()
  return result
}

function put(items: unknown[] | Set<unknown>, item: unknown): void {
  if (items instanceof Set) items.add(item)
  else items.push(item)
}

export function natural(input: Input): void {
  if (input.readClass() !== null) input.fail('the collection has a comparator, which cannot be read')
}

/** Collections that hold exactly one thing, with its class, or nothing at all. */
function single(
  name: string,
  write: (out: Output, value: unknown, args: Args) => void,
  read: (input: Input) => unknown,
  holds = false,
): Serializer {
  const serializer: Serializer = {
    name,
    holds,
    referable: true,
    natural: false,
    write: (out, value, args) => {
      out.enter()
      write(out, value, args)
      out.leave()
    },
    read: (input) => {
      input.claim(1)
      input.enter()
      const value = read(input)
      input.leave()
      // an empty Optional is a JavaValue already, which distinguishes it from null
      return value instanceof JavaValue && value.type === name ? value : input.wrap(serializer, value)
    },
  }
  return serializer
}

function only(out: Output, value: unknown): unknown {
  const items: readonly unknown[] = Array.isArray(value) ? value : value instanceof Set ? [...value] : []
  if (items.length !== 1) out.refuse(`expected a collection of one element, got ${describe(value)}`)
  out.key(0)
  return items[0]
}

/** An EnumSet: its enum once, and the constants without it. */
function enumSet(name: string): Serializer {
  const serializer: Serializer = {
    name,
    referable: true,
    natural: false,
    write: (out, value, args) => {
      if (!Array.isArray(value) && !(value instanceof Set))
        return out.refuse(`expected an array or a Set for ${name}, got ${describe(value)}`)
      const items: readonly unknown[] = [...value]
      const its = args?.[0]?.serializer ?? (items[0] instanceof JavaEnum ? out.classOf(items[0]) : undefined)
      if (!(its instanceof EnumSerializer)) return out.refuse(`the enum of the ${name} is not declared`)
      out.writeClass(its)
      out.varint(items.length)
      out.claim(items.length)
      out.enter()
      for (const [i, item] of items.entries()) {
        out.key(i)
        out.object(its, item)
      }
      out.leave()
    },
    read: (input, args) => {
      const its = input.readClass()
      if (!(its instanceof EnumSerializer)) return input.fail(`${name} has no enum`)
      const length = input.claim(input.length())
      input.spend(BYTES_OF.set)
      input.enter()
      const items: unknown[] = []
      for (let i = 0; i < length; i++) {
        input.key(i)
        items.push(nameIn(input, args?.[0], input.object(its)))
      }
      input.leave()
      const set = new Set<unknown>()
      input.fillSet(set, items)
      return input.wrap(serializer, set)
    },
  }
  return serializer
}

function none(out: Output, size: number): void {
  if (size !== 0) out.refuse(`expected an empty collection, got ${size} elements`)
}

const immutable = (name: string) => `java.util.ImmutableCollections$${name}`
const util = (name: string) => `java.util.${name}`

export const COLLECTIONS: readonly Serializer[] = [
  collection(util('ArrayList'), 'list', { natural: true }),
  ...['LinkedList', 'Arrays$ArrayList', 'ArrayDeque', 'Vector', 'Stack', 'concurrent.CopyOnWriteArrayList'].map(
    (name) => collection(util(name), 'list'),
  ),
  ...['concurrent.ConcurrentLinkedQueue', 'concurrent.ConcurrentLinkedDeque'].map((name) =>
    collection(util(name), 'list'),
  ),
  collection(util('PriorityQueue'), 'list', { sorted: true }),
  collection(util('LinkedHashSet'), 'set', { natural: true }),
  ...['HashSet', 'concurrent.CopyOnWriteArraySet'].map((name) => collection(util(name), 'set')),
  collection(util('TreeSet'), 'set', { sorted: true }),
  ...['RegularEnumSet', 'JumboEnumSet'].map((name) => enumSet(util(name))),
  ...['List12', 'ListN', 'SubList'].map((name) => collection(immutable(name), 'list', { noNulls: true })),
  ...['Set12', 'SetN'].map((name) => collection(immutable(name), 'set', { noNulls: true })),
  single(
    util('Collections$EmptyList'),
    (out, value) => none(out, (value as unknown[]).length),
    () => [],
  ),
  single(
    util('Collections$EmptySet'),
    (out, value) => none(out, (value as Set<unknown>).size),
    () => new Set(),
  ),
  single(
    util('Collections$EmptyMap'),
    (out, value) => none(out, value instanceof Map ? value.size : Object.keys(value as object).length),
    () => ({}),
  ),
  single(
    util('Collections$SingletonList'),
    (out, value, args) => writeIn(out, tagged(args)?.[0], only(out, value)),
    (input) => [input.any()],
  ),
  single(
    util('Collections$SingletonSet'),
    (out, value, args) => writeIn(out, tagged(args)?.[0], only(out, value)),
    (input) => new Set([input.any()]),
  ),
  single(
    util('Collections$SingletonMap'),
    (out, value, args) => {
      const entries: readonly unknown[] = value instanceof Map ? [...value] : Object.entries(value as object)
      if (entries.length !== 1) out.refuse('expected a map of one entry')
      const [key, item] = entries[0] as [unknown, unknown]
      writeIn(out, tagged(args)?.[0], key)
      writeIn(out, tagged(args)?.[1], item)
    },
    (input) => {
      const key = input.any()
      const value = input.any()
      return typeof key === 'string' && key !== '__proto__' ? { [key]: value } : new Map([[key, value]])
    },
  ),
  single(
    util('Optional'),
    (out, value, args) => writeIn(out, tagged(args)?.[0], value ?? null),
    (input) => input.any() ?? new JavaValue(util('Optional'), null),
    true,
  ),
]
