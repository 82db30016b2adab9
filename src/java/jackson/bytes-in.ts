import { DecodeError } from '../../errors.js'
import { BYTES_OF, type Budget } from '../../codecs/budget.js'
import { decodeUtf8 } from '../../codecs/string.js'

/** The longest text that is decoded here; the platform decodes longer text. */
const SHORT = 48

/** Bytes that are read from front to back. Reads beyond their end throw. All numbers are big endian. */
export class BytesIn {
  readonly #codec: string
  readonly #bytes: Buffer
  readonly #budget: Budget
  /** Whether whole doubles must be distinguished from integers. */
  readonly exact: boolean
  #at = 0

  constructor(codec: string, bytes: Buffer, exact: boolean, budget: Budget) {
    this.#codec = codec
    this.exact = exact
    this.#bytes = bytes
    this.#budget = budget
  }

  fail(message: string): never {
    throw new DecodeError(this.#codec, message)
  }

  get at(): number {
    return this.#at
  }

  get left(): number {
    return this.#bytes.length - this.#at
  }

  byte(): number {
    return this.#bytes[this.#skip(1)] as number
  }

  /** The next byte, without consuming it. */
  peek(): number {
    return this.#bytes[this.#at] ?? this.#ended()
  }

  uint(size: 1 | 2 | 4): number {
    return this.#bytes.readUIntBE(this.#skip(size), size)
  }

  int(size: 1 | 2 | 4): number {
    return this.#bytes.readIntBE(this.#skip(size), size)
  }

  uint64(): bigint {
    return this.#bytes.readBigUInt64BE(this.#skip(8))
  }

  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.#skip(8))
  }

  float(): number {
    return this.#bytes.readFloatBE(this.#skip(4))
  }

  double(): number {
    return this.#bytes.readDoubleBE(this.#skip(8))
  }

  /** A copy of the next `size` bytes. */
  raw(size: number): Buffer {
    const start = this.#skip(size)
    this.#budget.spend(this.#codec, BYTES_OF.buffer + size)
    return Buffer.from(this.#bytes.subarray(start, start + size))
  }

  text(size: number): string {
    const start = this.#skip(size)
    if (size <= SHORT) {
      let ascii = true
      for (let i = start; i < start + size; i++) ascii &&= (this.#bytes[i] as number) < 0x80
      if (ascii) return this.#bytes.toString('latin1', start, start + size)
    }
    return decodeUtf8(this.#codec, this.#bytes.subarray(start, start + size))
  }

  /** Checks a number of items, each of which takes at least one byte. */
  count(items: number): number {
    if (items > this.left) this.#ended()
    this.#budget.claim(this.#codec, items)
    return items
  }

  end(): void {
    if (this.left > 0) this.fail(`${this.left} bytes follow the value`)
  }

  #skip(size: number): number {
    if (size > this.left) this.#ended()
    const start = this.#at
    this.#at += size
    return start
  }

  #ended(): never {
    return this.fail(`they end after ${this.#bytes.length} bytes, within a value`)
  }
}
