import type { FastifyInstance } from 'fastify'
import type { AddressInfo } from 'node:net'

/** Ends requests by force when their time is over. */
export async function closedWithin(ms: number, app: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => app.server.closeAllConnections(), ms)
  try {
    await app.close()
  } finally {
    clearTimeout(timer)
  }
}

export function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
