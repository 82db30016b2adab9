import { lookup } from 'node:dns/promises'
import { SocketAddress, isIP } from 'node:net'
import type { Redis } from 'ioredis'
import type { Node } from '../options.js'

/**
 * Whether the server of a connection is not the right one any more: by its address, and by when the client began to open the connection
 * (monotonic clock).
 */
export type IsStale = (peer: string, begunAt: number, redis: Redis) => boolean

/** The address of the server at the other end, as `host:port`; empty for a connection that has ended. */
export function remoteAddressOf(redis: Redis): string {
  const { remoteAddress, remotePort } = redis.stream
  return remoteAddress === undefined ? '' : `${inOneForm(remoteAddress)}:${remotePort}`
}

/** An IPv6 address has several forms, and contains an IPv4 address on some sockets. */
function inOneForm(address: string): string {
  if (isIP(address) !== 6 || address.includes('%')) return address
  return new SocketAddress({ address, family: 'ipv6' }).address.replace(/^::ffff:(?=\d+\.)/, '')
}

/**
 * A predicate for addresses that are certainly not this server's. Resolves names; for a name that cannot be resolved it is always false.
 */
export async function elsewhereThan({ host, port }: Node): Promise<IsStale> {
  if (isIP(host) > 0) return elsewhereThanIp({ host, port })
  const found = await lookup(host, { all: true }).catch(() => [])
  const servers = found.map(({ address }) => elsewhereThanIp({ host: address, port }))
  return (...peer) => servers.length > 0 && servers.every((isElsewhere) => isElsewhere(...peer))
}

/** The same for a server whose host is an IP address. */
export function elsewhereThanIp({ host, port }: Node): IsStale {
  const server = `${inOneForm(host)}:${port}`
  return (peer) => peer !== server
}
