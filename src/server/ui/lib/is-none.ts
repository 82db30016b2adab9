/** Whether a value of an answer is missing or null. */
export function isNone(value: unknown): value is null | undefined {
  return value === null || value === undefined
}
