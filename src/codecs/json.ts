import { EncodeError } from '../errors.js'
import { MAX_DEPTH, type Codec } from './codec.js'
import { assertEncodable } from './encodable.js'
import { assertJsonDepth, claimJsonElements, parseJsonText } from './json-bounds.js'
import { decodeUtf8 } from './string.js'

const NAME = 'json'

/**
 * JSON in UTF-8. A `Date` becomes its ISO text and stays text when decoded; everything else that JSON would drop or
 * change (bigint, NaN, Map, Set, functions, holes) is refused with its path.
 *
 * @throws nothing; its `encode` an EncodeError `ERR_ENCODE`, its `decode` a DecodeError `ERR_DECODE`
 *
 * @example
 * ```ts
 * import { codecs } from 'redelayed'
 *
 * const orders = client.getReliableQueue<Order>('orders', { codec: codecs.json() })
 * ```
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
      assertJsonDepth(NAME, bytes, MAX_DEPTH)
      claimJsonElements(NAME, bytes)
      return parseJsonText(NAME, decodeUtf8(NAME, bytes)) as T
    },
  })
}

function isLeaf(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime())
}
