/** The time that a message on a queue's channel tells, epoch milliseconds; nothing where it is none: others can publish there too. */
export function announcedTime(message: string): number | undefined {
  const at = Number(message)
  return /^\d+$/.test(message) && Number.isSafeInteger(at) ? at : undefined
}
