import { createRequire } from 'node:module'
import { UnsupportedOperationError } from '../index.js'

/** A library that only those need who use this part of the package. */
export function optional(library: string, what: string): unknown {
  try {
    return createRequire(import.meta.url)(library)
  } catch (cause) {
    throw new UnsupportedOperationError(`${what} needs the package "${library}": npm install ${library}`, { cause })
  }
}
