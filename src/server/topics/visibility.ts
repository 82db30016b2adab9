/** The longest visibility timeout of reliable queues. In a file of its own, because the page checks the schemas without the library. */
export const MAX_VISIBILITY_MS = 365 * 86_400_000
