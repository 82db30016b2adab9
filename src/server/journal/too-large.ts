import { JournalError } from '../errors.js'

/** A message whose payload is too large for one SQL statement. */
export interface LargeMessage {
  readonly id: string
  readonly bytes: number
  /** The most bytes that the database takes. */
  readonly most: number
}

export function tooLarge({ id, bytes, most }: LargeMessage, what: string): JournalError {
  return new JournalError(
    'ERR_JOURNAL_TOO_LARGE',
    `the message "${id}" has ${bytes} bytes, and the database takes ${most}: raise its max_allowed_packet and open the journal anew; ${what}`,
  )
}
