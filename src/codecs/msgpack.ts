import { Packr, type Options } from 'msgpackr'
import { DecodeError, EncodeError, toError } from '../errors.js'
import type { Codec } from './codec.js'
import { assertEncodable, type Accepts } from './encodable.js'
import { assertMsgpackBounds } from './msgpack-bounds.js'

const NAME = 'msgpack'
// msgpackr's types lack `skipValues`, which leaves out properties that are undefined
const OPTIONS: Options & { skipValues: unknown[] } = {
  useRecords: false,
  mapsAsObjects: true,
  int64AsType: 'bigint',
  skipValues: [undefined],
}
/** msgpackr would write half of a surrogate pair as bytes that are not UTF-8, and rename `__proto__`. */
const ACCEPTS: Accepts = {
  leaf: isLeaf,
  text: (text) => (text.isWellFormed() ? undefined : 'a text with a lone surrogate'),
  refusedNames: ['__proto__'],
}
const MIN_INT64 = -(2n ** 63n)
const MAX_UINT64 = 2n ** 64n - 1n

/**
 * MessagePack by msgpackr: null, booleans, numbers, bigints of 64 bits, strings, `Date`, `Buffer`/`Uint8Array`, arrays and
 * objects, readable by any MessagePack library. Integers of 64 bits decode as bigint, bytes as `Buffer`, every map as a
 * plain object.
 *
 * @throws nothing; its `encode` an EncodeError `ERR_ENCODE`, its `decode` a DecodeError `ERR_DECODE`
 *
 * @example
 * ```ts
 * import { codecs } from 'redelayed'
 *
 * const orders = client.getReliableQueue<Order>('orders', { codec: codecs.msgpack() }) // the default
 * ```
 */
export function msgpack<T = unknown>(): Codec<T> {
  const packr = new Packr(OPTIONS)
  return Object.freeze({
    name: NAME,
    encode(value: T): Buffer {
      assertEncodable(NAME, value, ACCEPTS)
      try {
        return packr.pack(value)
      } catch (thrown) {
        throw new EncodeError(NAME, '$', toError(thrown).message, { cause: thrown })
      }
    },
    decode(bytes: Buffer): T {
      const text = onlyText(bytes)
      // only a text with a replacement character can have been invalid
      if (text !== undefined && text.indexOf('\ufffd') < 0) return text as T
      assertMsgpackBounds(bytes)
      try {
        return packr.unpack(bytes) as T
      } catch (thrown) {
        throw new DecodeError(NAME, toError(thrown).message, { cause: thrown })
      }
    },
  })
}

/** The text, if the message is a single text: many messages are, and msgpackr would take twice as long. */
function onlyText(bytes: Buffer): string | undefined {
  const tag = bytes[0] ?? 0
  if (tag >= 0xa0 && tag <= 0xbf) return bytes.length === 1 + (tag & 0x1f) ? bytes.toString('utf8', 1) : undefined
  if (tag === 0xd9) return bytes.length === 2 + (bytes[1] ?? 0) ? bytes.toString('utf8', 2) : undefined
  if (tag !== 0xda || bytes.length < 3) return undefined
  return bytes.length === 3 + bytes.readUInt16BE(1) ? bytes.toString('utf8', 3) : undefined
}

function isLeaf(value: unknown): boolean {
  if (typeof value === 'bigint') return value >= MIN_INT64 && value <= MAX_UINT64
  if (typeof value === 'number') return true // NaN and the infinities are floats like any other
  if (value instanceof Date) return !Number.isNaN(value.getTime())
  return value instanceof Uint8Array
}
