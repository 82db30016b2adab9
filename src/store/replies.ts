import { InternalError, describe } from '../errors.js'

/** Decoders of raw replies. Bulk strings arrive as `Buffer`; a shape that a script cannot return is a fault, not data. */

export function asInteger(reply: unknown): number {
  if (typeof reply === 'number' && Number.isSafeInteger(reply)) return reply
  // of an ioredis client with `stringNumbers`; other texts arrive as `Buffer`
  if (typeof reply === 'string' && /^-?\d{1,15}$/.test(reply)) return Number(reply)
  throw unexpected('an integer', reply)
}

/** An integer that is sent as text because it can be large: the client's parser rounds integers just below 2^53. */
export function asLargeInteger(reply: unknown): number {
  return asInteger(typeof reply === 'number' ? reply : asNumber(reply))
}

export function asLargeIntegerOrNull(reply: unknown): number | null {
  return reply === null ? null : asLargeInteger(reply)
}

/** True for 1, false for any other number. */
export function asFlag(reply: unknown): boolean {
  return asInteger(reply) === 1
}

export function asBytes(reply: unknown): Buffer {
  if (Buffer.isBuffer(reply)) return reply
  throw unexpected('bytes', reply)
}

export function asBytesOrNull(reply: unknown): Buffer | null {
  return reply === null ? null : asBytes(reply)
}

export function asText(reply: unknown): string {
  return typeof reply === 'string' ? reply : asBytes(reply).toString()
}

const INFINITE = new Map([
  ['inf', Infinity],
  ['+inf', Infinity],
  ['-inf', -Infinity],
])

/** A number that was sent as text, such as a score, which can be infinite. */
export function asNumber(reply: unknown): number {
  const text = asText(reply)
  const number = INFINITE.get(text) ?? Number(text)
  if (text === '' || Number.isNaN(number)) throw unexpected('a number', text)
  return number
}

/** The time of the server's clock, which is a date: times are computed with it. */
export function asNow(reply: unknown): number {
  const now = asNumber(reply)
  if (Number.isNaN(new Date(now).getTime())) throw unexpected('a time', now)
  return now
}

/** A time in milliseconds, or `null` for an empty text. */
export function asTime(reply: unknown): number | null {
  return asText(reply) === '' ? null : asNumber(reply)
}

/** The largest part of an id of a stream. */
const MOST_OF_ID = String(2n ** 64n - 1n)

/** The id of an entry of a stream. The client keeps it as its place in the stream, so a wrong one would make each later read fail. */
export function asStreamId(reply: unknown): string {
  const text = asText(reply)
  const isId = /^\d{1,20}-\d{1,20}$/.test(text) && text.split('-').every(isPartOfId)
  if (!isId) throw unexpected('an id', text)
  return text
}

function isPartOfId(digits: string): boolean {
  return digits.length < MOST_OF_ID.length || digits <= MOST_OF_ID
}

export function asArray(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply as unknown[]
  throw unexpected('an array', reply)
}

export function asBytesArray(reply: unknown): Buffer[] {
  return asArray(reply).map(asBytes)
}

function unexpected(expected: string, reply: unknown): InternalError {
  return new InternalError('unexpected-reply', `expected ${expected}, the server replied ${describe(reply)}`)
}
