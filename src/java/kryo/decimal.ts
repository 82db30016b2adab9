/** The most bytes of a number, more than any real one has; the decimal text of longer ones would take long to compute. */
export const MAX_MAGNITUDE = 4096

/** Two's complement, highest byte first, in as few bytes as hold the sign: Java's `BigInteger.toByteArray`. */
export function toBytes(value: bigint): Buffer {
  const magnitude = value < 0n ? -value - 1n : value
  const hex = magnitude.toString(16)
  const size = Math.floor((hex.length * 4 - leadingZeros(hex)) / 8) + 1
  const bits = BigInt.asUintN(size * 8, value).toString(16)
  return Buffer.from(bits.padStart(size * 2, '0'), 'hex')
}

function leadingZeros(hex: string): number {
  return Math.clz32(parseInt(hex.charAt(0), 16)) - 28
}

export function fromBytes(bytes: Buffer): bigint {
  if (bytes.length === 0) return 0n
  return BigInt.asIntN(bytes.length * 8, BigInt(`0x${bytes.toString('hex')}`))
}

export interface Decimal {
  readonly unscaled: bigint
  readonly scale: number
}

/** Takes the text that Java's `new BigDecimal(String)` takes; undefined for any other. */
export function parseDecimal(text: string): Decimal | undefined {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,10}))?$/.exec(text)
  if (match === null) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  if (whole === '' && fraction === '') return undefined
  const digits = BigInt(whole + fraction)
  const scale = fraction.length - Number(exponent)
  if (scale !== (scale | 0)) return undefined
  return { unscaled: sign === '-' ? -digits : digits, scale }
}

/** The text of Java's `BigDecimal.toString`, from which the same unscaled value and scale can be read again. */
export function formatDecimal({ unscaled, scale }: Decimal): string {
  const negative = unscaled < 0n
  const digits = (negative ? -unscaled : unscaled).toString()
  const sign = negative ? '-' : ''
  const exponent = digits.length - 1 - scale
  if (scale === 0) return sign + digits
  if (scale > 0 && exponent >= -6) {
    const padded = digits.padStart(scale + 1, '0')
    return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`
  }
  const mantissa = digits.length > 1 ? `${digits.charAt(0)}.${digits.slice(1)}` : digits
  if (exponent === 0) return sign + mantissa
  return `${sign}${mantissa}E${exponent > 0 ? '+' : ''}${exponent}`
}
