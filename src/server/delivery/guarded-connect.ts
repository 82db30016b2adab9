import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { buildConnector } from 'undici'
import { late, within } from '../pause.js'
import type { EgressPolicy } from './egress-policy.js'

/** Resolves a host to all its addresses. */
export type Lookup = (host: string) => Promise<readonly string[]>

/** The methods of a resolver. */
export interface Names {
  resolve4(host: string): Promise<string[]>
  resolve6(host: string): Promise<string[]>
}

/**
 * Resolves with c-ares, which needs no threads: `dns.lookup` shares four threads with the whole process, and a name server that hangs would
 * block them. It reads no hosts file and adds no search domain.
 */
export function resolverLookup(resolver: Names = new Resolver({ timeout: 2_000, tries: 2 })): Lookup {
  return async (host) => {
    // RFC 6761
    if (/(^|\.)localhost\.?$/i.test(host)) return ['127.0.0.1', '::1']
    const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const found = [four, six].flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
    if (found.length === 0 && four.status === 'rejected') throw four.reason
    return found
  }
}

/** The most addresses of a name that are tried. */
const MOST_ADDRESSES = 4

/** A connection was not opened, because the policy does not allow the address. */
export class EgressRefusedError extends Error {
  override readonly name = 'EgressRefusedError'
  readonly code = 'ERR_EGRESS_REFUSED'
}

/**
 * Opens the sockets of webhooks, also those to literal addresses, for which no look-up function is ever called. A name is resolved once,
 * all its addresses are checked, and the socket goes to a checked address: a name that resolves differently a moment later changes nothing.
 * If an address does not answer, the next ones are tried and share the time.
 */
export function guardedConnect(
  policy: EgressPolicy,
  { connectTimeoutMs, lookup = resolverLookup(), ca }: { connectTimeoutMs: number; lookup?: Lookup; ca?: string },
): buildConnector.connector {
  const connectors = Array.from({ length: MOST_ADDRESSES }, (_, others) =>
    buildConnector({ timeout: Math.ceil(connectTimeoutMs / (others + 1)), ...(ca !== undefined && { ca }) }),
  )
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '')
    // a look-up has no limit of its own
    const tooLate = late(`the name of the endpoint was not resolved within ${connectTimeoutMs} ms`)
    within(connectTimeoutMs, addressesOf(host, policy, lookup), tooLate).then(
      (addresses) => {
        // the certificate must be valid for the name
        const servername = options.servername ?? (isIP(host) > 0 ? undefined : host)
        const connect = connectors[addresses.length - 1] as buildConnector.connector
        const tryFrom = (at: number): void => {
          const to = { ...options, hostname: addresses[at] ?? '', ...(servername !== undefined && { servername }) }
          connect(to, (...answer) => {
            if (answer[0] === null || at + 1 === addresses.length) callback(...answer)
            else tryFrom(at + 1)
          })
        }
        tryFrom(0)
      },
      (error: unknown) => {
        callback(error instanceof Error ? error : new Error(String(error)), null)
      },
    )
  }
}

async function addressesOf(host: string, policy: EgressPolicy, lookup: Lookup): Promise<readonly string[]> {
  const addresses = isIP(host) > 0 ? [host] : await lookup(host)
  if (addresses.length === 0) throw new EgressRefusedError('the name of the endpoint has no address')
  // a name with a public and a private address is an attempt to reach the private one
  if (!addresses.every((address) => policy.allows(address)))
    throw new EgressRefusedError('the endpoint has an address that is not public; the operator can allow its network')
  return addresses.slice(0, MOST_ADDRESSES)
}
