/** How long a connection to the database may take. */
export const CONNECT_MS = 5_000
/** A server that was stopped, or is behind a dead network, answers nothing: a statement ends after so long. */
export const STATEMENT_MS = 20_000
