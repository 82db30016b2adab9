import { DecodeError } from '../../errors.js'
import type { Budget } from '../../codecs/budget.js'

export const NAME = 'kryo5'
/** How many elements without bytes, such as the nulls of a list of nulls, are permitted beyond one element for each byte. */
const FREE_ELEMENTS = 4096

/** The primitives of Kryo's `Input`. It never reads or allocates more than the input can contain. */
export class Reader {
  readonly bytes: Buffer
  at = 0
  readonly #budget: Budget
  #elements: number

  constructor(bytes: Buffer, budget: Budget) {
    this.bytes = bytes
    this.#budget = budget
    this.#elements = bytes.length + FREE_ELEMENTS
  }

  fail(message: string): never {
    throw new DecodeError(NAME, message)
  }

  /** The position of the next `count` bytes, after checking that they exist; skips them. */
  skip(count: number): number {
    const from = this.at
    if (count > this.bytes.length - from) {
      this.fail(`they end after ${this.bytes.length} bytes, within a value`)
    }
    this.at = from + count
    return from
  }

  /** Claims the elements of one more collection; throws if the message as a whole cannot contain so many. */
  claim(count: number): number {
    this.#elements -= count
    if (this.#elements < 0) this.fail(`a length of ${count} at ${this.at} exceeds the bytes that follow`)
    this.#budget.claim(NAME, count)
    return count
  }

  /** Claims the memory for a few bytes of the message that create a large value. */
  spend(bytes: number): void {
    this.#budget.spend(NAME, bytes)
  }

  fillSet(set: Set<unknown>, items: readonly unknown[]): void {
    this.#budget.insertions.fillSet(NAME, set, items)
  }

  fillMap(map: Map<unknown, unknown>, keys: readonly unknown[], values: readonly unknown[]): void {
    this.#budget.insertions.fillMap(NAME, map, keys, values)
  }

  byte(): number {
    const value = this.bytes[this.at]
    if (value === undefined) this.fail(`they end after ${this.bytes.length} bytes, within a value`)
    this.at++
    return value
  }

  int8(): number {
    return (this.byte() << 24) >> 24
  }

  boolean(): boolean {
    return this.byte() === 1
  }

  /** A signed int32 whose bits were written as unsigned. */
  varint(): number {
    let byte = this.byte()
    let value = byte & 0x7f
    for (let shift = 7; byte > 127 && shift < 35; shift += 7) {
      byte = this.byte()
      value |= (byte & 0x7f) << shift
    }
    return value | 0
  }

  /** A varint for a count, which cannot be negative. */
  length(): number {
    const value = this.varint()
    if (value < 0) this.fail(`a length at ${this.at} is negative`)
    return value
  }

  zigzag(): number {
    const value = this.varint()
    return (value >>> 1) ^ -(value & 1)
  }

  /** The rest of an int whose first byte, which holds a flag, has been read. */
  flagged(first: number): number {
    let value = first & 0x3f
    if (first & 0x40) {
      const rest = this.varint()
      value |= rest << 6
      if (rest < 0 || rest >= 1 << 25) this.fail(`a length at ${this.at} is out of range`)
    }
    return value
  }

  /** A bigint only where a number would not be exact. */
  #varlong(): number | bigint {
    let low = 0
    let high = 0
    let byte = 0
    for (let shift = 0; shift < 28; shift += 7) {
      byte = this.byte()
      low |= (byte & 0x7f) << shift
      if (byte < 128) return low
    }
    for (let shift = 0; shift < 28; shift += 7) {
      byte = this.byte()
      high |= (byte & 0x7f) << shift
      if (byte < 128) break
    }
    if (byte < 128 && high < 1 << 25) return high * 0x1000_0000 + low
    const last = byte < 128 ? 0n : BigInt(this.byte()) << 56n
    return last | (BigInt(high) << 28n) | BigInt(low)
  }

  zigzagLong(): number | bigint {
    const bits = this.#varlong()
    if (typeof bits === 'number') return bits % 2 === 0 ? bits / 2 : (bits + 1) / -2
    const value = BigInt.asIntN(64, (bits >> 1n) ^ -(bits & 1n))
    return narrow(value)
  }

