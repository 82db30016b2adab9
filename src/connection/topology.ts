import type { Cluster, Redis } from 'ioredis'
import { ConnectionError } from '../errors.js'

/** Where commands go, and how further connections to the same place are made. */
export interface Topology {
  /**
   * Whether a command may be sent again by the layer below when its connection breaks, so that nobody can tell whether
   * it was carried out once or twice.
   */
  readonly resends: boolean
  /** Whether the next command may go to another server than the last one, with a clock of its own. */
  readonly moves: boolean
  /** Whether commands could be sent now. */
  readonly connected: boolean
  /**
   * Whether what is not connected when a shutdown begins is not worth waiting for: where ioredis keeps commands that it has
   * been given, those would be cut that end well in a moment.
   */
  readonly closesAtOnce: boolean
  /** The client for commands, when it is connected; waits at most `connectTimeout`. */
  commands(): Redis | Cluster | Promise<Redis | Cluster>
  /** The server that holds a key, and the slot: keys of different slots cannot share a command. */
  place(key: string): Place | Promise<Place>
  /**
   * A new, unconnected client for pub/sub or blocking reads; on the server `node`, or on any. `again`: the last one came to
   * nothing, or to an end, so that what is known of the servers may be out of date.
   */
  dedicated(again: boolean, node?: string): Redis | Promise<Redis>
  /** Another connection to the server behind a dedicated client, if there is one now; it is opened when there may be. */
  beside(dedicated: Redis): Redis | undefined
  /** Called when a dedicated client met a server that is not the right one any more: looks whether that holds for all. */
  refresh(): Promise<void>
  /**
   * The server behind the commands' client is not the master any more. Such a server keeps its connections, so this one is
   * given up, and those beside it. Whether the master can be looked for: then the command, which was refused, can be sent
   * again.
   */
  onDemoted(client: Redis | Cluster): boolean
  close(): Promise<void>
}

/** A cluster's node that was a master does not exist any more, or is a replica now: its keys live elsewhere. */
export class NodeGoneError extends ConnectionError {
  constructor(node: string) {
    super(`no master ${node} is known in the cluster`, 'not-applied')
  }
}

/** The user's client was ended by the user: waiting does not help. */
export class ClientEndedError extends ConnectionError {
  constructor(cause: Error | undefined) {
    super('the ioredis client has ended', 'not-applied', { cause })
  }
}

export interface Place {
  /** `host:port` in a cluster; the same for all keys elsewhere. */
  readonly node: string
  readonly slot: number
}

/** Without a cluster there is one place for everything. */
export const ONE_PLACE: Place = Object.freeze({ node: '', slot: 0 })
