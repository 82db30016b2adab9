import type { Cluster, Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import type { Predecessors } from '../connections/predecessors.js'
import type { ServerAge } from '../connections/server-version.js'
import type { SilenceWatch } from '../replies/silence-watch.js'

/** The client for commands, and the way to open further connections to the same servers. */
export interface Topology {
  /**
   * Whether ioredis may resend a command when its connection breaks, so that the command may run
   * twice.
   */
  readonly resends: boolean
  /** Set when the client for commands may keep a command without end, so that the command needs a limit. */
  readonly watch: SilenceWatch | undefined
  /** Whether the next command may go to another server, with a clock of its own. */
  readonly moves: boolean
  /** The addresses of the servers, for errors. */
  readonly address: string
  /** The known reason for no connection yet, for errors. */
  readonly problem: string | undefined
  /** The connections of this client that broke; only of its own connections, which never resend by themselves. */
  readonly predecessors: Predecessors
  /**
   * Whether a command that was sent for `key` after `since`, by the monotonic clock, on a connection that broke, can no longer be carried
   * out. Rejects if its server cannot be reached.
   */
  isOver(key: string, since: number): Promise<boolean>
  /** Whether the server is too old for reliable queues. */
  readonly age: ServerAge
  /** Whether commands could be sent now. */
  readonly connected: boolean
  /** The commands that wait for a reply without another limit, in their order. */
  inFlight(): readonly object[]
  /**
   * Whether a shutdown need not wait for connections that are not open when it begins. False if ioredis keeps commands,
   * because that would abort commands that are about to succeed.
   */
  readonly closesAtOnce: boolean
  /**
   * The promise to await before a command whose connection broke is sent again; undefined if the retry awaits the next connection
   * anyway.
   */
  recover(): Promise<void> | undefined
  /** The connected client for commands; waits at most `connectTimeout`. */
  commands(): Redis | Cluster | Promise<Redis | Cluster>
  /** The slot of a key; keys of different slots cannot share a command. */
  slotOf(key: string): number
  /** The server that holds a key, and the slot; waits at most `connectTimeout`. */
  place(key: string): Place | Promise<Place>
  /**
   * A new, unconnected client for pub/sub or blocking reads, of the server `node` or of any. `again`: the last client failed
   * or ended, so the known addresses may be outdated.
   */
  dedicated(again: boolean, node?: string): Redis | Promise<Redis>
  /** Whether `arrived` compares the server of a dedicated client with the others, for which it needs that server's INFO. */
  readonly comparesServers: boolean
  /**
   * A dedicated client has been connected; `info` is its server's INFO, if known. Where all connections are meant for one master, the
   * others follow it.
   * @throws {ConnectionError} it leads to another server than the others, which do not follow it now
   */
  arrived(dedicated: Redis, info: string | undefined): void
  /** Another connection to the server of a dedicated client, if there is one now; opens one if there may be one later. */
  beside(dedicated: Redis): Redis | undefined
  /** Checks all connections, because the server of a dedicated client is no longer the right one. */
  refresh(): Promise<void>
  /**
   * In a cluster, the connections of commands to all masters that serve slots.
   * @throws {ConnectionError} when one of them is not connected
   */
  masters?(): Promise<Redis[]>
  /**
   * Drops all connections to a server that is no longer the master, because such a server keeps its
   * connections. Returns whether the client can search for the master, so that the refused command can be sent
   * again.
   */
  onDemoted(client: Redis | Cluster): boolean
  close(): Promise<void>
}

/** A master of a cluster no longer exists, or is a replica now: its keys are on other nodes. */
export class NodeGoneError extends ConnectionError {
  constructor(node: string) {
    super(`no master ${node} is known in the cluster`, 'not-applied')
  }
}

/** The user has ended the client that was passed in, so waiting does not help. */
export class ClientEndedError extends ConnectionError {
  constructor(cause: Error | undefined) {
    super('the ioredis client has ended', 'not-applied', { cause })
  }
}

/** The time that opening the first connection may take. */
const FIRST_CONNECTION_MS = 500

/** The error of a wait that ended before any connection; none if there was hardly time to connect. */
export function noConnectionYet(triedForMs: number, topology: Unreached): ConnectionError | undefined {
  if (triedForMs < FIRST_CONNECTION_MS || topology.connected) return undefined
  const what = 'there was no connection to Redis yet when the timeout of the wait was over'
  return new ConnectionError(`${what}, at ${whereAndWhy(topology)}`, 'not-applied')
}

type Unreached = Pick<Topology, 'address' | 'problem' | 'connected'>

/** The address, and the problem there. */
export function whereAndWhy({ address, problem }: Omit<Unreached, 'connected'>): string {
  return problem === undefined ? address : `${address}: ${problem}`
}

export interface Place {
  /** `host:port` in a cluster; the same for all keys elsewhere. */
  readonly node: string
  readonly slot: number
}

/** Without a cluster all keys have the same place. */
export const ONE_PLACE: Place = Object.freeze({ node: '', slot: 0 })
