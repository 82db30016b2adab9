import {
  EncodeError,
  InvalidArgumentError,
  InvalidTicketError,
  PayloadTooLargeError,
  RedelayedError,
} from '../index.js'
import { clean } from '../text.js'
import { jsonText } from './output.js'

/** The error of wrong usage: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A command worked and its result is negative: exit code 1. */
export class NegativeResult extends Error {
  override readonly name = 'NegativeResult'
}

export const EXIT_OK = 0
export const EXIT_FAILURE = 1
export const EXIT_USAGE = 2

/** The exit code of an error. The library's errors about arguments and cac's `CACError`s are wrong usage. */
export function exitCodeOf(error: unknown): number {
  const aboutInput = [UsageError, InvalidArgumentError, InvalidTicketError, EncodeError, PayloadTooLargeError]
  if (aboutInput.some((type) => error instanceof type)) return EXIT_USAGE
  return error instanceof Error && error.name === 'CACError' ? EXIT_USAGE : EXIT_FAILURE
}

/** The error for programs: one JSON document on stderr. */
export function failureDocument(error: unknown): string {
  const exitCode = exitCodeOf(error)
  const code = error instanceof RedelayedError ? error.code : exitCode === EXIT_USAGE ? 'ERR_USAGE' : 'ERR_FAILED'
  return jsonText({ error: { code, message: textOf(error), exitCode } }, 0)
}

/** The error in one line for stderr: no stack, no line breaks, no password (cac can quote a URL as an unexpected argument). */
export function failureLine(error: unknown): string {
  return `redelayed: ${textOf(error)}`
}

/** The message about queues that were too many to examine. */
export function notShown(queues: number): string {
  return `${queues.toLocaleString('en')} more queues were found and not examined: name those that you want`
}

function textOf(error: unknown): string {
  const text = clean(error instanceof Error ? error.message || error.name : String(error)).trim()
  if (!(error instanceof Error) || error.name !== 'CACError') return text
  // cac uses the option's name in code, not as it was typed
  return text.replace(/`--\w+`/g, (option) => option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`))
}
