import type { Packed } from './packed.js'

/** A request to the thread of the SQLite connection. */
export interface SqliteRequest {
  readonly call: number
  readonly sql: string
  readonly parameters: Packed
}

/** Its reply; `code` is SQLite's name of the error. */
export type SqliteReply =
  | { readonly call: number; readonly columns: readonly string[]; readonly cells: Packed; readonly changes: number }
  | { readonly call: number; readonly error: { readonly message: string; readonly code: string } }

/** The call number of the thread's first message, after it has opened the file or failed to. */
export const OPENED = 0
