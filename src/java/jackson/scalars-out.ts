import { describe } from '../../errors.js'
import { MAX_INT64, MIN_INT64 } from '../scalars.js'
import type { Format } from './format.js'
import { decimalText, isBigInteger, isUuid } from './java-numbers.js'
import type { Position } from './position.js'

/** Writes the scalar types that Java marks with their class. */
export class ScalarWriter {
  readonly #format: Format
  readonly #position: Position
  /** Whether type information is on the wire. */
  readonly #wrapped: boolean

  constructor(format: Format, position: Position, wrapped: boolean) {
    this.#format = format
    this.#position = position
    this.#wrapped = wrapped
  }

  openPair(className: string): void {
    this.#position.claim(2)
    this.#format.openPair(className)
  }

  /** Writes a number: integers beyond 32 bits as Java Longs, and numbers that are not safe integers as doubles. */
  number(value: number, wrapLong: boolean): void {
    if ((value | 0) === value && (value !== 0 || 1 / value > 0)) this.#format.int(value)
    else if (Number.isSafeInteger(value) && value !== 0) this.long(value, wrapLong)
    else this.#format.double(value, false)
  }

  long(value: unknown, wrap: boolean): void {
    if (wrap) this.openPair('java.lang.Long')
    if (typeof value === 'bigint') {
      if (value < MIN_INT64 || value > MAX_INT64) {
        this.#fail(`${describe(value)} has more than 64 bits; a BigInteger is java.bigInteger(value)`)
      }
      this.#format.bigint(value)
    } else if (Number.isSafeInteger(value)) this.#format.int(value as number)
    else this.#fail(`expected a safe integer or a bigint of 64 bits, got ${describe(value)}`)
    if (wrap) this.#format.closePair()
  }

  date(value: unknown): void {
    if (!(value instanceof Date) || Number.isNaN(value.getTime())) this.#fail(`expected a Date, got ${describe(value)}`)
    if (this.#wrapped) this.openPair('java.util.Date')
    this.#format.int(value.getTime())
    if (this.#wrapped) this.#format.closePair()
  }

  uuid(value: unknown, wrap: boolean): void {
    if (!isUuid(value)) this.#fail(`expected the 36 characters of a UUID, got ${describe(value)}`)
    if (wrap && this.#wrapped) this.openPair('java.util.UUID')
    this.#format.text(value.toLowerCase())
    if (wrap && this.#wrapped) this.#format.closePair()
  }

  bigDecimal(value: unknown): void {
    const text = decimalText(value)
    if (text === undefined) this.#fail(`expected decimal text of at most 1000 characters, got ${describe(value)}`)
    if (this.#wrapped) this.openPair('java.math.BigDecimal')
    this.#format.decimal(text)
    if (this.#wrapped) this.#format.closePair()
  }

  bigInteger(value: unknown): void {
    const big = Number.isSafeInteger(value) ? BigInt(value as number) : value
    if (!isBigInteger(big)) this.#fail(`expected a bigint of fewer than 1000 digits, got ${typeof big}`)
    if (this.#wrapped) this.openPair('java.math.BigInteger')
    this.#format.bigInteger(big)
    if (this.#wrapped) this.#format.closePair()
  }

  #fail(message: string): never {
    return this.#position.fail(message)
  }
}
