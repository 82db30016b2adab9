import { isUtf8 } from 'node:buffer'
import { BadRequest } from './problem.js'

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** The deepest nesting of arrays and objects; the library's JSON codec reads no deeper. */
const MAX_DEPTH = 100
/** Up to this number, searching an array is faster than making a set. */
const FEW_KEYS = 16
/** The most values, keys and brackets of a body. */
const MAX_ELEMENTS = 500_000

/** The values, keys and brackets that the parts of one request may still have together. */
export class JsonBudget {
  #left = MAX_ELEMENTS

  get isSpent(): boolean {
    return this.#left < 0
  }

  /** False if nothing was left. */
  spend(): boolean {
    return --this.#left >= 0
  }
}

/**
 * Parses a JSON text, or throws a `BadRequest`. Stricter than `JSON.parse`, it refuses what would not arrive as it was sent, or harms
 * readers: invalid UTF-8, repeated keys, the key `__proto__`, numbers that do not fit a double, and deep nesting. One pass before anything
 * is built. Texts of one request share a budget.
 */
export function readJson(bytes: Buffer, budget = new JsonBudget()): unknown {
  if (!isUtf8(bytes)) throw new BadRequest('invalid-utf8', 'the body is not UTF-8')
  const text = bytes.toString()
  new Scan(text, budget).run()
  try {
    return JSON.parse(text)
  } catch (thrown) {
    // the message of `JSON.parse` can quote the text
    const [, position] = /at position (\d+)/.exec(String(thrown)) ?? []
    throw new BadRequest(
      'malformed-json',
      `the body is not JSON${position === undefined ? '' : `: see position ${position}`}`,
    )
  }
}

/** Checks the brackets, keys and numbers of a text; invalid JSON is left to `JSON.parse`. */
class Scan {
  readonly #text: string
  /** The open objects and arrays around the position: the keys so far of an object, `null` for an array. */
  readonly #around: (Keys | null)[] = []
  readonly #budget: JsonBudget
  #isKeyNext = false
  /** The position of the first backslash after the start of the last string. */
  #backslash = -1

  constructor(text: string, budget: JsonBudget) {
    this.#text = text
    this.#budget = budget
  }

  run(): void {
    const text = this.#text
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) at = this.#string(at)
      else if (code === OPEN_OBJECT || code === OPEN_ARRAY) this.#open(code, at)
      else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
        this.#around.pop()
        this.#isKeyNext = false
      } else if (code === COMMA) this.#isKeyNext = (this.#around[this.#around.length - 1] ?? null) !== null
      else if (code === MINUS || (code >= ZERO && code <= NINE)) at = this.#number(at)
    }
  }

  #open(code: number, at: number): void {
    if (this.#around.length >= MAX_DEPTH) throw refused('json-too-deep', `nests deeper than ${MAX_DEPTH} levels`, at)
    this.#count(at)
    this.#around.push(code === OPEN_OBJECT ? new Keys() : null)
    this.#isKeyNext = code === OPEN_OBJECT
  }

  /** Returns the position of the closing quote. */
  #string(from: number): number {
    const text = this.#text
    const to = this.#quoteAfter(from)
    this.#count(from)
    if (!this.#isKeyNext) return to
    this.#isKeyNext = false
    const raw = text.slice(from + 1, to)
    const key = this.#backslash < to ? unescaped(raw) : raw
    if (key === '__proto__') throw refused('forbidden-key', 'has the key __proto__', from)
    if (this.#around[this.#around.length - 1]?.add(key) === false)
      throw refused('repeated-key', 'has a key twice in one object', from)
    return to
  }

  /** Uses `indexOf`, which is much faster than checking each character. */
  #quoteAfter(from: number): number {
    const text = this.#text
    if (this.#backslash < from) this.#backslash = placeOf(text, '\\', from + 1)
    let quote = placeOf(text, '"', from + 1)
    if (this.#backslash > quote) return quote
    for (let at = this.#backslash; ; at = placeOf(text, '\\', at + 2)) {
      if (quote === at + 1) quote = placeOf(text, '"', quote + 1)
      if (at >= quote) return quote
    }
  }

  /** Returns the position of the number's last character. */
  #number(from: number): number {
    const text = this.#text
    let to = from + 1
    let isInteger = true
    for (; to < text.length; to++) {
      const code = text.charCodeAt(to)
      if (code >= ZERO && code <= NINE) continue
      // . e E + -
      if (code === 0x2e || code === 0x65 || code === 0x45 || code === 0x2b || code === MINUS) isInteger = false
      else break
    }
    this.#count(from)
    const isShort = isInteger && to - from <= 15
    if (isShort && (text.charCodeAt(from) !== MINUS || text.slice(from, to) !== '-0')) return to - 1
    const digits = text.slice(from, Math.min(to, from + 400))
    const value = to - from > 400 ? NaN : Number(digits)
    const isSafe = isInteger
      ? Number.isSafeInteger(value) && !Object.is(value, -0)
      : Number.isFinite(value) && !(value === 0 && /^[^eE]*[1-9]/.test(digits))
    if (!isSafe) throw refused('unsafe-number', 'has a number that a double cannot hold; send it as a text', from)
    return to - 1
  }

  #count(at: number): void {
    if (!this.#budget.spend()) throw refused('json-too-many-values', `has more than ${MAX_ELEMENTS} values`, at)
  }
}

/** The keys of an object. */
class Keys {
  readonly #first: string[] = []
  #all: Set<string> | undefined

  /** False if the key exists. */
  add(key: string): boolean {
    if (this.#all === undefined) {
      if (this.#first.includes(key)) return false
      this.#first.push(key)
      if (this.#first.length > FEW_KEYS) this.#all = new Set(this.#first)
      return true
    }
    if (this.#all.has(key)) return false
    this.#all.add(key)
    return true
  }
}

/** The position of a character, or the length of the text if there is none. */
function placeOf(text: string, character: string, from: number): number {
  const at = text.indexOf(character, from)
  return at < 0 ? text.length : at
}

function unescaped(raw: string): string {
  try {
    return JSON.parse(`"${raw}"`) as string
  } catch {
    return raw // `JSON.parse` of the whole text will refuse it
  }
}

function refused(
  code: 'json-too-deep' | 'forbidden-key' | 'repeated-key' | 'unsafe-number' | 'json-too-many-values',
  what: string,
  at: number,
): BadRequest {
  return new BadRequest(code, `the body ${what}: see position ${at}`)
}
