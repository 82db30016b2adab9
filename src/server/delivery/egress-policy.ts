import type { BlockList } from 'node:net'
import { isIP, isIPv4 } from 'node:net'
import { InvalidArgumentError } from 'redelayed'
import { isPublic, networks } from './public-address.js'

export interface EgressOptions {
  /** Ports that webhooks may go to. Default 80 and 443. */
  readonly ports?: readonly number[]
  /** Non-public networks that webhooks may still go to: `10.1.0.0/16`. */
  readonly allowNetworks?: readonly string[]
  /** Whether `http:` is allowed. Default `true`: a signature proves the sender, but hides nothing. */
  readonly allowHttp?: boolean
}

/** Decides where webhooks may go: to public hosts, and to the networks that the operator names. */
export class EgressPolicy {
  readonly #ports: ReadonlySet<number>
  readonly #allowed: BlockList
  readonly #protocols: readonly string[]

  constructor({ ports = [80, 443], allowNetworks = [], allowHttp = true }: EgressOptions = {}) {
    this.#ports = new Set(ports)
    this.#allowed = networks(allowNetworks)
    this.#protocols = allowHttp ? ['https:', 'http:'] : ['https:']
  }

  allows(address: string): boolean {
    return isPublic(address) || this.#allowed.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
  }

  /**
   * Reads the URL of an endpoint. WHATWG's parser normalizes all notations of an address (`0x7f.1`, `2130706433`), so that a literal is
   * already refused here; a name is resolved and checked at every connection.
   *
   * @throws InvalidArgumentError webhooks may not go there
   */
  readUrl(text: string): URL {
    if (text.length > 2_048) throw refused('at most 2,048 characters', text.length)
    if (!URL.canParse(text)) throw refused('an absolute URL', text)
    const url = new URL(text)
    if (!this.#protocols.includes(url.protocol)) throw refused(this.#protocols.join(' or '), url.protocol)
    if (url.username !== '' || url.password !== '') throw refused('no user and no password', text)
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
    if (!this.#ports.has(port)) throw refused(`one of the ports ${[...this.#ports].join(', ')}`, port)
    const host = hostOf(url)
    if (isIP(host) > 0 && !this.allows(host)) throw refused('an address of the internet', host)
    return url
  }
}

/** The host without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

function refused(expected: string, received: unknown): InvalidArgumentError {
  return new InvalidArgumentError('url', expected, received)
}
