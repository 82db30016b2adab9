import type { Codec } from '../index.js'
import { clean } from '../text.js'

const MOST_BYTES_SHOWN = 256
const MOST_BYTES_IN_TABLE = 24

/** Bytes that the codec refused. They are shown in place of the value. */
export class Undecodable {
  readonly #bytes: Buffer
  readonly #problem: string

  constructor(bytes: Buffer, problem: string) {
    this.#bytes = bytes
    this.#problem = problem
  }

  /** `size` is in bytes, of which `hex` has the first 256. */
  get document(): { readonly hex: string; readonly size: number; readonly problem: string } {
    return { ...bytesDocument(this.#bytes), problem: this.#problem }
  }

  get line(): string {
    const hex = this.#bytes.toString('hex', 0, MOST_BYTES_IN_TABLE)
    const more = this.#bytes.length > MOST_BYTES_IN_TABLE ? '…' : ''
    return `0x${hex}${more} (${this.#bytes.length} bytes, cannot be decoded)`
  }

  get problem(): string {
    return this.#problem
  }
}

/** `size` is in bytes, of which `hex` has the first 256. */
export function bytesDocument(bytes: Buffer): { readonly hex: string; readonly size: number } {
  return { hex: bytes.toString('hex', 0, MOST_BYTES_SHOWN), size: bytes.length }
}

/** Wraps a codec so that undecodable bytes become an `Undecodable`. */
export function orUndecodable(codec: Codec): Codec {
  return {
    name: codec.name,
    encode: (value) => codec.encode(value),
    decode: (bytes) => {
      try {
        return codec.decode(bytes) ?? new Undecodable(bytes, `codec ${codec.name}: the payload decoded to null`)
      } catch (thrown) {
        return new Undecodable(bytes, clean(thrown instanceof Error ? thrown.message : String(thrown)))
      }
    },
  }
}
