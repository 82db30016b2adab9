import { DecodeError, EncodeError, describe } from '../errors.js'
import type { Codec } from './codec.js'

const NAME = 'string'
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The bare text in UTF-8, the bytes of Redisson's `StringCodec`. A lone surrogate, which UTF-8 cannot hold, is refused.
 *
 * @throws nothing; its `encode` an EncodeError `ERR_ENCODE`, its `decode` a DecodeError `ERR_DECODE`
 *
 * @example
 * ```ts
 * import { codecs } from 'redelayed'
 *
 * const names = client.getQueue<string>('names', { codec: codecs.string() })
 * ```
 */
export function string(): Codec<string> {
  return Object.freeze({
    name: NAME,
    encode(value: string): Buffer {
      if (typeof value !== 'string') throw new EncodeError(NAME, '$', `expected a string, got ${describe(value)}`)
      const bytes = Buffer.from(value)
      if (bytes.includes(REPLACEMENT) && !value.isWellFormed()) {
        throw new EncodeError(NAME, '$', 'it holds a lone surrogate')
      }
      return bytes
    },
    decode(bytes: Buffer): string {
      return decodeUtf8(NAME, bytes)
    },
  })
}

/** Node writes this character for half of a surrogate pair; only then is the slower check needed. */
const REPLACEMENT = Buffer.from('\ufffd')

export function decodeUtf8(codec: string, bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch (thrown) {
    throw new DecodeError(codec, 'they are not valid UTF-8', { cause: thrown })
  }
}
