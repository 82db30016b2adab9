import { DecodeError } from '../errors.js'
import { MAX_DEPTH } from './codec.js'

const NAME = 'msgpack'

/** Extension types that are let through: timestamp (-1) and msgpackr's `undefined` (0); others would run decoder code. */
const ALLOWED_EXTENSIONS = [-1, 0]

/**
 * Checks the structure of MessagePack bytes without building anything: that they hold exactly one value, that no length
 * exceeds what follows it, and that nesting is bounded. A decoder fed with the result cannot be made to allocate more than
 * a small multiple of its input.
 */
export function assertMsgpackBounds(bytes: Buffer): void {
  const open: number[] = []
  let pending = 1
  let at = 0
  for (;;) {
    while (pending === 0) {
      const outer = open.pop()
      if (outer === undefined) {
        if (at !== bytes.length) throw new DecodeError(NAME, `${bytes.length - at} bytes follow the value`)
        return
      }
      pending = outer
    }
    pending--
    const tag = byte(at++)
    let children = 0
    if (tag <= 0x7f || tag >= 0xe0) continue
    else if (tag <= 0x8f) children = 2 * (tag & 0x0f)
    else if (tag <= 0x9f) children = tag & 0x0f
    else if (tag <= 0xbf) skip(tag & 0x1f)
    else {
      switch (tag) {
        case 0xc0:
        case 0xc2:
        case 0xc3: // nil, false, true
          continue
        case 0xc4:
        case 0xd9:
          skip(uint(1))
          break // bin8, str8
        case 0xc5:
        case 0xda:
          skip(uint(2))
          break
        case 0xc6:
        case 0xdb:
          skip(uint(4))
          break
        case 0xc7:
          extension(uint(1))
          break
        case 0xc8:
          extension(uint(2))
          break
        case 0xc9:
          extension(uint(4))
          break
        case 0xca:
        case 0xce:
        case 0xd2:
          skip(4)
          break // float32, uint32, int32
        case 0xcb:
        case 0xcf:
        case 0xd3:
          skip(8)
          break
        case 0xcc:
        case 0xd0:
          skip(1)
          break
        case 0xcd:
        case 0xd1:
          skip(2)
          break
        case 0xd4:
          extension(1)
          break
        case 0xd5:
          extension(2)
          break
        case 0xd6:
          extension(4)
          break
        case 0xd7:
          extension(8)
          break
        case 0xd8:
          extension(16)
          break
        case 0xdc:
          children = uint(2)
          break
        case 0xdd:
          children = uint(4)
          break
        case 0xde:
          children = 2 * uint(2)
          break
        case 0xdf:
          children = 2 * uint(4)
          break
        default:
          throw new DecodeError(NAME, `byte 0x${tag.toString(16)} at ${at - 1} starts no value`)
      }
    }
    if (children === 0) continue
    if (children > bytes.length - at) throw new DecodeError(NAME, `a length at ${at} exceeds the bytes that follow`)
    if (open.length >= MAX_DEPTH) throw new DecodeError(NAME, `it nests deeper than ${MAX_DEPTH} levels`)
    open.push(pending)
    pending = children
  }

  function byte(position: number): number {
    const value = bytes[position]
    if (value === undefined) throw new DecodeError(NAME, `they end after ${bytes.length} bytes, within a value`)
    return value
  }

  function uint(size: 1 | 2 | 4): number {
    let value = 0
    for (let i = 0; i < size; i++) value = value * 256 + byte(at++)
    return value
  }

  function skip(length: number): void {
    if (length > bytes.length - at) throw new DecodeError(NAME, `they end after ${bytes.length} bytes, within a value`)
    at += length
  }

  function extension(length: number): void {
    const type = (byte(at++) << 24) >> 24
    if (!ALLOWED_EXTENSIONS.includes(type)) throw new DecodeError(NAME, `extension type ${type} is not supported`)
    skip(length)
  }
}
