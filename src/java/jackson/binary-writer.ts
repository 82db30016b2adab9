import { BytesOut } from './bytes-out.js'
import { Writer } from './writer.js'

const LONE_SURROGATE = /\p{Surrogate}/u

/** Up to this length looking at each character is faster than asking the platform. */
const SHORT_TEXT = 60

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= 0x80) return false
  return true
}

/** What MessagePack and CBOR have in common but JSON has not. */
export abstract class BinaryWriter extends Writer {
  protected override readonly nativeBytes = true
  protected readonly out = new BytesOut()

  protected abstract textHead(size: number): void

  protected text(value: string): void {
    if (value.length <= SHORT_TEXT && isAscii(value)) {
      this.textHead(value.length)
      this.out.ascii(value)
      return
    }
    const size = Buffer.byteLength(value)
    if (size !== value.length && LONE_SURROGATE.test(value)) this.fail('it holds a lone surrogate')
    this.textHead(size)
    this.out.text(value, size)
  }

  protected item(): void {
    // the items of an array follow each other without anything between them
  }

  protected key(key: string): void {
    this.text(key)
  }
}
