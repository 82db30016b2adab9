import { BlockList, isIPv4, isIPv6 } from 'node:net'
import { InvalidArgumentError } from 'redelayed'

/** IPv4 networks that are not public (IANA special-purpose registry), and the metadata service of Azure. */
const NOT_PUBLIC_4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
]
/** The global unicast addresses of IPv6. They exclude embedded IPv4 except 6to4 and Teredo: `::/96`, `::ffff:0:0/96`, `64:ff9b::/96`. */
const GLOBAL_6 = '2000::/3'
/** The networks within it that are not public: IETF protocols with Teredo, AS112, documentation, 6to4. */
const NOT_PUBLIC_6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20']

const notPublic = networks([...NOT_PUBLIC_4, ...NOT_PUBLIC_6])
const global6 = networks([GLOBAL_6])

/** Whether this is the address of a public host. */
export function isPublic(address: string): boolean {
  if (isIPv4(address)) return !notPublic.check(address, 'ipv4')
  return isIPv6(address) && global6.check(address, 'ipv6') && !notPublic.check(address, 'ipv6')
}

/**
 * Networks by address and prefix length: `10.1.0.0/16`, `fd00::/8`; a single address is a network of one.
 *
 * @throws InvalidArgumentError one of the texts is not a network
 */
export function networks(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(range) ?? []
    const family = isIPv4(address) ? 'ipv4' : isIPv6(address) ? 'ipv6' : undefined
    const bits = family === 'ipv4' ? 32 : 128
    const length = prefix === undefined ? bits : Number(prefix)
    if (family === undefined || length > bits)
      throw new InvalidArgumentError('network', 'one such as 10.1.0.0/16 or fd00::/8', range)
    list.addSubnet(address, length, family)
  }
  return list
}
