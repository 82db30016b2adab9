import type { Budget } from '../../codecs/budget.js'
import { numberIfSafe } from '../scalars.js'
import { BytesIn } from './bytes-in.js'
import { MAX_WIRE_DEPTH, asDouble, setProperty, type Node } from './nodes.js'

/** Parses the MessagePack that jackson-dataformat-msgpack writes; extension types, which it does not write, are refused. */
export function parseMsgpack(codec: string, bytes: Buffer, exact: boolean, budget: Budget): Node {
  const input = new BytesIn(codec, bytes, exact, budget)
  const node = value(input, 0)
  input.end()
  return node
}

function value(input: BytesIn, depth: number): Node {
  const tag = input.byte()
  if (tag <= 0x7f) return tag
  if (tag >= 0xe0) return tag - 0x100
  if (tag <= 0x8f) return object(input, tag & 0x0f, depth)
  if (tag <= 0x9f) return array(input, tag & 0x0f, depth)
  if (tag <= 0xbf) return input.text(tag & 0x1f)
  switch (tag) {
    case 0xc0:
      return null
    case 0xc2:
      return false
    case 0xc3:
      return true
    case 0xc4:
      return input.raw(input.uint(1))
    case 0xc5:
      return input.raw(input.uint(2))
    case 0xc6:
      return input.raw(input.uint(4))
    case 0xca:
      return input.float()
    case 0xcb:
      return asDouble(input, input.double())
    case 0xcc:
      return input.uint(1)
    case 0xcd:
      return input.uint(2)
    case 0xce:
      return input.uint(4)
    case 0xcf:
      return numberIfSafe(input.uint64())
    case 0xd0:
      return input.int(1)
    case 0xd1:
      return input.int(2)
    case 0xd2:
      return input.int(4)
    case 0xd3:
      return numberIfSafe(input.int64())
    case 0xd9:
      return input.text(input.uint(1))
    case 0xda:
      return input.text(input.uint(2))
    case 0xdb:
      return input.text(input.uint(4))
    case 0xdc:
      return array(input, input.uint(2), depth)
    case 0xdd:
      return array(input, input.uint(4), depth)
    case 0xde:
      return object(input, input.uint(2), depth)
    case 0xdf:
      return object(input, input.uint(4), depth)
    default:
      return input.fail(`byte 0x${tag.toString(16)} at ${input.at - 1} starts no value that Jackson writes`)
  }
}

function array(input: BytesIn, count: number, depth: number): Node[] {
  nest(input, depth)
  input.count(count)
  const items: Node[] = []
  for (let i = 0; i < count; i++) items.push(value(input, depth + 1))
  return items
}

function object(input: BytesIn, count: number, depth: number): Node {
  nest(input, depth)
  input.count(2 * count)
  const properties = {}
  for (let i = 0; i < count; i++) {
    const key = value(input, depth + 1)
    if (typeof key !== 'string' && typeof key !== 'number') input.fail('the key of a map is neither text nor a number')
    setProperty(properties, String(key), value(input, depth + 1))
  }
  return properties
}

function nest(input: BytesIn, depth: number): void {
  if (depth >= MAX_WIRE_DEPTH) input.fail(`they nest deeper than ${MAX_WIRE_DEPTH} levels`)
}
