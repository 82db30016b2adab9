import { parseDecimal } from '../kryo/decimal.js'
import { writeText } from './binary-text.js'
import { BytesOut } from './bytes-out.js'
import type { Fail, Format } from './format.js'

const MAX_UINT64 = 2n ** 64n - 1n
const MIN_INT64 = -(2n ** 63n)

/** MessagePack as jackson-dataformat-msgpack writes it: lengths first, integers as short as they can be. */
export class MsgpackFormat implements Format {
  readonly out = new BytesOut()
  readonly counts = true
  readonly nativeBytes = true
  readonly #fail: Fail

  constructor(fail: Fail) {
    this.#fail = fail
  }

  nil(): void {
    this.out.byte(0xc0)
  }

  text(value: string): void {
    writeText(this.out, value, this.#textHead, this.#fail)
  }

  bool(value: boolean): void {
    this.out.byte(value ? 0xc3 : 0xc2)
  }

  int(value: number): void {
    if (value >= 0) {
      if (value < 0x80) this.out.byte(value)
      else if (value < 0x100) this.out.tagged(0xcc, value, 1)
      else if (value < 0x10000) this.out.tagged(0xcd, value, 2)
      else if (value < 0x100000000) this.out.tagged(0xce, value, 4)
      else this.out.tagged64(0xcf, BigInt(value))
    } else if (value >= -0x20) this.out.byte(value & 0xff)
    else if (value >= -0x80) this.out.tagged(0xd0, value & 0xff, 1)
    else if (value >= -0x8000) this.out.tagged(0xd1, value & 0xffff, 2)
    else if (value >= -0x80000000) this.out.tagged(0xd2, value >>> 0, 4)
    else this.out.tagged64(0xd3, BigInt(value))
  }

  bigint(value: bigint): void {
    if (value < MIN_INT64 || value > MAX_UINT64) this.#fail('MessagePack has no integers of more than 64 bits')
    const number = Number(value)
    if (Number.isSafeInteger(number)) this.int(number)
    else this.out.tagged64(value < 0n ? 0xd3 : 0xcf, value)
  }

  bigInteger(value: bigint): void {
    this.bigint(value)
  }

  /** Writes a BigDecimal as Jackson does, a whole one as an integer and others as a double: it keeps the number, but not the scale. */
  decimal(text: string): void {
    const number = Number(text)
    if (Number.isSafeInteger(number) && sameNumber(text, String(number))) this.int(number)
    else if (/^-?\d+$/.test(text)) this.bigint(BigInt(text))
    else if (Number.isFinite(number) && sameNumber(text, String(number))) this.out.double(0xcb, number)
    else this.#fail(`MessagePack would round the BigDecimal ${text}`)
  }

  double(value: number): void {
    this.out.double(0xcb, value)
  }

  float(value: number): void {
    if (Number.isNaN(value) || Math.fround(value) === value) this.out.float(0xca, value)
    else this.double(value)
  }

  bytes(value: Uint8Array): void {
    const size = value.length
    if (size < 0x100) this.out.tagged(0xc4, size, 1)
    else if (size < 0x10000) this.out.tagged(0xc5, size, 2)
    else this.out.tagged(0xc6, size, 4)
    this.out.raw(value)
  }

  readonly #textHead = (size: number): void => {
    if (size < 0x20) this.out.byte(0xa0 | size)
    else if (size < 0x100) this.out.tagged(0xd9, size, 1)
    else if (size < 0x10000) this.out.tagged(0xda, size, 2)
    else this.out.tagged(0xdb, size, 4)
  }

  item(): void {
    // the items of an array follow each other without anything between them
  }

  key(key: string): void {
    this.text(key)
  }

  openPair(className: string): void {
    this.out.byte(0x92)
    this.text(className)
  }

  closePair(): void {
    // its length was written first
  }

  openArray(count: number): void {
    if (count < 0x10) this.out.byte(0x90 | count)
    else if (count < 0x10000) this.out.tagged(0xdc, count, 2)
    else this.out.tagged(0xdd, count, 4)
  }

  closeArray(): void {
    // its length was written first
  }

  openObject(className: string | undefined, count: number): void {
    const all = className === undefined ? count : count + 1
    if (all < 0x10) this.out.byte(0x80 | all)
    else if (all < 0x10000) this.out.tagged(0xde, all, 2)
    else this.out.tagged(0xdf, all, 4)
    if (className === undefined) return
    this.text('@class')
    this.text(className)
  }

  closeObject(): void {
    // its length was written first
  }
}

/** Whether two decimal texts are one number, whatever their scales. */
function sameNumber(one: string, other: string): boolean {
  const [a, b] = [stripped(one), stripped(other)]
  return a !== undefined && a === b
}

function stripped(text: string): string | undefined {
  const decimal = parseDecimal(text)
  if (decimal === undefined) return undefined
  const digits = String(decimal.unscaled)
  const significant = digits.replace(/0+$/, '')
  if (significant === '' || significant === '-') return '0'
  return `${significant}E${digits.length - significant.length - decimal.scale}`
}
