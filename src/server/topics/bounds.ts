/**
 * The most that a setting of a reliable queue counts, such as messages at once. In a file of its own, because the page checks the schemas
 * without the library.
 */
export const MOST_COUNTED = 1_000_000
/** The longest period of a rate limit. */
export const MOST_RATE_MS = 86_400_000
