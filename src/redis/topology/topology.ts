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
  /** Set when the client for commands may keep a command without end, so that the command needs a limit. */
  readonly watch: SilenceWatch | undefined
  /** Whether the next command may go to another server than the last one, with a clock of its own. */
  readonly moves: boolean
  /** The addresses of the servers, for errors. */
  readonly address: string
  /** Why there is no connection yet, where that is known; for errors. */
  readonly problem: string | undefined
  /** The connections of this client that broke; only of its own connections, which never resend by themselves. */
  readonly predecessors: Predecessors
  /**
   * Whether a command that was sent for `key` after `since`, by the monotonic clock, on a connection that broke, cannot be carried out any more. Rejects
   * when its server cannot be reached.
   */
  isOver(key: string, since: number): Promise<boolean>
  /** Whether the server has reported a version below 6.2. */
  readonly isBefore62: boolean
  /** Whether commands could be sent now. */
  readonly connected: boolean
  /** The commands that wait for a reply, in their order, where nothing else limits how long they do. */
  inFlight(): readonly object[]
  /**
   * Whether a shutdown need not wait for connections that are not open when it begins. Where ioredis keeps commands,
   * that would abort commands that are about to succeed.
   */
  readonly closesAtOnce: boolean
  /**
   * A connection broke during a command: the promise to await before it is sent again, if the retry does not await the next connection
   * by itself.
   */
  recover(): Promise<void> | undefined
  /** The client for commands, when it is connected; waits at most `connectTimeout`. */
  commands(): Redis | Cluster | Promise<Redis | Cluster>
  /** Keys of different slots cannot share a command. */
  slotOf(key: string): number
  /** The server that holds a key, and the slot; waits at most `connectTimeout`. */
  place(key: string): Place | Promise<Place>
  /**
   * A new, unconnected client for pub/sub or blocking reads; on the server `node`, or on any. `again`: the last one failed
   * or ended, so the known addresses may be out of date.
   */
  dedicated(again: boolean, node?: string): Redis | Promise<Redis>
  /** Another connection to the server of a dedicated client, if there is one now; opens one if there may be one later. */
  beside(dedicated: Redis): Redis | undefined
  /** Called when the server of a dedicated client is not the right one any more: checks all connections. */
  refresh(): Promise<void>
  /**
   * In a cluster, the connections of commands to all masters that serve slots.
   * @throws {ConnectionError} when one of them is not connected
   */
  masters?(): Promise<Redis[]>
  /**
   * The server of the client for commands is not the master any more. Such a server keeps its connections, so this one is
   * given up, and the others to it. Returns whether the client can search for the master: then the refused command can be sent
   * again.
   */
  onDemoted(client: Redis | Cluster): boolean
  close(): Promise<void>
}

/** A cluster's node that was a master does not exist any more, or is a replica now: its keys are on other nodes. */
export class NodeGoneError extends ConnectionError {
  constructor(node: string) {
    super(`no master ${node} is known in the cluster`, 'not-applied')
  }
}

/** The user ended the user's client: waiting does not help. */
export class ClientEndedError extends ConnectionError {
  constructor(cause: Error | undefined) {
    super('the ioredis client has ended', 'not-applied', { cause })
  }
}

/** Long enough for a connection that is being opened. */
const FIRST_CONNECTION_MS = 500

/** The error of a wait that ended when waiting had never worked; none if there was hardly time to connect. */
export function noConnectionYet(triedForMs: number, topology: Unreached): ConnectionError | undefined {
  if (triedForMs < FIRST_CONNECTION_MS || topology.connected) return undefined
  const what = 'there was no connection to Redis yet when the timeout of the wait was over'
  return new ConnectionError(`${what}, at ${whereAndWhy(topology)}`, 'not-applied')
}

type Unreached = Pick<Topology, 'address' | 'problem' | 'connected'>

/** The address, and what is wrong there. */
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
