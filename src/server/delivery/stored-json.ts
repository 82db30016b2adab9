/** What the service stores is not longer. */
const MOST_CHARS = 65_536

/** The object of a JSON text in Redis, where any client can have written it; `undefined` for what is none, or longer than what the service stores. */
export function objectIn(text: string | undefined): object | undefined {
  if (text === undefined || text.length > MOST_CHARS) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
