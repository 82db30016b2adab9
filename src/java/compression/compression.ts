import { DecodeError, EncodeError, InvalidArgumentError, toError } from '../../errors.js'
import { integer, onlyKnown } from '../../options.js'
import { closeBudget, openBudget } from '../../codecs/budget.js'
import type { Codec } from '../../codecs/codec.js'
import { kryo5 } from '../kryo/kryo5.js'
import * as lz4Block from './lz4-block.js'
import * as snappyBlock from './snappy-block.js'
import { zstdOfNode, type ZstdImplementation } from './zstd.js'

/** Options of the codecs that compress. */
export interface CompressionOptions {
  /** The most bytes that a message may have before compression, in both directions. 1 to 2,147,483,647; default 16 MiB. */
  readonly maxBytes?: number | undefined
}

export interface ZstdOptions extends CompressionOptions {
  /** The implementation to use instead of Node's zlib, which has Zstandard since 22.15. */
  readonly implementation?: ZstdImplementation | undefined
}

interface Format {
  compress(bytes: Buffer): Buffer
  /** The length that the frame claims, at most `maxBytes`. */
  size(frame: Buffer, maxBytes: number): number
  decompress(frame: Buffer, size: number): Buffer
}

const DEFAULT_MAX_BYTES = 16 * 1024 * 1024
const HEADER = 4

function compressed<T>(name: string, inner: Codec<T>, options: CompressionOptions, format: Format): Codec<T> {
  if (typeof (inner as Partial<Codec> | null)?.encode !== 'function' || typeof inner.decode !== 'function') {
    throw new InvalidArgumentError(`${name}: the inner codec`, 'a codec', inner)
  }
  const maxBytes = integer(`${name}.maxBytes`, options.maxBytes ?? DEFAULT_MAX_BYTES, 1, 0x7fff_ffff)
  return Object.freeze({
    name: `${name}(${inner.name})`,
    encode(value: T): Buffer {
      const bytes = inner.encode(value)
      if (bytes.length > maxBytes) {
        throw new EncodeError(name, '$', `it has ${bytes.length} bytes before compression, maxBytes is ${maxBytes}`)
      }
      return format.compress(bytes)
    },
    decode(frame: Buffer): T {
      const budget = openBudget()
      try {
        budget.allow(maxBytes)
        const size = format.size(frame, maxBytes)
        budget.spend(name, size)
        return inner.decode(format.decompress(frame, size))
      } finally {
        closeBudget()
      }
    },
  })
}

/** The length before a block or frame, highest byte first, as Java's DataOutput writes it. */
function claimedSize(name: string, frame: Buffer, maxBytes: number, maxRatio: number): number {
  if (frame.length < HEADER) throw new DecodeError(name, `they end after ${frame.length} bytes, within the length`)
  return bounded(name, frame.readInt32BE(0), maxBytes, (frame.length - HEADER) * maxRatio)
}

function bounded(name: string, size: number, maxBytes: number, possible: number): number {
  if (size < 0) throw new DecodeError(name, 'their decompressed length is negative')
  if (size > maxBytes) throw new DecodeError(name, `they decompress to ${size} bytes, maxBytes is ${maxBytes}`)
  if (size > possible) throw new DecodeError(name, `they claim ${size} bytes, more than they can hold`)
  return size
}

function withHeader(size: number, content: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER + content.length)
  frame.writeInt32BE(size, 0)
  frame.set(content, HEADER)
  return frame
}

function damaged(name: string): never {
  throw new DecodeError(name, 'the compressed data is damaged')
}

function lz4Format(name: string): Format {
  return {
    compress: (bytes) => withHeader(bytes.length, lz4Block.compress(bytes)),
    size: (frame, maxBytes) => claimedSize(name, frame, maxBytes, lz4Block.MAX_RATIO),
    decompress: (frame, size) => lz4Block.decompress(frame.subarray(HEADER), size) ?? damaged(name),
  }
}

