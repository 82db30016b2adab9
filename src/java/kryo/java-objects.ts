import { BYTES_OF } from '../../codecs/budget.js'
import { MAX_MAGNITUDE, formatDecimal, fromBytes } from './decimal.js'
import { JavaArray, JavaConstant, JavaObject, type JavaNode } from './java-stream.js'
import { JavaValue } from './java-values.js'
import { fromEntries } from './maps.js'
import { EnumSerializer, PojoSerializer, plainIn } from './pojo.js'
import { asLong } from './scalars.js'
import type { Args, Input } from './serializer.js'
import { nameIn } from './slot.js'

/** Collections that hold another one, in the field `m`, or `c`. */
export const HOLDER = /^java\.util\.Collections\$(?:Unmodifiable|Synchronized|Checked)/
/** Classes whose items follow their fields. */
const LISTS = /^java\.util\.(?:ArrayList|LinkedList|ArrayDeque|concurrent\.CopyOnWriteArrayList)$/
const SETS = /^java\.util\.(?:Linked)?HashSet$/
const MAPS = /^java\.util\.(?:(?:Linked)?HashMap|EnumMap|Hashtable)$/
const BOXES = /^java\.lang\.(?:Integer|Short|Byte|Float|Double|Boolean|Character)$/
/** The classes of `java.time` by their numbers in Java's own serialization. */
const TIMES = [
  undefined,
  'Duration',
  'Instant',
  'LocalDate',
  'LocalTime',
  'LocalDateTime',
  ...[undefined, undefined, undefined, undefined],
  'OffsetDateTime',
  'Year',
  ...[undefined, undefined],
  'Period',
]
const COLLECTION_KINDS = [undefined, 'list', 'set', 'map'] as const
const UNFINISHED = Symbol('unfinished')

/** Converts objects of Java's own serialization to values, as Kryo's serializers would. */
export class JavaObjects {
  /** The converted objects: an object with several references is converted once for each declared type. */
  readonly #made = new Map<JavaNode, Map<Args, unknown>>()
  readonly #input: Input

  constructor(input: Input) {
    this.#input = input
  }

  of(node: JavaNode, args: Args): unknown {
    if (typeof node === 'bigint') return asLong(this.#input, narrow(node))
    if (typeof node !== 'object' || node === null) return node
    const made = this.#made.get(node) ?? new Map<Args, unknown>()
    this.#made.set(node, made)
    const known = made.get(args)
    if (known === UNFINISHED) this.#input.fail(`an object of ${node.name} contains itself`)
    if (known !== undefined) return known
    made.set(args, UNFINISHED)
    const value = this.#make(node, args)
    made.set(args, value)
    return value
  }

  #make(node: JavaNode & object, args: Args): unknown {
    if (node instanceof JavaObject) return this.#object(node, args)
    if (node instanceof JavaArray) return this.#array(node)
    if (!(node instanceof JavaConstant)) return this.#unknown(node.name)
    const its = this.#input.known(node.name)
    if (!(its instanceof EnumSerializer)) return this.#unknown(node.name)
    return its.constant(node.constant) ?? this.#input.fail(`enum ${node.name} has no constant ${node.constant}`)
  }

