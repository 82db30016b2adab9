import { EncodeError, describe } from '../errors.js'
import { MAX_DEPTH } from './codec.js'

/** What a codec accepts beyond null, booleans, finite numbers, strings, arrays and plain objects. */
export interface Accepts {
  /** Returns true for a leaf value that the codec represents without loss. */
  leaf(value: unknown): boolean
}

/**
 * Walks a value before it is encoded and throws at the first part that the codec would change silently: functions,
 * symbols, NaN, Map, Set, holes, cycles. Properties that are `undefined` are left out, as `JSON.stringify` does.
 */
export function assertEncodable(codec: string, value: unknown, accepts: Accepts): void {
  walk(value, [])

  function walk(part: unknown, path: (string | number)[]): void {
    if (part === null || typeof part === 'string' || typeof part === 'boolean') return
    if (typeof part === 'number') {
      if (!Number.isFinite(part) && !accepts.leaf(part)) fail(path, describe(part))
      return
    }
    if (accepts.leaf(part)) return
    if (typeof part !== 'object') fail(path, describe(part))
    if (path.length >= MAX_DEPTH) fail(path.slice(0, 8), `it nests deeper than ${MAX_DEPTH} levels or contains itself`)
    if (Array.isArray(part)) {
      for (let i = 0; i < part.length; i++) step(part[i], i, path)
      return
    }
    if (!isObjectOfProperties(part)) fail(path, describe(part))
    for (const key of Object.keys(part)) {
      const property = (part as Record<string, unknown>)[key]
      if (property !== undefined) step(property, key, path)
    }
  }

  function step(part: unknown, key: string | number, path: (string | number)[]): void {
    path.push(key)
    walk(part, path)
    path.pop()
  }

  function fail(path: readonly (string | number)[], message: string): never {
    throw new EncodeError(codec, formatPath(path), message)
  }
}

/** Plain objects and instances of the user's classes; not Map, Set, Promise and the like, whose content is elsewhere. */
function isObjectOfProperties(value: object): boolean {
  return Object.prototype.toString.call(value) === '[object Object]'
}

function formatPath(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return /^[A-Za-z_$][\w$]*$/.test(key) ? `${text}.${key}` : `${text}[${JSON.stringify(key)}]`
  }, '$')
}
