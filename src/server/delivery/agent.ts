import { Agent } from 'undici'
import type { EgressPolicy } from './egress-policy.js'
import { guardedConnect, type Lookup } from './guarded-connect.js'
import { proxiedConnect } from './proxied-connect.js'

const MOST_HEADER_BYTES = 16_384

/** The connections of webhooks. In a file of its own, because its HTTP client takes a while to load: a start does not wait for it. */
export function makeAgent(
  policy: EgressPolicy,
  {
    connectTimeoutMs,
    proxy,
    lookup,
    ca,
  }: {
    readonly connectTimeoutMs: number
    readonly proxy?: URL | undefined
    readonly lookup?: Lookup | undefined
    readonly ca?: string | undefined
  },
): Agent {
  const how = { connectTimeoutMs, ...(ca !== undefined && { ca }) }
  return new Agent({
    connect:
      proxy === undefined
        ? guardedConnect(policy, { ...how, ...(lookup !== undefined && { lookup }) })
        : proxiedConnect(proxy, policy, how),
    // no limit of connections to an origin: otherwise one endpoint would wait for another
    pipelining: 1,
    maxHeaderSize: MOST_HEADER_BYTES,
    keepAliveTimeout: 30_000,
    keepAliveMaxTimeout: 120_000,
  })
}
