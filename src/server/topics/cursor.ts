import { isUtf8 } from 'node:buffer'
import { TopicError } from './errors.js'

/** What stands at a place of a cursor; `most`: a number that is not above it. */
export type CursorPart = 'number' | 'string' | { readonly most: number }

/** How many bytes a place has at most, such as the name of a topic and the id of a message. */
const MOST_BYTES = 1_000

/** Where a listing goes on, as a text that callers hand back: numbers, and texts behind the number of their bytes. */
export function cursorText(place: readonly (number | string)[]): string {
  const parts = place.map((part) => (typeof part === 'number' ? `${part};` : `${Buffer.byteLength(part)}:${part}`))
  return Buffer.from(parts.join('')).toString('base64url')
}

/**
 * The place of a cursor that this listing has answered, or could have answered: its numbers are whole, and not below 0.
 *
 * @throws TopicError ERR_CURSOR
 */
export function readCursor(text: string, parts: readonly CursorPart[], mostBytes = MOST_BYTES): (number | string)[] {
  const bytes = Buffer.from(text.slice(0, 2 * mostBytes), 'base64url')
  // what is no base64url is passed over when it is read
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
  return new TopicError('ERR_CURSOR', 'it is none that this listing has answered')
}