  /** A long whose bits were written as unsigned. */
  varlong(): number | bigint {
    const bits = this.#varlong()
    return typeof bits === 'number' ? bits : narrow(BigInt.asIntN(64, bits))
  }

  int16(): number {
    return this.bytes.readInt16LE(this.skip(2))
  }

  int32(): number {
    return this.bytes.readInt32LE(this.skip(4))
  }

  int64(): bigint {
    return this.bytes.readBigInt64LE(this.skip(8))
  }

  float(): number {
    return this.bytes.readFloatLE(this.skip(4))
  }

  double(): number {
    return this.bytes.readDoubleLE(this.skip(8))
  }

  raw(length: number): Buffer {
    const from = this.skip(length)
    return this.bytes.subarray(from, from + length)
  }

  string(): string | null {
    const first = this.byte()
    if (first < 128) return this.#ascii()
    const length = this.flagged(first) - 1
    if (length <= 0) return length < 0 ? null : ''
    if (length > this.bytes.length - this.at)
      this.fail(`a length of ${length} at ${this.at} exceeds the bytes that follow`)
    return this.#units(length)
  }

  /** Characters up to the one with the high bit. */
  #ascii(): string {
    const bytes = this.bytes
    const from = this.at - 1
    let at = this.at
    let last: number
    do {
      const byte = bytes[at++]
      if (byte === undefined) this.fail(`they end after ${bytes.length} bytes, within a value`)
      last = byte
    } while (last < 128)
    this.at = at
    return shortAscii(bytes, from, at - 1, last & 0x7f)
  }

  #units(length: number): string {
    const bytes = this.bytes
    const from = this.at
    let at = from
    const end = from + length
    while (at < end && (bytes[at] ?? 0) < 128) at++
    if (at === end) {
      this.at = end
      return bytes.toString('latin1', from, end)
    }
    // two bytes for each UTF-16 unit are at most twice the rest of the input
    const units = Buffer.allocUnsafe(length * 2)
    this.at = from
    for (let i = 0; i < length; i++) {
      let unit = this.byte()
      if (unit > 127) {
        if (unit >= 0xc0 && unit < 0xe0) unit = ((unit & 0x1f) << 6) | this.#tail()
        else if (unit >= 0xe0 && unit < 0xf0) unit = ((unit & 0x0f) << 12) | (this.#tail() << 6) | this.#tail()
        else this.fail(`byte 0x${unit.toString(16)} at ${this.at - 1} starts no character`)
      }
      units[2 * i] = unit
      units[2 * i + 1] = unit >> 8
    }
    return units.toString('utf16le')
  }

  #tail(): number {
    const byte = this.byte()
    if ((byte & 0xc0) !== 0x80) this.fail(`byte 0x${byte.toString(16)} at ${this.at - 1} continues no character`)
    return byte & 0x3f
  }
}

function narrow(value: bigint): number | bigint {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
}

const CACHE_SIZE = 1024
const cache: string[] = new Array<string>(CACHE_SIZE).fill('')

/**
 * The text of a few ASCII bytes and a last one, whose high bit marks the end. Field names repeat, so
 * that a small table of the latest texts saves most of the allocation.
 */
function shortAscii(bytes: Buffer, from: number, end: number, last: number): string {
  const length = end - from + 1
  if (length > 32) return bytes.toString('latin1', from, end) + String.fromCharCode(last)
  let hash = last
  for (let i = from; i < end; i++) hash = (hash * 31 + (bytes[i] ?? 0)) | 0
  const slot = (hash ^ (hash >>> 10) ^ (hash >>> 20)) & (CACHE_SIZE - 1)
  const known = cache[slot] ?? ''
  if (known.length === length && known.charCodeAt(length - 1) === last) {
    let i = 0
    while (i < length - 1 && known.charCodeAt(i) === bytes[from + i]) i++
    if (i === length - 1) return known
  }
  const text = bytes.toString('latin1', from, end) + String.fromCharCode(last)
  cache[slot] = text
  return text
}
