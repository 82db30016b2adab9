import { EncodeError, describe } from '../errors.js'
import { MAX_ELEMENTS } from './budget.js'
import { MAX_DEPTH } from './codec.js'
import { isConvertible, isPlain } from './instances.js'

/** The values that a codec accepts besides null, booleans, finite numbers, strings, arrays and plain objects. */
export interface Accepts {
  /** Returns true for a leaf value that the codec represents without loss. */
  leaf(value: unknown): boolean
  /** Why the codec would change a text, also as the name of a property; `undefined` if it would not. */
  text?(text: string): string | undefined
  /** Names that a property must not have. */
  readonly refusedNames?: readonly string[]
}

/**
 * Walks a value before it is encoded and throws at the first part that the codec would change silently: functions,
 * symbols, NaN, Map, Set, holes, cycles. Properties that are `undefined` are left out, as `JSON.stringify` does.
 */
export function assertEncodable(codec: string, value: unknown, accepts: Accepts): void {
  new Walk(codec, accepts).part(value)
}

class Walk {
  readonly #codec: string
  readonly #accepts: Accepts
  readonly #path: (string | number)[] = []
  #elements = 0

  constructor(codec: string, accepts: Accepts) {
    this.#codec = codec
    this.#accepts = accepts
  }

  part(part: unknown): void {
    if (part === null || typeof part === 'boolean') return
    if (typeof part === 'string') {
      this.#text(part)
      return
    }
    if (typeof part === 'number' && Number.isFinite(part)) return
    if (this.#accepts.leaf(part)) return
    if (typeof part !== 'object') this.#fail(describe(part))
    if (this.#path.length >= MAX_DEPTH) {
      this.#path.length = 8
      this.#fail(`it nests deeper than ${MAX_DEPTH} levels or contains itself`)
    }
    if (Array.isArray(part)) {
      this.#claim(part.length)
      for (let i = 0; i < part.length; i++) this.#step(part[i], i)
    } else if (isConvertible(part)) this.#converted(part)
    else if (isObjectOfProperties(part)) {
      const keys = Object.keys(part)
      this.#claim(2 * keys.length)
      if (keys.length === 0 && !isPlain(part)) this.#fail(`${describe(part)} without properties that can be seen`)
      for (const key of keys) {
        const property = (part as Record<string, unknown>)[key]
        if (property === undefined) continue
        if (this.#accepts.refusedNames?.includes(key) === true) this.#fail(`a property called ${key}`)
        this.#text(key)
        this.#step(property, key)
      }
    } else this.#fail(describe(part))
  }

  /** Checks the value that `JSON.stringify` and msgpackr write instead of the object; they do not call `toJSON` of the result. */
  #converted(part: { toJSON(key: string): unknown }): void {
    const result = part.toJSON(String(this.#path.at(-1) ?? ''))
    if (isConvertible(result)) {
      this.#fail(`the toJSON of ${describe(part)} gives an object with another toJSON`)
    }
    this.part(result)
  }

  #claim(count: number): void {
    this.#elements += Math.max(1, count)
    if (this.#elements > MAX_ELEMENTS) this.#fail(`the value has more than ${MAX_ELEMENTS} elements`)
  }

  #text(text: string): void {
    const problem = this.#accepts.text?.(text)
    if (problem !== undefined) this.#fail(problem)
  }

  #step(part: unknown, key: string | number): void {
    this.#path.push(key)
    this.part(part)
    this.#path.pop()
  }

  #fail(message: string): never {
    throw new EncodeError(this.#codec, formatPath(this.#path), message)
  }
}

/** Plain objects and instances of the user's classes; not Map, Set, Promise and the like, whose content is not in properties. */
function isObjectOfProperties(value: object): boolean {
  return Object.prototype.toString.call(value) === '[object Object]'
}

export function formatPath(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return /^[A-Za-z_$][\w$]*$/.test(key) ? `${text}.${key}` : `${text}[${JSON.stringify(key)}]`
  }, '$')
}
