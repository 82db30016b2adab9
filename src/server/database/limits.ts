/** The longest that opening a connection may take. */
export const CONNECT_MS = 5_000
/** The longest that a statement may take: a stopped server, or one behind a dead network, never answers. */
export const STATEMENT_MS = 20_000
