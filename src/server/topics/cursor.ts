import { TopicError } from './errors.js'

/** Where a listing goes on, as a text that callers hand back. */
export function cursorText(place: readonly (number | string)[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

/** @throws TopicError ERR_CURSOR */
export function readCursor(text: string, kinds: readonly ('number' | 'string')[]): (number | string)[] {
  try {
    const place: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    const fits = (each: unknown, at: number): boolean =>
      typeof each === kinds[at] && (typeof each !== 'number' || (Number.isInteger(each) && each >= 0))
    if (Array.isArray(place) && place.length === kinds.length && place.every(fits)) return place as (number | string)[]
  } catch {
    // no JSON
  }
  throw new TopicError('ERR_CURSOR', 'it is none that this listing has answered')
}
