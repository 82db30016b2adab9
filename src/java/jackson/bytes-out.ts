const FIRST = 4096
const MAX_KEPT = 1024 * 1024

/** Bytes that grow as they are written. All numbers are big endian. */
export class BytesOut {
  protected bytes = Buffer.allocUnsafeSlow(FIRST)
  protected length = 0

  /** A copy of the written bytes. */
  copy(): Buffer {
    return Buffer.from(this.bytes.subarray(0, this.length))
  }

  /** Clears the buffer for the next value. */
  reset(): void {
    this.length = 0
    if (this.bytes.length > MAX_KEPT) this.bytes = Buffer.allocUnsafeSlow(FIRST)
  }

  byte(value: number): void {
    this.room(1)
    this.bytes[this.length++] = value
  }

  /** A tag byte and a number of 1, 2 or 4 bytes without sign. */
  tagged(tag: number, value: number, size: 1 | 2 | 4): void {
    this.room(5)
    this.bytes[this.length++] = tag
    this.length = this.bytes.writeUIntBE(value, this.length, size)
  }

  tagged64(tag: number, value: bigint): void {
    this.room(9)
    this.bytes[this.length++] = tag
    this.length = this.bytes.writeBigUInt64BE(BigInt.asUintN(64, value), this.length)
  }

  float(tag: number, value: number): void {
    this.room(5)
    this.bytes[this.length++] = tag
    this.length = this.bytes.writeFloatBE(value, this.length)
  }

  double(tag: number, value: number): void {
    this.room(9)
    this.bytes[this.length++] = tag
    this.length = this.bytes.writeDoubleBE(value, this.length)
  }

  raw(bytes: Uint8Array): void {
    this.room(bytes.length)
    this.bytes.set(bytes, this.length)
    this.length += bytes.length
  }

  /** Text of ASCII characters only. */
  ascii(text: string): void {
    const length = text.length
    this.room(length)
    const bytes = this.bytes
    let at = this.length
    for (let i = 0; i < length; i++) bytes[at++] = text.charCodeAt(i)
    this.length = at
  }

  /** `size` is the number of bytes that the text has in UTF-8. */
  text(text: string, size = Buffer.byteLength(text)): void {
    this.room(size)
    this.length += this.bytes.write(text, this.length, size)
  }

  protected room(size: number): void {
    const needed = this.length + size
    if (needed <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.bytes.length))
    larger.set(this.bytes.subarray(0, this.length))
    this.bytes = larger
  }
}
