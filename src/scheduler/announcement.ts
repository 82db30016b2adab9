/** The time in a message on a queue's channel, epoch milliseconds; `undefined` where the message holds none, as any client can publish there. */
export function announcedTime(message: string): number | undefined {
  const at = Number(message)
  return /^\d+$/.test(message) && Number.isSafeInteger(at) ? at : undefined
}
