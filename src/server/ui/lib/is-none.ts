/** Whether an answer leaves a value out, or says that there is none. */
export function isNone(value: unknown): value is null | undefined {
  return value === null || value === undefined
}
