import { JournalError } from '../errors.js'

/** A message whose payload one statement cannot write. */
export interface LargeMessage {
  readonly id: string
  readonly bytes: number
  /** So many the database takes. */
  readonly most: number
}

export function tooLarge({ id, bytes, most }: LargeMessage, what: string): JournalError {
  return new JournalError(
    'ERR_JOURNAL_TOO_LARGE',
    `the message "${id}" has ${bytes} bytes, and the database takes ${most}: raise its max_allowed_packet and open the journal anew; ${what}`,
  )
}
