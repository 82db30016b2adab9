import { DecodeError, describe } from '../../errors.js'
import { BYTES_OF, type Budget } from '../../codecs/budget.js'
import { JavaValue } from '../kryo/java-values.js'
import { MAX_INT64, MIN_INT64, numberIfSafe } from '../scalars.js'
import { decimalText, isBigInteger, isUuid } from './java-numbers.js'
import { NumberText, type Node } from './nodes.js'
import type { Plan } from './plan.js'

const DOUBLE = 'java.lang.Double'
const INTEGER = /^-?\d+$/
/** JavaScript's range of dates: Java's is larger. */
const MAX_DATE = 8.64e15
/** Base64 text, whose length is checked apart: a pattern of groups of four would need memory for each group. */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Thrown if `JSON.parse` may have changed a number, so that the slower parser has to read the text. */
export const INEXACT = new Error('a number may have been changed')

/** Checks and converts the leaves that a parser found. */
export class ScalarReader {
  readonly #plan: Plan
  readonly #budget: Budget
  /** The declared field that is being read, for messages. */
  where: string | undefined

  /** Whether the nodes come from `JSON.parse`, so that large numbers and BigDecimals cannot be trusted. */
  readonly #rounded: boolean

  constructor(plan: Plan, budget: Budget, rounded = false) {
    this.#plan = plan
    this.#budget = budget
    this.#rounded = rounded
  }

  fail(message: string): never {
    throw new DecodeError(this.#plan.codec, this.where === undefined ? message : `in ${this.where}: ${message}`)
  }

  /** Claims the memory for a few bytes of the message that create a large value. */
  spend(bytes: number): void {
    this.#budget.spend(this.#plan.codec, bytes)
  }

  setOf(items: readonly unknown[]): Set<unknown> {
    const set = new Set()
    this.#budget.insertions.fillSet(this.#plan.codec, set, items)
    return set
  }

  /** A leaf without a declared type. An integer of more than 64 bits is a BigInteger, as it is for Java. */
  scalar(node: Node): unknown {
    if (typeof node === 'number') return this.#trusted(node)
    if (node instanceof NumberText && !INTEGER.test(node.text)) {
      const double = this.#finite(node.text)
      // without its class it would be written as an Integer
      return this.#plan.exact && Number.isSafeInteger(double) ? new JavaValue(DOUBLE, double) : double
    }
    const value = this.#integer(node)
    if (typeof value !== 'bigint') return value ?? node
    return value >= MIN_INT64 && value <= MAX_INT64 ? value : new JavaValue('java.math.BigInteger', value)
  }

  long(node: Node): number | bigint {
    const value = this.#integer(node)
    if (value === undefined) this.fail(`expected a whole number of 64 bits, got ${describeNode(node)}`)
    if (typeof value === 'bigint' && (value < MIN_INT64 || value > MAX_INT64))
      this.fail(`${value} has more than 64 bits`)
    return this.#plan.bigintLongs ? BigInt(value) : value
  }

  int(node: Node, min: number, max: number): number {
    const value = this.#integer(node)
    if (typeof value !== 'number' || value < min || value > max) {
      this.fail(`expected a whole number from ${min} to ${max}, got ${describeNode(node)}`)
    }
    return value
  }

  double(node: Node): number {
    if (typeof node === 'number') return this.#trusted(node)
    if (typeof node === 'bigint') return Number(node)
    if (node instanceof JavaValue && node.type === DOUBLE) return node.value as number
    if (node instanceof NumberText) return this.#finite(node.text)
    if (node === 'NaN' || node === 'Infinity' || node === '-Infinity') return Number(node)
    return this.fail(`expected a number, got ${describeNode(node)}`)
  }

  string(node: Node): string {
    return typeof node === 'string' ? node : this.fail(`expected a string, got ${describeNode(node)}`)
  }

  boolean(node: Node): boolean {
    return typeof node === 'boolean' ? node : this.fail(`expected true or false, got ${describeNode(node)}`)
  }

  date(node: Node): Date {
    const time = this.#integer(node)
    if (typeof time !== 'number' || Math.abs(time) > MAX_DATE) {
      this.fail(`expected the milliseconds of a Date, got ${describeNode(node)}`)
    }
    this.spend(BYTES_OF.date)
    return new Date(time)
  }

  /** A UUID, which CBOR may have as 16 bytes. */
  uuid(node: Node): string {
    let text = node
    if (Buffer.isBuffer(node) && node.length === 16) {
      text = node.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5')
    }
    return isUuid(text) ? text.toLowerCase() : this.fail(`expected a UUID, got ${describeNode(node)}`)
  }

  decimal(node: Node): string {
    if (this.#rounded) throw INEXACT
    const number = numberOf(node)
    let text: string | undefined
    if (typeof number === 'number' || typeof number === 'bigint') text = decimalText(String(number))
    // a bare string is not a number; the text of a JavaValue or NumberText is one
    else if (typeof number === 'string' && typeof node !== 'string') text = decimalText(number)
    return text ?? this.fail(`expected a number, got ${describeNode(node)}`)
  }

  bigInteger(node: Node): bigint {
    const number = numberOf(node)
    let value: unknown
    if (typeof number === 'number') value = Number.isSafeInteger(this.#trusted(number)) ? BigInt(number) : undefined
    else
      value = typeof number === 'string' && typeof node !== 'string' && INTEGER.test(number) ? BigInt(number) : number
    return isBigInteger(value) ? value : this.fail(`expected a whole number, got ${describeNode(node)}`)
  }

  /** Bytes, which JSON has in base64. */
  bytes(node: Node): Buffer {
    if (Buffer.isBuffer(node)) return node
    if (typeof node !== 'string' || node.length % 4 !== 0 || !BASE64.test(node))
      this.fail(`expected bytes in base64, got ${describeNode(node)}`)
    this.spend(BYTES_OF.buffer + node.length)
    return Buffer.from(node, 'base64')
  }

  properties(node: Node): Record<string, Node> {
    if (typeof node !== 'object' || node === null || Object.getPrototypeOf(node) !== Object.prototype) {
      this.fail(`expected an object, got ${describeNode(node)}`)
    }
    return node as Record<string, Node>
  }

  #trusted(node: number): number {
    if (this.#rounded && (node > Number.MAX_SAFE_INTEGER || node < Number.MIN_SAFE_INTEGER)) throw INEXACT
    return node
  }

  #integer(node: Node): number | bigint | undefined {
    if (typeof node === 'number') return Number.isSafeInteger(this.#trusted(node)) ? node : undefined
    if (typeof node === 'bigint') return numberIfSafe(node)
    if (node instanceof NumberText && INTEGER.test(node.text)) return numberIfSafe(BigInt(node.text))
    return undefined
  }

  #finite(text: string): number {
    const value = Number(text)
    return Number.isFinite(value) ? value : this.fail(`${text.slice(0, 40)} is beyond the range of a double`)
  }
}

/** The number of a node, or its text. */
function numberOf(node: Node): unknown {
  if (node instanceof NumberText) return node.text
  return node instanceof JavaValue ? node.value : node
}

function describeNode(node: Node): string {
  return node instanceof NumberText ? node.text.slice(0, 40) : describe(node)
}
