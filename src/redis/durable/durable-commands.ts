import type { Redis } from 'ioredis'
import { CommandError, ConnectionError, ShutdownError, type RedelayedError } from '../../errors.js'
import type { Emit } from '../../events.js'
import type { Sender } from '../../store/sender.js'
import { RELIABLE_PREFIX } from '../../keys.js'
import type { Settings } from '../../options.js'
import { atMost, pause } from '../../timing/pause.js'
import type { Wait } from './durability.js'
import type { Command } from '../../store/sender.js'
import { DurableConnection, type Sent } from './durable-connection.js'
import { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { assertVersion, tooOldForReliable } from '../connections/server-version.js'
import { isRefusedByReplica, translateError } from '../replies/server-errors.js'
import type { IsStale } from '../connections/remote-address.js'
import { NodeGoneError, type Topology } from '../topology/topology.js'
import type { WaitedFor } from '../../store/durable-scripts.js'

/** The most durable connections per node: different waits block each other on one connection, so each kind gets its own. */
const MAX_CONNECTIONS = 4
const RETRY_MS = 100
/** The most retries of a call while connections break before it is written. */
const MAX_RETRIES = 3
/** How long asking for the slots may take after the wait for a connection has used up the time of the call. */
const REFRESH_MS = 2_000

interface SentFrom extends Sent {
  readonly node: string
  readonly connection: DurableConnection
}

/** Sends writes on connections of their own, and waits until replicas or the disk have them. */
export class DurableCommands {
  readonly #topology: Topology
  readonly #settings: Settings
  readonly #emit: Emit
  readonly #scripts: readonly string[]
  /** The connections by node. */
  readonly #connections = new Map<string, DurableConnection[]>()
  #underWay = 0
  #idle: (() => void) | undefined
  #closed = false

  /** `scripts`: the texts of the scripts to load on each connection. */
  constructor(params: { topology: Topology; settings: Settings; emit: Emit; scripts: readonly string[] }) {
    this.#topology = params.topology
    this.#settings = params.settings
    this.#emit = params.emit
    this.#scripts = params.scripts
  }

  /** A sender for writes to the server that holds `key`; each reply is a `WaitedFor` or an error. */
  sender(key: string, wait: Wait): Pick<Sender, 'pipeline'> {
    return { pipeline: (commands) => this.#send(key, commands, wait) }
  }

  /** Runs a call; a shutdown lets it finish. */
  async trackOperation<T>(action: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new ShutdownError('the client was shut down')
    this.#underWay++
    try {
      return await action()
    } finally {
      if (--this.#underWay === 0) this.#idle?.()
    }
  }

  /** Drops the connections to a server that is no longer the master. */
  leave(isStale: IsStale): void {
    for (const connection of this.#all()) connection.leave(isStale)
  }

  /** Refuses new calls, and resolves when those in flight have ended. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#all().map((connection) => connection.finish()))
    if (this.#underWay > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    await Promise.all(this.#all().map((connection) => connection.close()))
  }

  async #send(key: string, commands: readonly Command[], wait: Wait): Promise<unknown[]> {
    const replies = new Array<WaitedFor | RedelayedError>(commands.length)
    let open = commands.map((_, index) => index)
    const until = performance.now() + this.#settings.connectTimeout
    for (let broken = 0; ;) {
      let sent: SentFrom
      try {
        sent = await this.#sendOnce(
          key,
          open.map((at) => commands[at] as Command),
          wait,
        )
      } catch (thrown) {
        for (const at of open) replies[at] = translateError(thrown)
        return replies
      }
      open.forEach((at, position) => (replies[at] = sent.replies[position] as WaitedFor | RedelayedError))
      open = open.filter((at) => isUndone(replies[at]))
      const [first] = open
      if (first === undefined || this.#closed) return replies
      const why = replies[first]
      const isInTime = isBreak(why) ? broken++ < MAX_RETRIES : performance.now() < until
      // the server of the key may be unknown at this moment
      if (!isInTime || !(await this.#mayRepeat(key, sent, why, until).catch(() => false))) return replies
    }
  }

  async #sendOnce(key: string, commands: readonly Command[], wait: Wait): Promise<SentFrom> {
    if (key.startsWith(RELIABLE_PREFIX)) {
      await this.#topology.commands() // after this the server's version is known
      if (await this.#topology.age.isTooOld()) throw tooOldForReliable()
    }
    const { node } = await this.#topology.place(key)
    const connection = this.#connectionFor(node, wait)
    return { node, connection, ...(await connection.send(commands, wait)) }
  }

  /**
   * Whether writes that were not carried out can be sent again, on this node or another one. Limited in time, because all nodes of a
   * cluster can be silent when asked for the slots.
   */
  async #mayRepeat(key: string, { node, connection, redis }: SentFrom, why: unknown, until: number): Promise<boolean> {
    if (isBreak(why)) {
      if (redis !== undefined) return true // the connection broke before the writes were sent
      if (node === '') return false
      await atMost(Math.max(REFRESH_MS, until - performance.now()), this.#topology.refresh())
      return (await this.#topology.place(key)).node !== node
    }
    if (isRefusedByReplica(why) && redis !== undefined && node === '') {
      connection.retire(redis)
      await atMost(Math.max(0, until - performance.now()), this.#topology.refresh())
      return this.#topology.onDemoted(redis)
    }
    await atMost(Math.max(0, until - performance.now()), this.#topology.refresh())
    await pause(RETRY_MS)
    return true
  }

  /** The connection last used for such a wait, or else a free one, a new one, or the one with the fewest calls. */
  #connectionFor(node: string, wait: Wait): DurableConnection {
    const connections = this.#connections.get(node) ?? []
    this.#connections.set(node, connections)
    const found =
      connections.find((connection) => connection.suits(wait)) ?? connections.find((connection) => connection.idle)
    if (found !== undefined) return found
    if (connections.length >= MAX_CONNECTIONS)
      return connections.reduce((least, connection) => (connection.size < least.size ? connection : least))
    const connection = this.#open(node)
    connections.push(connection)
    return connection
  }

  #open(node: string): DurableConnection {
    const connection = new ReconnectingConnection({
      address: node === '' ? this.#topology.address : node,
      role: 'durable',
      open: (again) => this.#topology.dedicated(again, node === '' ? undefined : node),
      prepare: (redis) => this.#prepare(redis),
      connectTimeout: this.#settings.connectTimeout,
      emit: this.#emit,
    })
    return new DurableConnection(connection, this.#settings.commandTimeout)
  }

  /** Loads the scripts in advance, because an unknown script costs a second wait. */
  async #prepare(redis: Redis): Promise<void> {
    const info = await assertVersion(redis)
    this.#topology.arrived(redis, info)
    await this.#topology.predecessors.end(redis, info)
    try {
      await Promise.all(this.#scripts.map((script) => redis.call('SCRIPT', 'LOAD', script)))
    } catch (thrown) {
      if (translateError(thrown) instanceof ConnectionError) throw thrown // for a user without the right to load scripts their text is sent
    }
  }

  #all(): DurableConnection[] {
    return [...this.#connections.values()].flat()
  }
}

/** Whether a connection broke. A missing node does not count, because a failover may take a while. */
function isBreak(why: unknown): boolean {
  return why instanceof ConnectionError && !(why instanceof NodeGoneError)
}

/** Whether a command was not carried out and may succeed on another connection or server. */
function isUndone(reply: unknown): boolean {
  if (reply instanceof ConnectionError) return reply.outcome === 'not-applied'
  if (isRefusedByReplica(reply)) return true
  return reply instanceof CommandError && ELSEWHERE.has(reply.redisCode)
}

/** In a cluster, the errors for a key that another node has, or will have soon. */
const ELSEWHERE = new Set(['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN'])
