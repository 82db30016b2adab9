import type { BytesOut } from './bytes-out.js'
import type { Fail } from './format.js'

const LONE_SURROGATE = /\p{Surrogate}/u

/** Up to this length a loop over the characters is faster than calling the platform. */
const SHORT_TEXT = 60

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= 0x80) return false
  return true
}

/** Text with its length before it, as MessagePack and CBOR have it; `head` writes the length. */
export function writeText(out: BytesOut, value: string, head: (size: number) => void, fail: Fail): void {
  if (value.length <= SHORT_TEXT && isAscii(value)) {
    head(value.length)
    out.ascii(value)
    return
  }
  const size = Buffer.byteLength(value)
  if (size !== value.length && LONE_SURROGATE.test(value)) fail('it holds a lone surrogate')
  head(size)
  out.text(value, size)
}
