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

/** How deep arrays and objects may nest; the library's codec for JSON reads no deeper. */
const MAX_DEPTH = 100
/** So few are looked through faster than a set is made. */
const FEW_KEYS = 16
/** How many values, keys and brackets a body may have. */
const MAX_ELEMENTS = 500_000

/** How many values, keys and brackets the parts of one request may have together. */
export class JsonBudget {
  #left = MAX_ELEMENTS

  get isSpent(): boolean {
    return this.#left < 0
  }

  /** False where there was none left. */
  spend(): boolean {
    return --this.#left >= 0
  }
}

/**
 * The value of a JSON text, or a `BadRequest`. Beyond what `JSON.parse` does it refuses what would not arrive as it was sent, or harms those that read
 * it: invalid UTF-8, repeated keys, the key `__proto__`, numbers that do not fit a double, and nesting without end. One pass before anything is built.
 * Texts of one request share a budget.
 */
export function readJson(bytes: Buffer, budget = new JsonBudget()): unknown {
  if (!isUtf8(bytes)) throw new BadRequest('invalid-utf8', 'the body is not UTF-8')
  const text = bytes.toString()
  new Scan(text, budget).run()
  try {
    return JSON.parse(text)
  } catch (thrown) {
    // the message can quote the text
    const [, position] = /at position (\d+)/.exec(String(thrown)) ?? []
    throw new BadRequest(
      'malformed-json',
      `the body is not JSON${position === undefined ? '' : `: see position ${position}`}`,
    )
  }
}

/** Looks at the brackets, keys and numbers of a text; what is no JSON at all is left to `JSON.parse`. */
class Scan {
  readonly #text: string
  /** Of each array or object around the position: the keys so far, or `null` for an array. */
  readonly #around: (Keys | null)[] = []
  readonly #budget: JsonBudget
  #isKeyNext = false
  /** Where the first backslash is, from the last string on. */
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

  /** Returns where the closing quote is. */
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

  /** Looking for a character is much faster than looking at each. */
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

  /** Returns where its last character is. */
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

  /** False where the key is there. */
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

/** Behind the end where there is none. */
function placeOf(text: string, character: string, from: number): number {
  const at = text.indexOf(character, from)
  return at < 0 ? text.length : at
}

function unescaped(raw: string): string {
  try {
    return JSON.parse(`"${raw}"`) as string
  } catch {
    return raw // `JSON.parse` of the whole will refuse it
  }
}

function refused(
  code: 'json-too-deep' | 'forbidden-key' | 'repeated-key' | 'unsafe-number' | 'json-too-many-values',
  what: string,
  at: number,
): BadRequest {
  return new BadRequest(code, `the body ${what}: see position ${at}`)
}
