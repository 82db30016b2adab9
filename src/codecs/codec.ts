/**
 * Converts values to the bytes in Redis and back. All clients of a queue must use the same codec.
 * `encode` throws an `EncodeError` that names the path of a value that it cannot represent; `decode` throws on bytes it cannot
 * read and must bound its work by the length of its input.
 */
export interface Codec<T = unknown> {
  /** The codec's name in error messages. */
  readonly name: string
  encode(value: T): Buffer
  decode(bytes: Buffer): T
}

/** How deep arrays and objects may nest, in both directions. */
export const MAX_DEPTH = 128
