import {
  EncodeError,
  InvalidArgumentError,
  InvalidTicketError,
  PayloadTooLargeError,
  RedelayedError,
} from '../index.js'
import { clean } from '../text.js'
import { jsonText } from './output.js'

/** Wrong usage: exit code 2. */
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

/** The library's errors about arguments are wrong usage here, and so are the `CACError`s of cac. */
export function exitCodeOf(error: unknown): number {
  const aboutInput = [UsageError, InvalidArgumentError, InvalidTicketError, EncodeError, PayloadTooLargeError]
  if (aboutInput.some((type) => error instanceof type)) return EXIT_USAGE
  return error instanceof Error && error.name === 'CACError' ? EXIT_USAGE : EXIT_FAILURE
}

/** The same for programs: one JSON document on stderr. */
export function failureDocument(error: unknown): string {
  const exitCode = exitCodeOf(error)
  const code = error instanceof RedelayedError ? error.code : exitCode === EXIT_USAGE ? 'ERR_USAGE' : 'ERR_FAILED'
  return jsonText({ error: { code, message: textOf(error), exitCode } }, 0)
}

/** One line for stderr: no stack, no line breaks, no password (cac can quote a URL as an unexpected argument). */
export function failureLine(error: unknown): string {
  return `redelayed: ${textOf(error)}`
}

/** Where there are too many queues to look at all. */
export function notShown(queues: number): string {
  return `${queues.toLocaleString('en')} more queues were found and not looked at: name those that you want`
}

function textOf(error: unknown): string {
  const text = clean(error instanceof Error ? error.message || error.name : String(error)).trim()
  if (!(error instanceof Error) || error.name !== 'CACError') return text
  // cac names an option as its code does, and not as it was typed
  return text.replace(/`--\w+`/g, (option) => option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`))
}
