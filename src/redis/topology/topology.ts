import type { Cluster, Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import type { Predecessors } from '../connections/predecessors.js'
import type { SilenceWatch } from '../replies/silence-watch.js'

/** Where commands go, and how further connections to the same place are made. */
export interface Topology {
  /**
   * Whether the layer below may resend a command when its connection breaks, so that it is unknown whether the command ran once or
   * twice.
   */
  readonly resends: boolean
  /** Where the client for commands may keep a command without end: what is sent there needs a limit, and this. */
  readonly watch: SilenceWatch | undefined
  /** Whether the next command may go to another server than the last one, with a clock of its own. */
  readonly moves: boolean
  /** Where connections are looked for, for errors. */
  readonly address: string
  /** Of the connections that are this client's own, and never send anything again by themselves. */
  readonly predecessors: Predecessors
  /**
   * Whether what was sent for `key` after `since`, by the monotonic clock, on a connection that broke, is not carried out any more. Rejects
   * when its server cannot be reached.
   */
  isOver(key: string, since: number): Promise<boolean>
  /** Whether the server is older than 6.2, as far as it has said. */
  readonly isBefore62: boolean
  /** Whether commands could be sent now. */
  readonly connected: boolean
  /**
   * Whether what is not connected when a shutdown begins is not worth waiting for: where ioredis keeps commands that it has
   * been given, those would be cut that end well in a moment.
   */
  readonly closesAtOnce: boolean
  /**
   * A connection broke under a command: what to wait for before it is sent again, where the next connection is not waited for
   * anyway.
   */
  recover(): Promise<void> | undefined
  /** The client for commands, when it is connected; waits at most `connectTimeout`. */
  commands(): Redis | Cluster | Promise<Redis | Cluster>
  /** Keys of different slots cannot share a command. */
  slotOf(key: string): number
  /** The server that holds a key, and the slot; waits at most `connectTimeout`. */
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

/** Long enough for a connection that is just being opened. */
const FIRST_CONNECTION_MS = 500

/** Why a wait that has never worked got nothing within its timeout; none where there was hardly the time to connect. */
export function noConnectionYet(triedForMs: number): ConnectionError | undefined {
  if (triedForMs < FIRST_CONNECTION_MS) return undefined
  return new ConnectionError(
    'there was no connection to Redis yet when the timeout of the wait was over',
    'not-applied',
  )
}

export interface Place {
  /** `host:port` in a cluster; the same for all keys elsewhere. */
  readonly node: string
  readonly slot: number
}

/** Without a cluster there is one place for everything. */
export const ONE_PLACE: Place = Object.freeze({ node: '', slot: 0 })
