import type { Fail, Format } from './format.js'
import { javaDouble } from './java-double.js'
import { JsonOut } from './json-out.js'

/** The size of the cache: messages of one kind repeat their keys and classes. */
const MAX_KNOWN = 2000
const MAX_KNOWN_LENGTH = 64

const PLAIN = /^[ !#-[\]-~]*$/

/** Cached quoted texts, between fixed parts. */
class Known {
  readonly #known = new Map<string, string>()
  readonly #before: string
  readonly #after: string

  constructor(before: string, after: string) {
    this.#before = before
    this.#after = after
  }

  write(out: JsonOut, text: string): void {
    const known = this.#known.get(text)
    if (known !== undefined) return out.ascii(known)
    out.ascii(this.#before)
    out.quoted(text)
    out.ascii(this.#after)
    if (this.#known.size >= MAX_KNOWN || text.length > MAX_KNOWN_LENGTH || !PLAIN.test(text)) return
    this.#known.set(text, `${this.#before}"${text}"${this.#after}`)
  }
}

const firstKeys = new Known('', ':')
const furtherKeys = new Known(',', ':')
const pairs = new Known('[', ',')
const classes = new Known('{"@class":', '')

/** JSON text, byte for byte as Jackson writes it. */
export class JsonFormat implements Format {
  readonly out = new JsonOut()
  readonly counts = false
  readonly nativeBytes = false
  readonly #fail: Fail

  constructor(fail: Fail) {
    this.#fail = fail
  }

  nil(): void {
    this.out.ascii('null')
  }

  text(value: string): void {
    this.out.quoted(value)
  }

  bool(value: boolean): void {
    this.out.ascii(value ? 'true' : 'false')
  }

  int(value: number): void {
    this.out.ascii(String(value))
  }

  bigint(value: bigint): void {
    this.out.ascii(String(value))
  }

  bigInteger(value: bigint): void {
    this.bigint(value)
  }

  decimal(text: string): void {
    this.out.ascii(text)
  }

  double(value: number, declared: boolean): void {
    if (Number.isFinite(value)) this.out.ascii(javaDouble(value))
    else if (declared) this.out.ascii(`"${value}"`)
    else this.#fail(`${value}, which Java would read as a string`)
  }

  float(value: number): void {
    this.double(value, true)
  }

  bytes(value: Uint8Array): void {
    const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    this.out.text(`"${bytes.toString('base64')}"`)
  }

  openPair(className: string): void {
    pairs.write(this.out, className)
  }

  closePair(): void {
    this.out.byte(0x5d)
  }

  openArray(): void {
    this.out.byte(0x5b)
  }

  item(index: number): void {
    if (index > 0) this.out.byte(0x2c)
  }

  closeArray(): void {
    this.out.byte(0x5d)
  }

  openObject(className: string | undefined): void {
    if (className === undefined) this.out.byte(0x7b)
    else classes.write(this.out, className)
  }

  key(key: string, first: boolean): void {
    if (first) firstKeys.write(this.out, key)
    else furtherKeys.write(this.out, key)
  }

  closeObject(): void {
    this.out.byte(0x7d)
  }
}
