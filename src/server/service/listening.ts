import type { FastifyInstance } from 'fastify'
import type { AddressInfo } from 'node:net'

/** Closes the app; requests that take longer than `ms` are aborted. */
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
