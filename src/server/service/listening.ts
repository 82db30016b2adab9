import type { AddressInfo } from 'node:net'

/** Ends requests by force when their time is over. */
export async function within(ms: number, closing: PromiseLike<unknown>, force: () => void): Promise<void> {
  const timer = setTimeout(force, ms)
  await closing
  clearTimeout(timer)
}

export function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
