import type { Redis } from 'ioredis'

/** Whether the server at an address is not the right one any more. */
export type IsStale = (peer: string) => boolean

/** The address of the server at the other end, as `host:port`; of a connection that has ended, nobody's. */
export function peerOf(redis: Redis): string {
  const { remoteAddress, remotePort } = redis.stream
  return remoteAddress === undefined ? '' : `${remoteAddress}:${remotePort}`
}
