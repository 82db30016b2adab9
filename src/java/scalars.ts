import { DecodeError, EncodeError, describe } from '../errors.js'
import { bytes } from '../codecs/bytes.js'
import type { Codec } from '../codecs/codec.js'
import { javaDouble, parseJavaDouble } from './jackson/java-double.js'

export const MIN_INT64 = -(2n ** 63n)
export const MAX_INT64 = 2n ** 63n - 1n
export const MIN_INT32 = -(2 ** 31)
export const MAX_INT32 = 2 ** 31 - 1

/** The longest number that Java writes; Jackson has the same limit. */
const MAX_DIGITS = 1000
const DECIMAL = /^[+-]?\d+$/

/**
 * Redisson's `LongCodec`: the decimal text of a 64-bit integer, e.g. `-5`. Takes a bigint within 64 bits or a number that
 * is a safe integer. Decodes to a number where it is exact (up to 2^53 - 1 on either side of 0) and to a bigint beyond.
 *
 * @throws nothing; its `encode` an EncodeError `ERR_ENCODE`, its `decode` a DecodeError `ERR_DECODE`
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const numbers = client.getQueue<number | bigint>('numbers', { codec: javaCodecs.long() })
 * ```
 */
export function long(): Codec<number | bigint> {
  return Object.freeze({
    name: 'long',
    encode(value: number | bigint): Buffer {
      const fits = typeof value === 'bigint' ? value >= MIN_INT64 && value <= MAX_INT64 : Number.isSafeInteger(value)
      if (!fits) {
        throw new EncodeError('long', '$', `expected a safe integer or a bigint of 64 bits, got ${describe(value)}`)
      }
      return Buffer.from(String(value), 'latin1')
    },
    decode(encoded: Buffer): number | bigint {
      const value = parseInteger('long', encoded)
      if (value < MIN_INT64 || value > MAX_INT64) throw new DecodeError('long', `${value} has more than 64 bits`)
      return numberIfSafe(value)
    },
  })
}

/**
 * Redisson's `IntegerCodec`: the decimal text of a whole number from -2^31 to 2^31 - 1.
 *
 * @throws nothing; its `encode` an EncodeError `ERR_ENCODE`, its `decode` a DecodeError `ERR_DECODE`
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const counts = client.getQueue<number>('counts', { codec: javaCodecs.integer() })
 * ```
 */
export function integer(): Codec<number> {
  return Object.freeze({
    name: 'integer',
    encode(value: number): Buffer {
      if (typeof value !== 'number' || !Number.isInteger(value) || value < MIN_INT32 || value > MAX_INT32) {
        throw new EncodeError('integer', '$', `expected a whole number of 32 bits, got ${describe(value)}`)
      }
      return Buffer.from(String(value), 'latin1')
    },
    decode(encoded: Buffer): number {
      const value = parseInteger('integer', encoded)
      if (value < MIN_INT32 || value > MAX_INT32) throw new DecodeError('integer', `${value} has more than 32 bits`)
      return Number(value)
    },
  })
}

/**
 * Redisson's `DoubleCodec`: the text of Java's `Double.toString`, e.g. `1.0`, `1.0E21`, `NaN`, so that `remove` and
 * `contains`, which compare bytes, find what Java wrote. Takes every number.
 *
 * @throws nothing; its `encode` an EncodeError `ERR_ENCODE`, its `decode` a DecodeError `ERR_DECODE`
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const prices = client.getQueue<number>('prices', { codec: javaCodecs.double() })
 * ```
 */
export function double(): Codec<number> {
  return Object.freeze({
    name: 'double',
    encode(value: number): Buffer {
      if (typeof value !== 'number') throw new EncodeError('double', '$', `expected a number, got ${describe(value)}`)
      return Buffer.from(javaDouble(value), 'latin1')
    },
    decode(encoded: Buffer): number {
      const value = parseJavaDouble(asciiOf('double', encoded))
      if (value === undefined) throw new DecodeError('double', 'they are not the text of a double')
      return value
    },
  })
}

/** Redisson's name for {@link bytes}: `ByteArrayCodec`. */
export const byteArray = bytes

/** The documented rule for 64-bit integers: a number where it is exact, else a bigint. */
export function numberIfSafe(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

function parseInteger(codec: string, encoded: Buffer): bigint {
  const text = asciiOf(codec, encoded)
  if (!DECIMAL.test(text)) throw new DecodeError(codec, 'they are not the text of a whole number')
  return BigInt(text.startsWith('+') ? text.slice(1) : text)
}

function asciiOf(codec: string, encoded: Buffer): string {
  if (encoded.length > MAX_DIGITS) throw new DecodeError(codec, `${encoded.length} bytes are too many for a number`)
  return encoded.toString('latin1')
}
