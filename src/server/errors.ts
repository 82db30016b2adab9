import { RedelayedError, type ErrorDetails } from 'redelayed'

/** The codes of a journal's errors; each message says what to do. */
export type JournalErrorCode =
  /** The journal does not support the URL. */
  | 'ERR_JOURNAL_URL'
  /** Wrong user or password, no such database, or no right to do what was asked. */
  | 'ERR_JOURNAL_ACCESS'
  /** The file is not a SQLite database, or is damaged. */
  | 'ERR_JOURNAL_NOT_A_DATABASE'
  /** Another process has the SQLite file open. */
  | 'ERR_JOURNAL_LOCKED'
  /** A newer version has changed the tables. */
  | 'ERR_JOURNAL_SCHEMA_NEWER'
  /** The tables do not exist, or are of an older version. */
  | 'ERR_JOURNAL_SCHEMA_OLDER'
  /** The disk or the quota is full. */
  | 'ERR_JOURNAL_FULL'
  /** A row is larger than the server takes. */
  | 'ERR_JOURNAL_TOO_LARGE'
  /** A queue that began anew had more messages than the journal reads: SQL may lack the others. */
  | 'ERR_JOURNAL_LEFT_OUT'
  /** The server does not answer; the call can be repeated. */
  | 'ERR_JOURNAL_UNAVAILABLE'
  /** Another call has accepted the same message, and Redis has neither taken nor refused it yet; the call can be repeated. */
  | 'ERR_JOURNAL_IN_PROGRESS'
  /** A row is not a message that the queue takes: it is skipped. */
  | 'ERR_JOURNAL_ROW'
  /** The journal was closed. */
  | 'ERR_JOURNAL_CLOSED'
  /** The server refused a statement for another reason. */
  | 'ERR_JOURNAL_QUERY'

/** The SQL journal could not do what was asked. `outcome` says whether it may have been done all the same. */
export class JournalError extends RedelayedError {
  declare readonly code: JournalErrorCode

  /**
   * `'not-applied'`: nothing was done. `'unknown'`: the connection broke during the commit, so all of it was done, or nothing: a message
   * that was accepted this way is added later. Adding it again under the same id adds it once.
   */
  readonly outcome: 'not-applied' | 'unknown'

  constructor(
    code: JournalErrorCode,
    message: string,
    { outcome = 'not-applied', ...details }: ErrorDetails & { readonly outcome?: 'not-applied' | 'unknown' } = {},
  ) {
    super(code, message, details)
    this.outcome = outcome
  }

  /** Whether the same call can succeed later without anyone changing something. */
  get isTemporary(): boolean {
    return this.code === 'ERR_JOURNAL_UNAVAILABLE'
  }
}
