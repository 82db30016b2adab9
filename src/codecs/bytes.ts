import { EncodeError, describe } from '../errors.js'
import type { Codec } from './codec.js'

const NAME = 'bytes'

/**
 * Raw bytes, as Redisson's `ByteArrayCodec`: encodes `Buffer` or `Uint8Array`, decodes to `Buffer`.
 *
 * @throws nothing; its `encode` an EncodeError `ERR_ENCODE`
 *
 * @example
 * ```ts
 * import { codecs } from 'redelayed'
 *
 * const images = client.getQueue<Uint8Array>('images', { codec: codecs.bytes() })
 * ```
 */
export function bytes(): Codec<Uint8Array> {
  return Object.freeze({
    name: NAME,
    encode(value: Uint8Array): Buffer {
      if (!(value instanceof Uint8Array)) {
        throw new EncodeError(NAME, '$', `expected a Buffer or Uint8Array, got ${describe(value)}`)
      }
      return Buffer.from(value)
    },
    decode(encoded: Buffer): Buffer {
      return Buffer.from(encoded)
    },
  })
}
