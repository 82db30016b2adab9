import type { Redis } from 'ioredis'
import { CommandError, ConnectionError, ShutdownError, type RedelayedError } from '../../errors.js'
import type { Emit } from '../../events.js'
import type { Sender } from '../../store/sender.js'
import { RELIABLE_PREFIX } from '../../keys.js'
import type { Settings } from '../../options.js'
import { pause } from '../../timing/pause.js'
import type { Wait } from './durability.js'
import { DurableConnection, type Command, type LaneAnswer } from './durable-connection.js'
import { ReconnectingConnection } from '../connections/reconnecting-connection.js'
import { assertVersion, tooOldForReliable } from '../connections/server-version.js'
import { isRefusedByReplica, translateError } from '../replies/server-errors.js'
import type { IsStale } from '../connections/remote-address.js'
import { NodeGoneError, type Topology } from '../topology/topology.js'
import type { WaitedFor } from '../../store/waited-for.js'

/** Different waits block each other on one connection, so each kind gets its own, as far as that. Per node. */
const MAX_LANES = 4
const RETRY_MS = 100
/** How often a call is sent again when connections break before it is written. */
const MAX_RETRIES = 3

interface Went extends LaneAnswer {
  readonly node: string
  readonly lane: DurableConnection
}

/** Sends writes that are waited for until replicas or the disk have them, on connections of their own. */
export class DurableCommands {
  readonly #topology: Topology
  readonly #settings: Settings
  readonly #emit: Emit
  readonly #scripts: readonly string[]
  /** By node. */
  readonly #lanes = new Map<string, DurableConnection[]>()
  #underWay = 0
  #idle: (() => void) | undefined
  #closed = false

  /** `scripts`: the texts of those that are loaded into each connection. */
  constructor(params: { topology: Topology; settings: Settings; emit: Emit; scripts: readonly string[] }) {
    this.#topology = params.topology
    this.#settings = params.settings
    this.#emit = params.emit
    this.#scripts = params.scripts
  }

  /** For writes to the server that holds `key`; each reply is a `WaitedFor` or an error. */
  sender(key: string, wait: Wait): Pick<Sender, 'pipeline'> {
    return { pipeline: (commands) => this.#send(key, commands, wait) }
  }

  /** A call: a shutdown lets it finish. */
  async trackOperation<T>(action: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new ShutdownError('the client was shut down')
    this.#underWay++
    try {
      return await action()
    } finally {
      if (--this.#underWay === 0) this.#idle?.()
    }
  }

  /** The server there is not the master any more. */
  leave(isStale: IsStale): void {
    for (const lane of this.#all()) lane.leave(isStale)
  }

  /** Refuses new calls, and ends when those under way have ended. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#all().map((lane) => lane.finish()))
    if (this.#underWay > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    await Promise.all(this.#all().map((lane) => lane.close()))
  }

  async #send(key: string, commands: readonly Command[], wait: Wait): Promise<unknown[]> {
    const replies = new Array<WaitedFor | RedelayedError>(commands.length)
    let open = commands.map((_, index) => index)
    const until = performance.now() + this.#settings.connectTimeout
    for (let broken = 0; ;) {
      let went: Went
      try {
        went = await this.#sendOnce(
          key,
          open.map((at) => commands[at] as Command),
          wait,
        )
      } catch (thrown) {
        for (const at of open) replies[at] = translateError(thrown)
        return replies
      }
      open.forEach((at, position) => (replies[at] = went.replies[position] as WaitedFor | RedelayedError))
      open = open.filter((at) => isUndone(replies[at]))
      const [first] = open
      if (first === undefined || this.#closed) return replies
      const why = replies[first]
      const isInTime = isBreak(why) ? broken++ < MAX_RETRIES : performance.now() < until
      // the server that has the key may be unknown at this moment
      if (!isInTime || !(await this.#mayRepeat(key, went, why).catch(() => false))) return replies
    }
  }

  async #sendOnce(key: string, commands: readonly Command[], wait: Wait): Promise<Went> {
    if (key.startsWith(RELIABLE_PREFIX)) {
      await this.#topology.commands() // whose server has said its version then
      if (this.#topology.isBefore62) throw tooOldForReliable()
    }
    const { node } = await this.#topology.place(key)
    const lane = this.#lane(node, wait)
    return { node, lane, ...(await lane.send(commands, wait)) }
  }

  /** Whether what was not carried out can be sent again, there or elsewhere. */
  async #mayRepeat(key: string, { node, lane, redis }: Went, why: unknown): Promise<boolean> {
    if (isBreak(why)) {
      if (redis !== undefined) return true // it broke before anything was written
      if (node === '') return false
      await this.#topology.refresh().catch(() => undefined)
      return (await this.#topology.place(key)).node !== node
    }
    if (isRefusedByReplica(why) && redis !== undefined && node === '') {
      lane.retire(redis)
      await this.#topology.refresh().catch(() => undefined)
      return this.#topology.onDemoted(redis)
    }
    await this.#topology.refresh().catch(() => undefined)
    await pause(RETRY_MS)
    return true
  }

  /** The one that is used for such waits, or a free one, or a new one, or the one with the least to do. */
  #lane(node: string, wait: Wait): DurableConnection {
    const lanes = this.#lanes.get(node) ?? []
    this.#lanes.set(node, lanes)
    const found = lanes.find((lane) => lane.suits(wait)) ?? lanes.find((lane) => lane.idle)
    if (found !== undefined) return found
    if (lanes.length >= MAX_LANES) return lanes.reduce((least, lane) => (lane.size < least.size ? lane : least))
    const lane = this.#open(node)
    lanes.push(lane)
    return lane
  }

  #open(node: string): DurableConnection {
    const link = new ReconnectingConnection({
      address: node === '' ? this.#topology.address : node,
      role: 'durable',
      open: (again) => this.#topology.dedicated(again, node === '' ? undefined : node),
      prepare: (redis) => this.#prepare(redis),
      connectTimeout: this.#settings.connectTimeout,
      emit: this.#emit,
    })
    return new DurableConnection(link, this.#settings.commandTimeout)
  }

  /** The scripts are loaded beforehand, because one that is not known costs a second wait. */
  async #prepare(redis: Redis): Promise<void> {
    await this.#topology.predecessors.end(redis, await assertVersion(redis))
    try {
      await Promise.all(this.#scripts.map((script) => redis.call('SCRIPT', 'LOAD', script)))
    } catch (thrown) {
      if (translateError(thrown) instanceof ConnectionError) throw thrown // who may not load scripts sends the text
    }
  }

  #all(): DurableConnection[] {
    return [...this.#lanes.values()].flat()
  }
}

/** A node that is gone is not: the failover that finds another one may take a while. */
function isBreak(why: unknown): boolean {
  return why instanceof ConnectionError && !(why instanceof NodeGoneError)
}

/** Whether a command was not carried out and may be by another connection or server. */
function isUndone(reply: unknown): boolean {
  if (reply instanceof ConnectionError) return reply.outcome === 'not-applied'
  if (isRefusedByReplica(reply)) return true
  return reply instanceof CommandError && ELSEWHERE.has(reply.redisCode)
}

/** In a cluster, what a node says of a key that another one has, or will have soon. */
const ELSEWHERE = new Set(['MOVED', 'ASK', 'TRYAGAIN', 'CLUSTERDOWN'])
