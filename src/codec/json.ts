import { DecodeError, EncodeError, toError } from '../errors.js'
import { MAX_DEPTH, type Codec } from './codec.js'
import { assertEncodable } from './encodable.js'
import { decodeUtf8 } from './string.js'

const NAME = 'json'

/**
 * JSON in UTF-8. A `Date` becomes its ISO text and stays text when decoded; everything else that JSON would drop or
 * change (bigint, NaN, Map, Set, functions, holes) is refused with its path.
 */
export function json<T = unknown>(): Codec<T> {
  return Object.freeze({
    name: NAME,
    encode(value: T): Buffer {
      assertEncodable(NAME, value, { leaf: isLeaf })
      const text = JSON.stringify(value) as string | undefined
      if (text === undefined) throw new EncodeError(NAME, '$', 'its toJSON returned nothing')
      return Buffer.from(text)
    },
    decode(bytes: Buffer): T {
      assertDepth(bytes)
      const text = decodeUtf8(NAME, bytes)
      try {
        return JSON.parse(text) as T
      } catch (thrown) {
        throw new DecodeError(NAME, toError(thrown).message, { cause: thrown })
      }
    },
  })
}

function isLeaf(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime())
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Counts brackets outside strings, in one pass over the bytes. */
function assertDepth(bytes: Buffer): void {
  let depth = 0
  let quoted = false
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (quoted) {
      if (byte === BACKSLASH) i++
      else if (byte === QUOTE) quoted = false
    } else if (byte === QUOTE) quoted = true
    else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > MAX_DEPTH) throw new DecodeError(NAME, `they nest deeper than ${MAX_DEPTH} levels`)
    } else if (byte === 0x5d || byte === 0x7d) depth--
  }
}
