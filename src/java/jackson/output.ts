import { EncodeError, describe } from '../../errors.js'
import { MAX_ELEMENTS } from '../../codecs/budget.js'
import { MAX_DEPTH } from '../../codecs/codec.js'
import { formatPath } from '../../codecs/encodable.js'
import { MAX_INT64, MIN_INT64 } from '../scalars.js'
import { decimalText, isBigInteger, isUuid } from './java-numbers.js'
import type { Plan } from './plan.js'

/**
 * What Jackson's generators offer, for one format, and the scalar types that Java marks with their class. `item` and `key`
 * come before each item or property.
 */
export abstract class Output {
  protected readonly plan: Plan
  /** Whether type information is on the wire. */
  protected readonly wrapped: boolean
  /** Whether the format needs to know how many properties follow. */
  protected readonly counts: boolean = false
  /** Whether bytes have a form of their own, which Java reads as `byte[]` without type information. */
  protected readonly nativeBytes: boolean = false
  /** The keys on the way to the value being written; only as many as the depth says are valid. */
  readonly #path: (string | number)[] = []
  #depth = 0
  #elements = 0

  constructor(plan: Plan) {
    this.plan = plan
    this.wrapped = plan.wrapped
  }

  protected abstract nil(): void
  protected abstract text(value: string): void
  protected abstract bool(value: boolean): void
  /** A safe integer. */
  protected abstract int(value: number): void
  protected abstract bigint(value: bigint): void
  protected abstract decimal(text: string): void
  /** With `declared` the reader expects a double, so that it may be NaN in every format. */
  protected abstract double(value: number, declared: boolean): void
  protected abstract float(value: number): void
  protected abstract bytes(value: Uint8Array): void
  /** Begins a pair of a class name and what follows. */
  protected abstract openPair(className: string): void
  protected abstract closePair(): void
  /** `typed` when the array is in a pair; Jackson's CBOR writes such an array differently. */
  protected abstract openArray(count: number, typed: boolean): void
  protected abstract item(index: number): void
  protected abstract closeArray(typed: boolean): void
  /** `className` becomes the first property; `count` others follow. */
  protected abstract openObject(className: string | undefined, count: number): void
  protected abstract key(key: string, first: boolean): void
  protected abstract closeObject(): void

  /** The number of a BigInteger; of any size, where the format has such. */
  protected bigIntegerOf(value: bigint): void {
    this.bigint(value)
  }

  protected fail(message: string): never {
    throw new EncodeError(this.plan.codec, formatPath(this.#path.slice(0, this.#depth)), message)
  }

  /** Called for every array and object before its content. */
  protected nest(): void {
    if (this.#depth < MAX_DEPTH) return
    this.#depth = 8
    this.fail(`it nests deeper than ${MAX_DEPTH} levels or contains itself`)
  }

  /** Counts elements as they stand on the wire, where the class of a value is two more. */
  protected claim(count: number): void {
    this.#elements += Math.max(1, count)
    if (this.#elements > MAX_ELEMENTS) this.fail(`the value has more than ${MAX_ELEMENTS} elements`)
  }

  protected pair(className: string): void {
    this.claim(2)
    this.openPair(className)
  }

  protected get lastKey(): string | number {
    return this.#path[this.#depth - 1] ?? ''
  }

  protected get atRoot(): boolean {
    return this.#depth === 0
  }

  protected enter(key: string | number): void {
    this.#path[this.#depth++] = key
  }

  protected leave(): void {
    this.#depth--
  }

  protected reset(): void {
    this.#depth = 0
    this.#elements = 0
  }

  /** Integers beyond 32 bits are Java Longs; what is no safe integer is a double. */
  protected number(value: number, wrapLong: boolean): void {
    if ((value | 0) === value && (value !== 0 || 1 / value > 0)) this.int(value)
    else if (Number.isSafeInteger(value) && value !== 0) this.long(value, wrapLong)
    else this.double(value, false)
  }

  protected long(value: unknown, wrap: boolean): void {
    if (wrap) this.pair('java.lang.Long')
    if (typeof value === 'bigint') {
      if (value < MIN_INT64 || value > MAX_INT64) {
        this.fail(`${describe(value)} has more than 64 bits; a BigInteger is java.bigInteger(value)`)
      }
      this.bigint(value)
    } else if (Number.isSafeInteger(value)) this.int(value as number)
    else this.fail(`expected a safe integer or a bigint of 64 bits, got ${describe(value)}`)
    if (wrap) this.closePair()
  }

  protected date(value: unknown): void {
    if (!(value instanceof Date) || Number.isNaN(value.getTime())) this.fail(`expected a Date, got ${describe(value)}`)
    if (this.wrapped) this.pair('java.util.Date')
    this.int(value.getTime())
    if (this.wrapped) this.closePair()
  }

  protected uuid(value: unknown, wrap: boolean): void {
    if (!isUuid(value)) this.fail(`expected the 36 characters of a UUID, got ${describe(value)}`)
    if (wrap && this.wrapped) this.pair('java.util.UUID')
    this.text(value.toLowerCase())
    if (wrap && this.wrapped) this.closePair()
  }

  protected bigDecimal(value: unknown): void {
    const text = decimalText(value)
    if (text === undefined) this.fail(`expected decimal text of at most 1000 characters, got ${describe(value)}`)
    if (this.wrapped) this.pair('java.math.BigDecimal')
    this.decimal(text)
    if (this.wrapped) this.closePair()
  }

  protected bigInteger(value: unknown): void {
    const big = Number.isSafeInteger(value) ? BigInt(value as number) : value
    if (!isBigInteger(big)) this.fail(`expected a bigint of fewer than 1000 digits, got ${typeof big}`)
    if (this.wrapped) this.pair('java.math.BigInteger')
    this.bigIntegerOf(big)
    if (this.wrapped) this.closePair()
  }
}
