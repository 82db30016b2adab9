import { ConnectionError, type RedelayedError } from '../errors.js'
import type { Resend } from '../store/sender.js'

/** Whether a failed call may have been carried out, or may still be. */
export function mayBeCarriedOut(error: RedelayedError): boolean {
  return error instanceof ConnectionError && error.outcome !== 'not-applied'
}

/** The error with the outcome `unknown`: an earlier attempt may have been carried out, even if a later one was not sent or was refused. */
export function asUnknown(error: RedelayedError, address: string): RedelayedError {
  if (error instanceof ConnectionError && error.outcome === 'unknown') return error
  const isRefused = !(error instanceof ConnectionError)
  const why = isRefused ? `the connection to Redis at ${address} broke, and a repetition failed: ` : ''
  return new ConnectionError(why + error.message, 'unknown', { cause: error })
}

/**
 * Whether a failed command may be sent again: if it met a closing socket or may be repeated, but not after a failed wait for a connection.
 */
export function isRepeatable(thrown: unknown, error: RedelayedError, resend: Resend | undefined): boolean {
  if (thrown === error || !(error instanceof ConnectionError)) return false
  return resend !== undefined || error.outcome === 'not-applied'
}
