import { isUtf8 } from 'node:buffer'
import { InvalidArgumentError, inWords } from '../errors.js'

/** The characters in the order of their codes, so that texts sort as their bytes do. */
const ALPHABET = '-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'
const ID_BYTES = 8
const MAX_ID_BYTES = 512
const MAX_BATCH_BYTES = 255
/** The longest suffix of a dead letter whose id is taken. */
const MAX_SUFFIX_BYTES = 64

/** A URL-safe text of 11 characters for 8 bytes. */
export function idOf(bytes: Uint8Array): string {
  let id = ''
  for (let at = 0; at < 9; at += 3) {
    const three = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
    for (let shift = 18; shift >= 0; shift -= 6) id += ALPHABET.charAt((three >> shift) & 63)
  }
  return id.slice(0, 11)
}

/** An id that no other message has. */
export function drawnId(ids: { next(bytes: number): Uint8Array }): string {
  return idOf(ids.next(ID_BYTES))
}

/** The id of a message that is added. */
export function assertId(what: string, id: unknown): string {
  return assertText(what, id, MAX_ID_BYTES)
}

/** The name of a batch. */
export function assertBatchName(what: string, name: unknown): string {
  return assertText(what, name, MAX_BATCH_BYTES)
}

/** The id of a message that may be there. */
export function assertKnownId(what: string, id: unknown): string {
  return assertText(what, id, MAX_ID_BYTES + MAX_SUFFIX_BYTES)
}

/** Whether `assertKnownId` takes the text of these bytes: other programs can write others. */
export function isKnownId(id: Uint8Array): boolean {
  return id.length > 0 && id.length <= MAX_ID_BYTES + MAX_SUFFIX_BYTES && isUtf8(id)
}

function assertText(what: string, id: unknown, most: number): string {
  const expected = `a text of 1 to ${most} bytes without lone surrogates`
  if (typeof id !== 'string' || id === '' || !id.isWellFormed()) throw new InvalidArgumentError(what, expected, id)
  const bytes = Buffer.byteLength(id)
  if (bytes > most) throw new InvalidArgumentError(what, expected, inWords(`${bytes} bytes`))
  return id
}