const snappyFormat: Format = {
  compress: (bytes) => snappyBlock.compress(bytes),
  size: (frame, maxBytes) => {
    const { size, start } = snappyBlock.sizeOf(frame) ?? damaged('snappyV2')
    return bounded('snappyV2', size, maxBytes, (frame.length - start) * snappyBlock.MAX_RATIO)
  },
  decompress: (frame, size) => {
    const { start } = snappyBlock.sizeOf(frame) ?? damaged('snappyV2')
    return snappyBlock.decompress(frame, size, start) ?? damaged('snappyV2')
  },
}

function zstdFormat(implementation: ZstdImplementation): Format {
  return {
    compress: (bytes) => withHeader(bytes.length, implementation.compress(bytes)),
    size: (frame, maxBytes) => claimedSize('zstd', frame, maxBytes, Infinity),
    decompress: (frame, size) => {
      let content: Uint8Array
      try {
        content = implementation.decompress(frame.subarray(HEADER), size)
      } catch (thrown) {
        throw new DecodeError('zstd', toError(thrown).message, { cause: thrown })
      }
      if (content.length !== size) damaged('zstd')
      return Buffer.from(content.buffer, content.byteOffset, content.length)
    },
  }
}

/**
 * Redisson's `LZ4Codec`: the length and a raw LZ4 block around the bytes of another codec, `kryo5` unless given. The block
 * format is implemented here, in a hundred lines: the pure libraries on npm are unmaintained or trust the
 * lengths in the data, and the others need native binaries.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option is wrong
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const orders = client.getQueue('orders', { codec: javaCodecs.lz4(javaCodecs.jsonJackson()) })
 * ```
 */
export function lz4<T = unknown>(inner: Codec<T> = kryo5(), options: CompressionOptions = {}): Codec<T> {
  onlyKnown('lz4', options, ['maxBytes'])
  return compressed('lz4', inner, options, lz4Format('lz4'))
}

/**
 * Redisson's `LZ4CodecV2`: the same bytes as `lz4`, by another compressor on the Java side.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option is wrong
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const orders = client.getQueue('orders', { codec: javaCodecs.lz4V2() }) // around Kryo 5
 * ```
 */
export function lz4V2<T = unknown>(inner: Codec<T> = kryo5(), options: CompressionOptions = {}): Codec<T> {
  onlyKnown('lz4V2', options, ['maxBytes'])
  return compressed('lz4V2', inner, options, lz4Format('lz4V2'))
}

/**
 * Redisson's `SnappyCodecV2`: a raw Snappy block, implemented here for the same reasons as `lz4`.
 *
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option is wrong
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const orders = client.getQueue('orders', { codec: javaCodecs.snappyV2() }) // around Kryo 5
 * ```
 */
export function snappyV2<T = unknown>(inner: Codec<T> = kryo5(), options: CompressionOptions = {}): Codec<T> {
  onlyKnown('snappyV2', options, ['maxBytes'])
  return compressed('snappyV2', inner, options, snappyFormat)
}

/**
 * Redisson's `ZStdCodec`: the length and a Zstandard frame. Node has Zstandard since 22.15; an older one needs an implementation in the
 * options.
 *
 * @throws UnsupportedOperationError `ERR_UNSUPPORTED_OPERATION`: neither Node nor the options have Zstandard
 * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an option is wrong
 *
 * @example
 * ```ts
 * import { javaCodecs } from 'redelayed/java'
 *
 * const orders = client.getQueue('orders', { codec: javaCodecs.zstd(javaCodecs.kryo5(), { maxBytes: 1_000_000 }) })
 * ```
 */
export function zstd<T = unknown>(inner: Codec<T> = kryo5(), options: ZstdOptions = {}): Codec<T> {
  onlyKnown('zstd', options, ['maxBytes', 'implementation'])
  return compressed('zstd', inner, options, zstdFormat(options.implementation ?? zstdOfNode()))
}
