import { BytesOut } from './bytes-out.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Up to this length writing character by character is faster than calling the platform. */
const SHORT_TEXT = 100

/** The characters that Jackson escapes: quotes, backslashes, control characters and, in bytes, both halves of a surrogate pair. */
// eslint-disable-next-line no-control-regex -- it searches for control characters
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/

/** The letter after the backslash, by character; 0 for those that are written as \uXXXX. */
const LETTERS = new Uint8Array(0x60)
for (const [char, letter] of ['""', '\\\\', '\bb', '\ff', '\nn', '\rr', '\tt']) {
  LETTERS[(char as string).charCodeAt(0)] = (letter as string).charCodeAt(0)
}

/** The bytes of JSON, with Jackson's escapes. */
export class JsonOut extends BytesOut {
  quoted(text: string): void {
    if (text.length > SHORT_TEXT && !ESCAPED.test(text)) {
      this.byte(QUOTE)
      this.text(text)
      this.byte(QUOTE)
      return
    }
    this.room(6 * text.length + 2)
    const bytes = this.bytes
    let at = this.length
    bytes[at++] = QUOTE
    for (let i = 0; i < text.length; i++) {
      const char = text.charCodeAt(i)
      if (char >= 0x20 && char < 0x80 && char !== QUOTE && char !== BACKSLASH) bytes[at++] = char
      else if (char < 0x80 || (char >= 0xd800 && char <= 0xdfff)) at = escape(bytes, at, char)
      else {
        if (char < 0x800) bytes[at++] = 0xc0 | (char >> 6)
        else {
          bytes[at++] = 0xe0 | (char >> 12)
          bytes[at++] = 0x80 | ((char >> 6) & 0x3f)
        }
        bytes[at++] = 0x80 | (char & 0x3f)
      }
    }
    bytes[at++] = QUOTE
    this.length = at
  }
}

function escape(bytes: Buffer, at: number, char: number): number {
  bytes[at++] = BACKSLASH
  const letter = LETTERS[char] ?? 0
  if (letter !== 0) {
    bytes[at++] = letter
    return at
  }
  const hex = char.toString(16).toUpperCase().padStart(4, '0')
  return at + bytes.write(`u${hex}`, at, 'latin1')
}
