import { Commands } from '../redis/commands.js'
import { createTopology } from '../redis/connections/connect.js'
import { resolveTarget, type ConnectOptions } from '../redis/options.js'
import { brokenAt, translateError } from '../redis/replies/server-errors.js'
import type { Sender } from '../store/sender.js'
import { resolveSettings, type Tuning } from '../options.js'

/** One server, for commands without a key. Replies have text, also inside arrays; rejections are the package's own errors. */
export interface Server {
  /** `host:port`. */
  readonly address: string
  ask(command: string, ...args: string[]): Promise<unknown>
  /** As `ask`, with bytes in place of text: names of other programs can be no UTF-8. */
  askBytes(command: string, ...args: string[]): Promise<unknown>
}

/** The connections of an examination: a sender that chooses the server by key, and the single servers. */
export interface Access {
  readonly sender: Sender
  readonly isCluster: boolean
  /** Every master; a single one without a cluster. */
  readonly masters: readonly Server[]
  /** Every server that can have subscribers. */
  readonly all: readonly Server[]
  close(): Promise<void>
}

/** Connects as a client of the library, with its time limits and errors. */
export async function openAccess(options: ConnectOptions & Tuning): Promise<Access> {
  const { connectTimeout, commandTimeout, ...target } = options
  const settings = resolveSettings({ connectTimeout, commandTimeout })
  const ignored = (): void => {} // the calls reject with the errors
  const topology = createTopology(resolveTarget(target), settings, ignored, ignored)
  const commands = new Commands(topology, settings)
  const close = async (): Promise<void> => {
    if (topology.connected) await commands.drain()
    await topology.close()
  }
  try {
    const client = await topology.commands()
    const nodes = (role: 'master' | 'all') => ('nodes' in client ? client.nodes(role) : [client]).map(toServer)
    return { sender: commands, isCluster: client.isCluster, masters: nodes('master'), all: nodes('all'), close }
  } catch (error) {
    await close()
    throw error
  }
}

interface Node {
  readonly options: { readonly host?: string | undefined; readonly port?: number | undefined }
  callBuffer(command: string, ...args: string[]): Promise<unknown>
}

function toServer(node: Node): Server {
  const address = `${node.options.host ?? ''}:${node.options.port ?? ''}`
  const askBytes = async (command: string, ...args: string[]): Promise<unknown> => {
    try {
      return await node.callBuffer(command, ...args)
    } catch (thrown) {
      throw brokenAt(address, translateError(thrown))
    }
  }
  return { address, ask: async (command, ...args) => asPlainText(await askBytes(command, ...args)), askBytes }
}

function asPlainText(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString()
  return Array.isArray(reply) ? reply.map(asPlainText) : reply
}