  #unknown(name: string): never {
    return this.#input.fail(
      `class ${name.slice(0, 200)} is neither declared nor known within Java's own serialization, which Redisson uses for EnumMap and Collections.unmodifiable…`,
    )
  }

  #object(node: JavaObject, args: Args): unknown {
    const { name, fields, objects } = node
    if (BOXES.test(name)) return this.#wrap(name, this.of(fields.get('value') ?? null, undefined))
    if (HOLDER.test(name)) return this.of(fields.get('m') ?? fields.get('c') ?? null, args)
    if (LISTS.test(name)) return this.#wrap(name, this.#list(objects, args))
    if (SETS.test(name)) return this.#wrap(name, this.#set(objects, args))
    if (MAPS.test(name)) return this.#wrap(name, this.#map(objects, args))
    switch (name) {
      case 'java.lang.Long':
        return this.of(fields.get('value') ?? null, undefined)
      case 'java.util.TreeSet':
        this.#natural(objects[0])
        return this.#wrap(name, this.#set(objects.slice(1), args))
      case 'java.util.TreeMap':
        this.#natural(fields.get('comparator'))
        return this.#wrap(name, this.#map(objects, args))
      case 'java.util.Arrays$ArrayList':
        return this.#wrap(name, this.#list(itemsOf(fields.get('a')), args))
      case 'java.util.CollSer':
        return this.#collection(COLLECTION_KINDS[Number(fields.get('tag')) & 0xff], objects, args)
      case 'java.util.EnumSet$SerializationProxy':
        return this.#set(itemsOf(fields.get('elements')), args)
      case 'java.util.Collections$EmptyList':
        return []
      case 'java.util.Collections$EmptySet':
        return this.#set([], args)
      case 'java.util.Collections$EmptyMap':
        return {}
      case 'java.util.Collections$SingletonList':
        return this.#list([fields.get('element') ?? null], args)
      case 'java.util.Collections$SingletonSet':
        return this.#set([fields.get('element') ?? null], args)
      case 'java.util.Collections$SingletonMap':
        return this.#map([fields.get('k') ?? null, fields.get('v') ?? null], args)
      case 'java.util.Date':
        return this.#date(new Numbers(node, this.#input).int64())
      case 'java.util.UUID':
        return new JavaValue(name, uuid(fields))
      case 'java.math.BigInteger':
        return new JavaValue(name, this.#integer(node))
      case 'java.math.BigDecimal': {
        const unscaled = this.#integer(fields.get('intVal'))
        return new JavaValue(name, formatDecimal({ unscaled, scale: Number(fields.get('scale')) }))
      }
      case 'java.time.Ser':
        return this.#time(new Numbers(node, this.#input))
      default:
        return this.#declared(node)
    }
  }

  #declared(node: JavaObject): unknown {
    const { name, fields } = node
    const its = this.#input.known(name)
    if (!(its instanceof PojoSerializer)) return this.#unknown(name)
    if (node.blocks.length > 0 || node.objects.length > 0)
      this.#input.fail(`class ${name} has a writeObject of its own, which cannot be read`)
    for (const field of fields.keys())
      if (!its.has(field)) this.#input.fail(`class ${name} is declared without its field ${field}`)
    return its.make(this.#input, ({ name: field, slot }) => {
      const value = fields.get(field)
      if (value === undefined) return this.#input.fail(`class ${name} was written without its field ${field}`)
      return plainIn(this.#input, slot, this.of(value, slot.args))
    })
  }

  #array({ name, items }: JavaArray): unknown {
    const input = this.#input
    if (name === '[B') {
      input.spend(BYTES_OF.buffer + items.length)
      return Buffer.from(items as number[])
    }
    return this.#wrap(name, this.#list(items, undefined))
  }

  #collection(kind: (typeof COLLECTION_KINDS)[number], items: readonly JavaNode[], args: Args): unknown {
    if (kind === 'list') return this.#list(items, args)
    if (kind === 'set') return this.#set(items, args)
    return kind === 'map' ? this.#map(items, args) : this.#unknown('java.util.CollSer')
  }

  #list(items: readonly JavaNode[], args: Args): unknown[] {
    return items.map((item) => nameIn(this.#input, args?.[0], this.of(item, args?.[0]?.args)))
  }

  #set(items: readonly JavaNode[], args: Args): Set<unknown> {
    this.#input.spend(BYTES_OF.set)
    const set = new Set<unknown>()
    this.#input.fillSet(set, this.#list(items, args))
    return set
  }

  #map(items: readonly JavaNode[], args: Args): unknown {
    const sides: [unknown[], unknown[]] = [[], []]
    for (const [i, item] of items.entries()) {
      const side = i % 2 === 0 ? 0 : 1
      sides[side].push(nameIn(this.#input, args?.[side], this.of(item, args?.[side]?.args)))
    }
    return fromEntries(this.#input, ...sides)
  }

  #date(ms: bigint): Date {
    this.#input.spend(BYTES_OF.date)
    const date = new Date(Number(ms))
    return Number.isNaN(date.getTime()) ? this.#input.fail('a date is out of the range of Date') : date
  }

  #integer(node: JavaNode | undefined): bigint {
    const fields = node instanceof JavaObject ? node.fields : undefined
    const bytes = itemsOf(fields?.get('magnitude')) as readonly number[]
    if (bytes.length > MAX_MAGNITUDE)
      this.#input.fail(`a number has ${bytes.length} bytes, the limit is ${MAX_MAGNITUDE}`)
    const magnitude = fromBytes(Buffer.from([0, ...bytes]))
    return fields?.get('signum') === -1 ? -magnitude : magnitude
  }

  #time(numbers: Numbers): unknown {
    const simpleName = TIMES[numbers.byte()]
    const its = simpleName === undefined ? undefined : this.#input.known(`java.time.${simpleName}`)
    // Kryo writes the same numbers, in other lengths
    return its === undefined ? this.#unknown('java.time.Ser') : its.read(numbers as unknown as Input)
  }

  #natural(comparator: JavaNode | undefined): void {
    if (comparator !== null && comparator !== undefined)
      this.#input.fail('the collection has a comparator, which cannot be read')
  }

  /** The value with its class, for `exact`. */
  #wrap(name: string, value: unknown): unknown {
    const its = this.#input.known(name)
    return its === undefined ? value : this.#input.wrap(its, value)
  }
}

/** The numbers that a class wrote itself, which have fixed lengths there. */
class Numbers {
  readonly #bytes: Buffer
  readonly #input: Input
  at = 0

  constructor({ blocks }: JavaObject, input: Input) {
    this.#bytes = Buffer.concat(blocks)
    this.#input = input
  }

  #skip(count: number): number {
    if (this.at + count > this.#bytes.length) this.fail('a value has too few bytes')
    this.at += count
    return this.at - count
  }

  byte = (): number => this.#bytes.readUInt8(this.#skip(1))
  int8 = (): number => this.#bytes.readInt8(this.#skip(1))
  int32 = (): number => this.#bytes.readInt32BE(this.#skip(4))
  int64 = (): bigint => this.#bytes.readBigInt64BE(this.#skip(8))
  varint = (): number => this.int32()
  varlong = (): bigint => this.int64()
  fail = (message: string): never => this.#input.fail(message)
}

function itemsOf(node: JavaNode | undefined): readonly JavaNode[] {
  return node instanceof JavaArray ? node.items : []
}

function narrow(value: bigint): number | bigint {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
}

function uuid(fields: ReadonlyMap<string, JavaNode>): string {
  const half = (name: string) =>
    BigInt.asUintN(64, fields.get(name) as bigint)
      .toString(16)
      .padStart(16, '0')
  return (half('mostSigBits') + half('leastSigBits')).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
