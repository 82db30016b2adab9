import { DecodeError, toError } from '../errors.js'
import { MAX_ELEMENTS, closeBudget, openBudget } from './budget.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** `JSON.parse`, with an error that does not quote the text. */
export function parseJsonText(codec: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (thrown) {
    const message = toError(thrown).message
    const [, position] = /at position (\d+)/.exec(message) ?? []
    const ended = message.startsWith('Unexpected end') ? 'unexpected end' : 'unexpected text'
    throw new DecodeError(
      codec,
      `they are not JSON: ${position === undefined ? ended : `unexpected text at position ${position}`}`,
    )
  }
}

/** Counts brackets outside strings, in one pass over the bytes, before anything is built. */
export function assertJsonDepth(codec: string, bytes: Buffer, maxDepth: number): void {
  let depth = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) {
      while (++i < bytes.length && bytes[i] !== QUOTE) if (bytes[i] === BACKSLASH) i++
    } else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > maxDepth) throw new DecodeError(codec, `they nest deeper than ${maxDepth} levels`)
    } else if (byte === 0x5d || byte === 0x7d) depth--
  }
}

/**
 * Refuses a JSON text with more brackets, commas, colons and strings than `most`, in one pass over the bytes that stops at the
 * limit: for a few megabytes of these `JSON.parse` takes seconds and hundreds of megabytes.
 */
export function assertFewJsonElements(codec: string, bytes: Buffer, most: number): void {
  let count = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    const isString = byte === QUOTE
    if (isString) {
      while (++i < bytes.length && bytes[i] !== QUOTE) if (bytes[i] === BACKSLASH) i++
    }
    const counts = isString || byte === 0x2c || byte === 0x3a || byte === 0x5b || byte === 0x7b
    if (counts && ++count > most) throw new DecodeError(codec, `they have more than ${most} elements`)
  }
}

/** Claims the elements of a JSON text. Each takes at least a byte, so short texts need not be counted. */
export function claimJsonElements(codec: string, bytes: Buffer): void {
  if (bytes.length <= MAX_ELEMENTS) return
  let count = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) {
      while (++i < bytes.length && bytes[i] !== QUOTE) if (bytes[i] === BACKSLASH) i++
    } else if (byte === 0x2c || byte === 0x3a || byte === 0x5b || byte === 0x7b) count++
  }
  const budget = openBudget()
  try {
    budget.claim(codec, count)
  } finally {
    closeBudget()
  }
}
