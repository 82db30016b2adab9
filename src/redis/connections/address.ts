import type { Cluster, Redis, RedisOptions } from 'ioredis'

interface Address {
  readonly host?: string | undefined
  readonly port?: number | undefined
}

/** The most addresses that an error names. */
const NAMED = 3

/** The addresses of some servers, for errors. */
export function addressOfNodes(nodes: readonly Address[]): string {
  const named = nodes.slice(0, NAMED).map(({ host, port }) => `${host}:${port}`)
  const more = nodes.length - named.length
  return more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ')
}

/** The address in connection options, for errors. */
export function addressOfOptions({ host, port, path, sentinels }: RedisOptions): string {
  if (sentinels) return `the sentinels ${addressOfNodes(sentinels)}`
  return path ?? addressOfNodes([{ host, port }])
}

/** The address of a client, for errors. */
export function addressOfClient(client: Redis | Cluster): string {
  if (!client.isCluster) return addressOfOptions(client.options)
  // private in ioredis's types; without a connection it knows no other nodes
  const { startupNodes } = client as unknown as { startupNodes?: readonly unknown[] }
  return addressOfNodes((startupNodes ?? []).map(addressOfStartupNode))
}

/** The address of a node in any form that ioredis accepts; only host and port of a URL, which can have a password. */
function addressOfStartupNode(node: unknown): Address {
  if (typeof node === 'number') return { host: '127.0.0.1', port: node }
  if (typeof node === 'object' && node !== null) return { host: '127.0.0.1', port: 6379, ...node }
  const text = String(node)
  if (!URL.canParse(text)) return { host: '127.0.0.1', port: Number(text) }
  const { hostname, port } = new URL(text)
  return { host: hostname, port: Number(port === '' ? 6379 : port) }
}
