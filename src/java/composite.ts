import { InvalidArgumentError } from '../errors.js'
import { onlyKnown } from '../options.js'
import type { Codec } from '../codecs/codec.js'

/** The parts of Redisson's `CompositeCodec`. */
export interface CompositeParts<T> {
  /** Encodes and decodes the elements of the queue. */
  readonly value: Codec<T>
  /** Without effect on queues; accepted so that the parts can be passed as in Java. */
  readonly key?: Codec | undefined
}

/**
 * Redisson's `CompositeCodec`: on a queue the codec of the values does all the work.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: `value` is not a codec
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const codec = javaCodecs.composite({ value: javaCodecs.kryo5() })
 * const orders = client.getQueue('orders', { codec })
 * ```
 */
export function composite<T>(parts: CompositeParts<T>): Codec<T> {
  onlyKnown('composite', parts, ['value', 'key'])
  const value = codec('composite.value', parts.value)
  if (parts.key !== undefined) codec('composite.key', parts.key)
  return Object.freeze({
    name: `composite(${value.name})`,
    encode: (element: T): Buffer => value.encode(element),
    decode: (encoded: Buffer): T => value.decode(encoded),
  })
}

function codec<T>(what: string, given: Codec<T>): Codec<T> {
  const { name, encode, decode } = (given ?? {}) as Partial<Codec<T>>
  if (typeof name !== 'string' || typeof encode !== 'function' || typeof decode !== 'function') {
    throw new InvalidArgumentError(what, 'a codec', given)
  }
  return given
}
