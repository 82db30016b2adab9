import type { Budget } from '../../codecs/budget.js'
import { formatDecimal, fromBytes } from '../kryo/decimal.js'
import { JavaValue } from '../kryo/java-values.js'
import { numberIfSafe } from '../scalars.js'
import { BytesIn } from './bytes-in.js'
import { MAX_WIRE_DEPTH, asDouble, setProperty, type Node } from './nodes.js'

const BREAK = 0xff
const INDEFINITE = 31
/** The bytes of a number with 1,000 digits, and one for its sign. */
const MAX_NUMBER_BYTES = 417
const MAX_SCALE = 2 ** 31 - 1

/** Parses the CBOR (RFC 8949) that Jackson writes: every item, and the tags for big numbers and self-described CBOR. */
export function parseCbor(codec: string, bytes: Buffer, exact: boolean, budget: Budget): Node {
  const input = new BytesIn(codec, bytes, exact, budget)
  const node = value(input, 0)
  input.end()
  return node
}

function value(input: BytesIn, depth: number): Node {
  const head = input.byte()
  const info = head & 0x1f
  switch (head >> 5) {
    case 0:
      return numberIfSafe(argument(input, info))
    case 1:
      return numberIfSafe(-1n - argument(input, info))
    case 2:
      return info === INDEFINITE
        ? Buffer.concat(chunks(input, 2, (size) => input.raw(size)))
        : input.raw(length(input, info))
    case 3:
      return info === INDEFINITE
        ? chunks(input, 3, (size) => input.text(size)).join('')
        : input.text(length(input, info))
    case 4:
      return array(input, info, depth)
    case 5:
      return object(input, info, depth)
    case 6:
      return tagged(input, Number(argument(input, info)), depth)
    default:
      return simple(input, info)
  }
}

function argument(input: BytesIn, info: number): bigint {
  if (info === 27) return input.uint64()
  return BigInt(length(input, info))
}

/** A length, or another argument of at most 32 bits. */
function length(input: BytesIn, info: number): number {
  if (info < 24) return info
  if (info === 24) return input.uint(1)
  if (info === 25) return input.uint(2)
  if (info === 26) return input.uint(4)
  if (info === 27) return Number(input.uint64())
  return input.fail(`the additional information ${info} before ${input.at} has no meaning`)
}

function chunks<T>(input: BytesIn, major: number, read: (size: number) => T): T[] {
  const parts: T[] = []
  for (;;) {
    const head = input.byte()
    if (head === BREAK) return parts
    if (head >> 5 !== major || (head & 0x1f) === INDEFINITE) input.fail('a string has a part that is none')
    input.count(1)
    parts.push(read(length(input, head & 0x1f)))
  }
}

function array(input: BytesIn, info: number, depth: number): Node[] {
  nest(input, depth)
  const items: Node[] = []
  const count = info === INDEFINITE ? Infinity : input.count(length(input, info))
  for (let i = 0; i < count && !(count === Infinity && broken(input, 1)); i++) items.push(value(input, depth + 1))
  return items
}

function object(input: BytesIn, info: number, depth: number): Node {
  nest(input, depth)
  const properties = {}
  const count = info === INDEFINITE ? Infinity : input.count(2 * length(input, info)) / 2
  for (let i = 0; i < count && !(count === Infinity && broken(input, 2)); i++) {
    const key = value(input, depth + 1)
    if (typeof key !== 'string' && typeof key !== 'number') input.fail('the key of a map is neither text nor a number')
    setProperty(properties, String(key), value(input, depth + 1))
  }
  return properties
}

/** Takes the break that ends an array or a map without a length, or claims the `elements` of one more round. */
function broken(input: BytesIn, elements: 1 | 2): boolean {
  if (input.peek() !== BREAK) {
    input.count(elements)
    return false
  }
  input.byte()
  return true
}

function nest(input: BytesIn, depth: number): void {
  if (depth >= MAX_WIRE_DEPTH) input.fail(`they nest deeper than ${MAX_WIRE_DEPTH} levels`)
}

const SELF_DESCRIBED = 55799

function tagged(input: BytesIn, tag: number, depth: number): Node {
  nest(input, depth)
  const content = value(input, depth + 1)
  if (tag === SELF_DESCRIBED) return content
  if (tag === 2 || tag === 3) return new JavaValue('java.math.BigInteger', bigInteger(input, tag, content))
  if (tag === 4) return new JavaValue('java.math.BigDecimal', decimal(input, content))
  return input.fail(`the tag ${tag} is none that Jackson writes`)
}

/** A big number; Jackson uses -n instead of the standard's -1 - n, unless configured otherwise; see the writer. */
function bigInteger(input: BytesIn, tag: 2 | 3, content: Node): bigint {
  if (!Buffer.isBuffer(content) || content.length > MAX_NUMBER_BYTES) input.fail('a big number is no short byte string')
  const magnitude = fromBytes(Buffer.concat([Buffer.of(0), content]))
  return tag === 2 ? magnitude : -magnitude
}

function decimal(input: BytesIn, content: Node): string {
  const [exponent, mantissa] = Array.isArray(content) && content.length === 2 ? (content as Node[]) : []
  const unscaled = mantissa instanceof JavaValue ? (mantissa.value as unknown) : mantissa
  if (typeof exponent !== 'number' || !Number.isInteger(exponent) || Math.abs(exponent) > MAX_SCALE) {
    return input.fail('the exponent of a decimal fraction is no integer')
  }
  if (typeof unscaled !== 'bigint' && !Number.isSafeInteger(unscaled))
    return input.fail('a decimal fraction has no mantissa')
  return formatDecimal({ unscaled: BigInt(unscaled as number | bigint), scale: -exponent })
}

function simple(input: BytesIn, info: number): Node {
  switch (info) {
    case 20:
      return false
    case 21:
      return true
    case 22:
    case 23:
      return null
    case 25:
      return half(input.uint(2))
    case 26:
      return input.float()
    case 27:
      return asDouble(input, input.double())
    default:
      return input.fail(`the simple value or break before ${input.at} is out of place`)
  }
}

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN
  return sign * (1024 + fraction) * 2 ** (exponent - 25)
}
