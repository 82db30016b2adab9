import { formatDecimal, parseDecimal } from '../kryo/decimal.js'

/** The longest number that Jackson accepts, which also keeps the arithmetic on numbers cheap. */
export const MAX_NUMBER_LENGTH = 1000

const LIMIT = 10n ** BigInt(MAX_NUMBER_LENGTH - 1)
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isBigInteger(value: unknown): value is bigint {
  return typeof value === 'bigint' && value < LIMIT && value > -LIMIT
}

export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value)
}

/** The text of a BigDecimal in the form that `BigDecimal.toString` has and JSON takes; undefined for any other text. */
export function decimalText(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > MAX_NUMBER_LENGTH) return undefined
  const decimal = parseDecimal(value)
  return decimal === undefined ? undefined : formatDecimal(decimal)
}
