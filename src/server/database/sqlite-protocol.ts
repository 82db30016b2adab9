import type { Packed } from './packed.js'

/** What the thread of the SQLite connection is asked. */
export interface SqliteRequest {
  readonly call: number
  readonly sql: string
  readonly parameters: Packed
}

/** What it answers; `code` is SQLite's name of the error. */
export type SqliteReply =
  | { readonly call: number; readonly columns: readonly string[]; readonly cells: Packed; readonly changes: number }
  | { readonly call: number; readonly error: { readonly message: string; readonly code: string } }

/** The call number of what the thread says by itself once the file is open, or cannot be opened. */
export const OPENED = 0
