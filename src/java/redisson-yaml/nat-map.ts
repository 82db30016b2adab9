import { InvalidArgumentError, UnsupportedOperationError } from '../../errors.js'
import type { Section } from './section.js'

interface Node {
  readonly host: string
  readonly port: number
}

/** The `natMap` of ioredis, which translates the addresses that nodes report of each other. */
export function natMapOf(mode: string, server: Section): { natMap?: (address: string) => Node | null } {
  if (mode === 'singleServerConfig' || mode === 'masterSlaveServersConfig') return {} // they have no such settings
  const mapper = server.object('natMapper')
  const plain = server.texts('natMap')
  if (mode === 'replicatedServersConfig') {
    // the client connects to the addresses given
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
        // a node may report any text as another's address, such as ":6379" for one that has just started
        natMap: (address) => {
          const node = split(address)
          const other = node === null ? undefined : hosts.get(node.host)
          return node === null || other === undefined ? null : { host: other, port: node.port }
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
  const nodes = new Map([...map].map(([from, to]) => [from, required(path, to)]))
  return { natMap: (address) => nodes.get(address) ?? null }
}

function split(address: string): Node | null {
  const [, host, port] = /^\[?(.+?)\]?:(\d+)$/.exec(address.replace(/^[a-z]+:\/\//, '')) ?? []
  return host === undefined ? null : { host, port: Number(port) }
}

function required(path: string, address: string): Node {
  const node = split(address)
  if (node === null) throw new InvalidArgumentError(path, 'host:port', address)
  return node
}
