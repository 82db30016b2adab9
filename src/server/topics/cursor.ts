import { isUtf8 } from 'node:buffer'
import { TopicError } from './errors.js'

/** The kind of a part of a cursor; `most`: a number of at most that. */
export type CursorPart = 'number' | 'string' | { readonly most: number }

/** The most bytes of a cursor's content, such as the name of a topic and the id of a message. */
const MOST_BYTES = 1_000

/** Encodes where a listing continues as a text that callers send back: numbers, and strings after their length in bytes. */
export function cursorText(place: readonly (number | string)[]): string {
  const parts = place.map((part) => (typeof part === 'number' ? `${part};` : `${Buffer.byteLength(part)}:${part}`))
  return Buffer.from(parts.join('')).toString('base64url')
}

/**
 * Decodes a cursor that this listing has returned, or could have returned: its numbers are whole and at least 0.
 *
 * @throws TopicError ERR_CURSOR
 */
export function readCursor(text: string, parts: readonly CursorPart[], mostBytes = MOST_BYTES): (number | string)[] {
  const bytes = Buffer.from(text.slice(0, 2 * mostBytes), 'base64url')
  // the decoder skips characters that are not base64url
  if (bytes.length > mostBytes || bytes.toString('base64url') !== text || !isUtf8(bytes)) throw notOurs()
  const place: (number | string)[] = []
  let at = 0
  for (const part of parts) {
    const [head = '', digits = ''] = /^(\d{1,16})[;:]/.exec(bytes.toString('latin1', at, at + 17)) ?? []
    const number = Number(digits)
    if (!Number.isSafeInteger(number) || `${number}` !== digits || head.endsWith(':') !== (part === 'string'))
      throw notOurs()
    at += head.length
    if (part === 'string') {
      if (at + number > bytes.length) throw notOurs()
      const given = bytes.subarray(at, at + number)
      if (!isUtf8(given)) throw notOurs()
      place.push(given.toString())
      at += number
    } else {
      if (typeof part === 'object' && number > part.most) throw notOurs()
      place.push(number)
    }
  }
  if (at !== bytes.length) throw notOurs()
  return place
}

function notOurs(): TopicError {
  return new TopicError('ERR_CURSOR', 'this listing did not return this cursor')
}
