import { createRequire } from 'node:module'
import { UnsupportedOperationError } from '../index.js'

/** Loads a library that only this entry point needs. */
export function optional(library: string, what: string): unknown {
  try {
    return createRequire(import.meta.url)(library)
  } catch (cause) {
    throw new UnsupportedOperationError(`${what} needs the package "${library}": npm install ${library}`, { cause })
  }
}
