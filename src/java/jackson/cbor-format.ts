import { parseDecimal, toBytes } from '../kryo/decimal.js'
import { writeText } from './binary-text.js'
import { BytesOut } from './bytes-out.js'
import type { Fail, Format } from './format.js'

const BREAK = 0xff
const OPEN_ARRAY = 0x9f
const OPEN_MAP = 0xbf
const MAJOR = { unsigned: 0x00, negative: 0x20, bytes: 0x40, text: 0x60, array: 0x80 } as const
const TAG_POSITIVE = 0xc2
const TAG_NEGATIVE = 0xc3
const TAG_DECIMAL = 0xc4

/** CBOR as Jackson writes it: objects and typed arrays without a length, closed by a break. */
export class CborFormat implements Format {
  readonly out = new BytesOut()
  readonly counts = false
  readonly nativeBytes = true
  readonly #fail: Fail

  constructor(fail: Fail) {
    this.#fail = fail
  }

  nil(): void {
    this.out.byte(0xf6)
  }

  text(value: string): void {
    writeText(this.out, value, this.#textHead, this.#fail)
  }

  bool(value: boolean): void {
    this.out.byte(value ? 0xf5 : 0xf4)
  }

  int(value: number): void {
    if (value >= 0) this.#head(MAJOR.unsigned, value)
    else this.#head(MAJOR.negative, -1 - value)
  }

  bigint(value: bigint): void {
    const number = Number(value)
    if (Number.isSafeInteger(number)) return this.int(number)
    const major = value < 0n ? MAJOR.negative : MAJOR.unsigned
    this.out.tagged64(major | 27, value < 0n ? -1n - value : value)
  }

  /**
   * Jackson tags every BigInteger, also a small one. For a negative one it writes the magnitude n of -n instead of the
   * standard's -1 - n, and reads it so; this codec does the same, so that Java reads the same number.
   */
  bigInteger(value: bigint): void {
    this.out.byte(value < 0n ? TAG_NEGATIVE : TAG_POSITIVE)
    this.bytes(toBytes(value < 0n ? -value : value))
  }

  decimal(text: string): void {
    const { unscaled, scale } = parseDecimal(text) ?? this.#fail(`${text} is not a number`)
    this.out.byte(TAG_DECIMAL)
    this.out.byte(MAJOR.array | 2)
    this.int(-scale)
    if (BigInt.asIntN(64, unscaled) === unscaled) this.bigint(unscaled)
    else this.bigInteger(unscaled)
  }

  double(value: number): void {
    this.out.double(0xfb, value)
  }

  float(value: number): void {
    if (Number.isNaN(value) || Math.fround(value) === value) this.out.float(0xfa, value)
    else this.double(value)
  }

  bytes(value: Uint8Array): void {
    this.#head(MAJOR.bytes, value.length)
    this.out.raw(value)
  }

  readonly #textHead = (size: number): void => {
    this.#head(MAJOR.text, size)
  }

  item(): void {
    // CBOR has no separator between the items of an array
  }

  key(key: string): void {
    this.text(key)
  }

  openPair(className: string): void {
    this.out.byte(OPEN_ARRAY)
    this.text(className)
  }

  closePair(): void {
    this.out.byte(BREAK)
  }

  openArray(count: number, typed: boolean): void {
    if (typed) this.out.byte(OPEN_ARRAY)
    else this.#head(MAJOR.array, count)
  }

  closeArray(typed: boolean): void {
    if (typed) this.out.byte(BREAK)
  }

  openObject(className: string | undefined): void {
    this.out.byte(OPEN_MAP)
    if (className === undefined) return
    this.text('@class')
    this.text(className)
  }

  closeObject(): void {
    this.out.byte(BREAK)
  }

  #head(major: number, value: number): void {
    if (value < 24) this.out.byte(major | value)
    else if (value < 0x100) this.out.tagged(major | 24, value, 1)
    else if (value < 0x10000) this.out.tagged(major | 25, value, 2)
    else if (value < 0x100000000) this.out.tagged(major | 26, value, 4)
    else this.out.tagged64(major | 27, BigInt(value))
  }
}
