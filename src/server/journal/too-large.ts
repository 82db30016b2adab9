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

/** Separates messages whose payloads fit into SQL from those whose payloads do not. */
export function bySize<M extends { readonly payload: Uint8Array }>(
  messages: readonly M[],
  most: number,
): { fitting: M[]; large: M[] } {
  const fits = ({ payload }: M): boolean => payload.length <= most
  return { fitting: messages.filter(fits), large: messages.filter((message) => !fits(message)) }
}
