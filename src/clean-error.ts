import { clean } from './text.js'

/** How many levels of causes are copied, and how many errors of an `AggregateError`. */
const MAX_DEPTH = 5
const MAX_ERRORS = 10
const MAX_FRAMES = 20
const MAX_FRAME = 300
const MAX_PROPERTY = 200
/** The properties that identify an error and never hold the content of a command or an option. */
const KEPT = ['code', 'errno', 'syscall', 'address', 'hostname', 'port'] as const

/** Also an error of another realm: under Jest, errors of Node's own modules are not instances of the `Error` that a test sees. */
export function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || Object.prototype.toString.call(thrown) === '[object Error]'
}

/** The copies by their originals, so that an error that many calls reject with is copied once. An error of this package is its own copy. */
const copies = new WeakMap<Error, Error>()

/** Marks an error all of whose outside text is cleaned. */
export function markClean(error: Error): void {
  copies.set(error, error)
}

/**
 * A copy of an error from elsewhere with what is safe to log: name, message, code, stack and causes. ioredis hangs whole
 * commands on its errors, with payloads and passwords, and on a cluster's error the errors of its nodes; other libraries hang requests
 * on theirs. The original stays unchanged, because it may be the user's.
 */
export function cleanError(error: Error, depth = 0): Error {
  const known = copies.get(error)
  if (known !== undefined) return known
  const message = textOf(read(error, 'message'))
  const copy = new Error(clean(message))
  copies.set(error, copy)
  copies.set(copy, copy)
  const name = clean(textOf(read(error, 'name')) || 'Error', MAX_PROPERTY)
  hide(copy, 'name', name)
  hide(copy, 'stack', [`${name}: ${copy.message}`, ...framesOf(error, message)].join('\n'))
  for (const key of KEPT) {
    const value = read(error, key)
    if (typeof value === 'string') Object.assign(copy, { [key]: clean(value, MAX_PROPERTY) })
    else if (typeof value === 'number') Object.assign(copy, { [key]: value })
  }
  if (depth >= MAX_DEPTH) return copy
  // instead of a cause, a cluster's error has the error of the node that it asked last
  const cause = read(error, 'cause') ?? read(error, 'lastNodeError')
  if (isError(cause)) hide(copy, 'cause', cleanError(cause, depth + 1))
  const errors = read(error, 'errors')
  if (Array.isArray(errors)) hide(copy, 'errors', copiesOf(errors, depth + 1))
  return copy
}

function copiesOf(errors: readonly unknown[], depth: number): Error[] {
  return errors
    .slice(0, MAX_ERRORS)
    .filter(isError)
    .map((each) => cleanError(each, depth))
}

/** The stack's lines after the message; the message itself can have lines that look like frames. */
function framesOf(error: Error, message: string): string[] {
  const stack = textOf(read(error, 'stack'))
  const at = stack.indexOf(message)
  if (at === -1) return []
  return stack
    .slice(at + message.length, at + message.length + MAX_FRAMES * MAX_FRAME)
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .slice(0, MAX_FRAMES)
    .map((line) => `    ${clean(line.trim(), MAX_FRAME)}`)
}

/** A getter of a foreign object may throw. */
function read(error: Error, key: string): unknown {
  try {
    return (error as unknown as Readonly<Record<string, unknown>>)[key]
  } catch {
    return undefined
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function hide(error: Error, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, writable: true, configurable: true, enumerable: false })
}
