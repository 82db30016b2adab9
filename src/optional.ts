import { UnsupportedOperationError } from './errors.js'
import libraries from './require.cjs'

/** Loads an optional dependency. */
export function optional(library: keyof typeof libraries, what: string): unknown {
  const loaded = libraries[library]()
  if ('is' in loaded) return loaded.is
  const { cause } = loaded
  throw new UnsupportedOperationError(`${what} needs the package "${library}": npm install ${library}`, { cause })
}
