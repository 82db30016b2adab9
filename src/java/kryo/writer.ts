const INITIAL = 8192
/** The largest buffer that is kept for the next message. */
const KEPT = 1 << 20
const SURROGATE = /[\ud800-\udfff]/

/** The primitives of Kryo's `Output`, written into one growing buffer that is used again for the next message. */
export class Writer {
  bytes: Buffer = Buffer.allocUnsafeSlow(INITIAL)
  at = 0

  need(count: number): void {
    if (this.at + count > this.bytes.length) this.#grow(count)
  }

  #grow(count: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.at + count))
    this.bytes.copy(grown, 0, 0, this.at)
    this.bytes = grown
  }

  /** The bytes written so far; the caller may keep them. */
  take(): Buffer {
    return Buffer.from(this.bytes.subarray(0, this.at))
  }

  rewind(): void {
    this.at = 0
    if (this.bytes.length > KEPT) this.bytes = Buffer.allocUnsafeSlow(INITIAL)
  }

  byte(value: number): void {
    if (this.at === this.bytes.length) this.#grow(1)
    this.bytes[this.at++] = value
  }

  /** An unsigned 32-bit int: lengths, ids, ordinals. */
  varint(value: number): void {
    this.need(5)
    let rest = value >>> 0
    while (rest > 127) {
      this.bytes[this.at++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.bytes[this.at++] = rest
  }

  /** An int32 with the sign in the lowest bit. */
  zigzag(value: number): void {
    this.varint((value << 1) ^ (value >> 31))
  }

  /** An int with a flag in the highest bit of its first byte. */
  flagged(flag: boolean, value: number): void {
    const first = (value & 0x3f) | (flag ? 0x80 : 0)
    if (value < 64) this.byte(first)
    else {
      this.byte(first | 0x40)
      this.varint(value >>> 6)
    }
  }

  /** 64 bits as unsigned: up to eight groups of 7 bits, then one byte of 8. */
  varlong(high: number, low: number): void {
    this.need(9)
    let hi = high >>> 0
    let lo = low >>> 0
    for (let i = 0; i < 8 && (hi !== 0 || lo > 127); i++) {
      this.bytes[this.at++] = (lo & 0x7f) | 0x80
      lo = ((lo >>> 7) | (hi << 25)) >>> 0
      hi >>>= 7
    }
    this.bytes[this.at++] = lo
  }

  varlongOf(value: number | bigint): void {
    if (typeof value === 'number' && value >= 0) {
      this.varlong(Math.floor(value / 0x1_0000_0000), value % 0x1_0000_0000)
    } else {
      const bits = BigInt.asUintN(64, BigInt(value))
      this.varlong(Number(bits >> 32n), Number(bits & 0xffff_ffffn))
    }
  }

  zigzagLong(value: number | bigint): void {
    if (typeof value === 'number' && Math.abs(value) < 2 ** 52) {
      this.varlongOf(value < 0 ? value * -2 - 1 : value * 2)
    } else {
      const exact = BigInt(value)
      this.varlongOf(BigInt.asUintN(64, (exact << 1n) ^ (exact >> 63n)))
    }
  }

  /** Two bytes, lowest first, as all fixed sizes. */
  int16(value: number): void {
    this.need(2)
    this.bytes[this.at++] = value
    this.bytes[this.at++] = value >> 8
  }

  int32(value: number): void {
    this.need(4)
    this.at = this.bytes.writeInt32LE(value, this.at)
  }

  int64(value: bigint): void {
    this.need(8)
    this.at = this.bytes.writeBigInt64LE(value, this.at)
  }

  float(value: number): void {
    this.need(4)
    this.at = this.bytes.writeFloatLE(value, this.at)
  }

  double(value: number): void {
    this.need(8)
    this.at = this.bytes.writeDoubleLE(value, this.at)
  }

  raw(value: Uint8Array): void {
    this.need(value.length)
    this.bytes.set(value, this.at)
    this.at += value.length
  }

  /** Kryo's three forms: ASCII of 2 to 32 characters ends in a high bit; other ASCII and the rest have a length. */
  string(value: string): void {
    const length = value.length
    if (length > 1 && length <= 32) {
      this.need(length)
      const bytes = this.bytes
      let at = this.at
      let all = 0
      for (let i = 0; i < length; i++) {
        const unit = value.charCodeAt(i)
        all |= unit
        bytes[at++] = unit
      }
      if (all < 128) {
        bytes[at - 1] = (bytes[at - 1] ?? 0) | 0x80
        this.at = at
        return
      }
    }
    this.flagged(true, length + 1)
    if (length === 0) return
    this.need(length * 3)
    // where there are no pairs of surrogates, each UTF-16 unit coded alone is plain UTF-8
    if (SURROGATE.test(value)) this.#units(value)
    else this.at += this.bytes.write(value, this.at, 'utf8')
  }

  #units(value: string): void {
    const bytes = this.bytes
    let at = this.at
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i)
      if (unit < 0x80) bytes[at++] = unit
      else {
        if (unit < 0x800) bytes[at++] = 0xc0 | (unit >> 6)
        else {
          bytes[at++] = 0xe0 | (unit >> 12)
          bytes[at++] = 0x80 | ((unit >> 6) & 0x3f)
        }
        bytes[at++] = 0x80 | (unit & 0x3f)
      }
    }
    this.at = at
  }

  /** A class name: with a high bit on its last character however long it is. */
  className(name: string): void {
    if (name.length > 1 && /^[\0-\x7f]*$/.test(name)) {
      this.need(name.length)
      this.at += this.bytes.write(name, this.at, 'latin1')
      this.bytes[this.at - 1] = (this.bytes[this.at - 1] ?? 0) | 0x80
    } else this.string(name)
  }
}
