import { isUtf8 } from 'node:buffer'
import { DecodeError } from '../../errors.js'
import { assertJsonDepth, claimJsonElements, parseJsonText } from '../../codecs/json-bounds.js'
import { MAX_NUMBER_LENGTH } from './java-numbers.js'
import { MAX_WIRE_DEPTH, NumberText, setProperty, type Node } from './nodes.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Integers of fewer digits are exact as numbers. */
const EXACT_DIGITS = 16
/** `JSON.parse` does not recurse, so the levels of a shorter text cannot take much memory. */
const SHORT_TEXT = 16_384

/** Parses with `JSON.parse`, whose numbers cannot be trusted: those beyond 2^53 lose digits, and a BigDecimal its trailing zeros. */
export function parseJson(codec: string, text: string): Node {
  return parseJsonText(codec, text)
}

/** As `parseJson`, several times slower, but every number that may lose digits becomes a `NumberText`. */
export function parseJsonExactly(codec: string, text: string): Node {
  return new Parser(codec, text).document()
}

/** The text of a message, after its depth and size were checked. */
export function jsonText(codec: string, bytes: Buffer): string {
  if (bytes.length > SHORT_TEXT) assertJsonDepth(codec, bytes, MAX_WIRE_DEPTH)
  claimJsonElements(codec, bytes)
  if (!isUtf8(bytes)) throw new DecodeError(codec, 'they are not valid UTF-8')
  return bytes.toString()
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const SPACE = /[ \t\n\r]*/y

/** Parses the same texts as `JSON.parse`, but numbers keep their text. */
class Parser {
  readonly #codec: string
  readonly #text: string
  #at = 0
  #depth = 0

  constructor(codec: string, text: string) {
    this.#codec = codec
    this.#text = text
  }

  document(): Node {
    const value = this.#value()
    this.#space()
    if (this.#at !== this.#text.length) this.#fail()
    return value
  }

  #value(): Node {
    this.#space()
    switch (this.#text.charCodeAt(this.#at)) {
      case QUOTE:
        return this.#string()
      case 0x5b:
        return this.#array()
      case 0x7b:
        return this.#object()
      case 0x6e:
        return this.#word('null', null)
      case 0x74:
        return this.#word('true', true)
      case 0x66:
        return this.#word('false', false)
      default:
        return this.#number()
    }
  }

  #array(): Node[] {
    const items: Node[] = []
    this.#open()
    if (this.#take(0x5d)) return this.#closed(items)
    do items.push(this.#value())
    while (this.#take(0x2c))
    if (!this.#take(0x5d)) this.#fail()
    return this.#closed(items)
  }

  #object(): Node {
    const object: Record<string, Node> = {}
    this.#open()
    if (this.#take(0x7d)) return this.#closed(object)
    do {
      this.#space()
      const key = this.#string()
      if (!this.#take(0x3a)) this.#fail()
      setProperty(object, key, this.#value())
    } while (this.#take(0x2c))
    if (!this.#take(0x7d)) this.#fail()
    return this.#closed(object)
  }

  #open(): void {
    this.#at++
    if (++this.#depth > MAX_WIRE_DEPTH)
      throw new DecodeError(this.#codec, `they nest deeper than ${MAX_WIRE_DEPTH} levels`)
  }

  #closed<T>(value: T): T {
    this.#depth--
    return value
  }

  #string(): string {
    const start = this.#at
    let escaped = false
    if (this.#text.charCodeAt(start) !== QUOTE) this.#fail()
    for (this.#at++; ; this.#at++) {
      const char = this.#text.charCodeAt(this.#at)
      if (char === QUOTE) break
      if (!(char >= 0x20)) this.#fail() // a control character, or NaN at the end
      if (char === BACKSLASH) {
        escaped = true
        this.#at++
      }
    }
    this.#at++
    if (!escaped) return this.#text.slice(start + 1, this.#at - 1)
    try {
      return JSON.parse(this.#text.slice(start, this.#at)) as string
    } catch {
      return this.#fail()
    }
  }

  #number(): Node {
    const literal = this.#match(NUMBER)
    if (literal.length > MAX_NUMBER_LENGTH)
      throw new DecodeError(this.#codec, `a number has ${literal.length} characters`)
    return literal.length < EXACT_DIGITS && /^-?\d+$/.test(literal) ? Number(literal) : new NumberText(literal)
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#fail()
    this.#at += word.length
    return value
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const [literal = ''] = pattern.exec(this.#text) ?? []
    if (literal === '') this.#fail()
    this.#at += literal.length
    return literal
  }

  #take(char: number): boolean {
    this.#space()
    if (this.#text.charCodeAt(this.#at) !== char) return false
    this.#at++
    return true
  }

  #space(): void {
    SPACE.lastIndex = this.#at
    SPACE.test(this.#text)
    this.#at = SPACE.lastIndex
  }

  #fail(): never {
    const at = this.#at < this.#text.length ? `unexpected text at position ${this.#at}` : 'unexpected end'
    throw new DecodeError(this.#codec, `they are not JSON: ${at}`)
  }
}
