import { EncodeError, InvalidArgumentError, InvalidTicketError, PayloadTooLargeError } from '../index.js'
import { clean } from '../text.js'

/** What was typed cannot be carried out: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A command did what it should and the answer is no: exit code 1. */
export class NegativeResult extends Error {
  override readonly name = 'NegativeResult'
}

export const EXIT_OK = 0
export const EXIT_FAILURE = 1
export const EXIT_USAGE = 2

/** The library's errors about arguments are about what was typed. `CACError` is how cac reports its own. */
export function exitCodeOf(error: unknown): number {
  const aboutInput = [UsageError, InvalidArgumentError, InvalidTicketError, EncodeError, PayloadTooLargeError]
  if (aboutInput.some((type) => error instanceof type)) return EXIT_USAGE
  return error instanceof Error && error.name === 'CACError' ? EXIT_USAGE : EXIT_FAILURE
}

/** One line for stderr: no stack, no line breaks, no password (a URL can come back as an argument too many). */
export function failureLine(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  return `redelayed: ${clean(text).trim()}`
}
