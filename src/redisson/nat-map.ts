import { InvalidArgumentError, UnsupportedOperationError } from '../errors.js'
import type { Section } from './section.js'

interface Node {
  readonly host: string
  readonly port: number
}

/** How addresses that nodes tell of each other are translated, in ioredis's terms. */
export function natMapOf(mode: string, server: Section): { natMap?: (address: string) => Node | null } {
  if (mode === 'singleServerConfig' || mode === 'masterSlaveServersConfig') return {} // they have no such settings
  const mapper = server.object('natMapper')
  const plain = server.texts('natMap')
  if (mode === 'replicatedServersConfig') {
    // the nodes are reached by the addresses given
    if (mapper === undefined || mapper.javaClass.endsWith('.DefaultNatMapper')) return {}
    throw new UnsupportedOperationError(
      `${server.at('natMapper')}: not with replicated nodes; give the outer addresses`,
    )
  }
  if (mapper === undefined) return plain.size === 0 ? {} : byAddress(server.at('natMap'), plain)
  const { javaClass, settings } = mapper
  switch (javaClass.slice(javaClass.lastIndexOf('.') + 1)) {
    case 'DefaultNatMapper':
      return {}
    case 'HostPortNatMapper':
      return byAddress(settings.at('hostsPortMap'), settings.texts('hostsPortMap'))
    case 'HostNatMapper': {
      const hosts = settings.texts('hostsMap')
      return {
        natMap: (address) => {
          const { host, port } = split(server.path, address)
          const other = hosts.get(host)
          return other === undefined ? null : { host: other, port }
        },
      }
    }
    default:
      throw new UnsupportedOperationError(
        `${server.at('natMapper')}: ${javaClass} is Java code; give its like in code: { ioredis: { natMap } }`,
      )
  }
}

function byAddress(path: string, map: ReadonlyMap<string, string>): { natMap: (address: string) => Node | null } {
  const nodes = new Map([...map].map(([from, to]) => [from, split(path, to)]))
  return { natMap: (address) => nodes.get(address) ?? null }
}

function split(path: string, address: string): Node {
  const [, host, port] = /^\[?(.+?)\]?:(\d+)$/.exec(address.replace(/^[a-z]+:\/\//, '')) ?? []
  if (host === undefined) throw new InvalidArgumentError(path, 'host:port', address)
  return { host, port: Number(port) }
}
