import type { Cluster, Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import type { Settings } from '../../options.js'
import type { Emit } from '../../events.js'
import { addressOfClient } from '../connections/address.js'
import { guardNodes } from './cluster-nodes.js'
import { firstAnswer } from './first-answer.js'
import { atMost, pause } from '../../timing/pause.js'
import { QUIT_TIMEOUT_MS, abandon, leaveQuietly } from '../connections/disconnect.js'
import type { IsStale } from '../connections/remote-address.js'
import { keySlot } from './key-slot.js'
import { Predecessors } from '../connections/predecessors.js'
import { OVERRIDES } from '../connections/ioredis-defaults.js'
import { warnOfEviction } from '../eviction.js'
import { Readiness } from '../readiness.js'
import { assertVersion, ServerAge } from '../connections/server-version.js'
import { ownNodesOf } from './own-nodes.js'
import { SilenceWatch } from '../replies/silence-watch.js'
import { askSideBySide, checkSideBySide } from './slot-requests.js'
import { NodeGoneError, type Place, type Topology } from './topology.js'

/** The pause before a command is sent again whose connection broke, because a failover takes a while. */
const RECOVER_MS = 100

const MOVED =
  'leads to another cluster than before, with data of its own: the client uses that one now, until the configured addresses lead back'

/**
 * A cluster; ioredis follows its redirections. This package's own Cluster client never resends a command that may have been carried out; a
 * client of the user does when a connection breaks.
 */
export class ClusterTopology implements Topology {
  readonly resends: boolean
  readonly closesAtOnce = false
  readonly comparesServers = false // nodes are known by their ids
  readonly predecessors = new Predecessors()
  readonly age: ServerAge
  readonly moves = true
  readonly watch: SilenceWatch
  readonly #cluster: Cluster
  readonly #owned: boolean
  readonly #ready: Readiness
  readonly #onError = (): void => {}
  readonly #endGuard: () => void
  readonly #endRequests: () => void
  readonly #endMoves: () => void
  #closing: Promise<void> | undefined
  #refreshing: Promise<void> | undefined

  constructor(params: {
    cluster: Cluster
    owned: boolean
    settings: Settings
    emit: Emit
    /** Drops the connections of waits, announcements and durable offers that are stale. */
    onStale: (isStale: IsStale) => void
  }) {
    const { cluster, owned, settings, emit, onStale } = params
    this.#cluster = cluster
    this.#owned = owned
    this.resends = !owned
    this.watch = new SilenceWatch({
      nodes: () => cluster.nodes('all'),
      limitMs: settings.commandTimeout,
      onDropped: (error) => {
        emit('reconnecting', { connection: 'commands', attempt: 1, delayMs: 0, error })
        void this.refresh() // a replica may have taken its place
      },
    })
    this.#endRequests = owned ? askSideBySide(cluster) : () => {}
    this.#endGuard = guardNodes(cluster, owned)
    this.#endMoves = ownNodesOf(cluster).onMoved((own) => {
      const movedAt = performance.now()
      if (own === undefined) emit('warning', { code: 'REDELAYED_SERVERS', message: `${this.address} ${MOVED}` })
      // they would wait at the other cluster for what calls add at this one
      onStale((remote, begunAt) => begunAt < movedAt && own?.has(remote) !== true)
    })
    // calls report the errors; without a listener ioredis would print them
    if (owned) {
      checkSideBySide(cluster)
      cluster.on('error', this.#onError)
      cluster.on('+node', (node: Redis) => {
        this.#learn(node)
        const duplicate = node.duplicate.bind(node)
        node.duplicate = (override) => leaveQuietly(duplicate(override)) // the copy asks for the slots
      })
    }
    // connected ones first: they answered a moment ago
    const masters = (): Redis[] =>
      cluster.nodes('master').sort((one, other) => Number(other.status === 'ready') - Number(one.status === 'ready'))
    this.age = new ServerAge(() => firstAnswer(masters(), assertVersion))
    const inspect = async (): Promise<void> => {
      const asked = masters()
      if (asked.length === 0) return
      const ask = (master: Redis): Promise<string | undefined> => {
        void warnOfEviction(master, emit)
        return assertVersion(master)
      }
      this.age.learn(await firstAnswer(asked, ask))
    }
    this.#ready = new Readiness(cluster, settings.connectTimeout, inspect, this.watch)
  }

  get address(): string {
    return addressOfClient(this.#cluster)
  }

  get connected(): boolean {
    // for ioredis the cluster is ready while it knows a node, even one to which it never connected
    return this.#ready.now && this.#isAnyReady()
  }

  get problem(): string | undefined {
    return this.#ready.problem
  }

  inFlight(): readonly object[] {
    return [] // `KeptCommands` limits each
  }

  commands(): Cluster | Promise<Cluster> {
    return this.#ready.now ? this.#cluster : this.#ready.wait().then(() => this.#cluster)
  }

  async dedicated(again: boolean, node?: string): Promise<Redis> {
    await this.#ready.wait()
    if (again) await this.refresh() // another node may have taken its place
    const masters = this.#cluster.nodes('master')
    const chosen =
      node === undefined
        ? masters[Math.floor(Math.random() * masters.length)]
        : masters.find((master) => addressOf(master) === node)
    if (chosen === undefined) {
      if (node !== undefined) throw new NodeGoneError(node)
      throw new ConnectionError('no master is known in the cluster', 'not-applied')
    }
    return chosen.duplicate(OVERRIDES)
  }

  arrived(): void {}

  beside(dedicated: Redis): Redis | undefined {
    return this.#cluster.nodes('all').find((other) => addressOf(other) === addressOf(dedicated))
  }

  slotOf(key: string): number {
    return keySlot(key)
  }

  async place(key: string): Promise<Place> {
    await this.#ready.wait()
    const slot = this.slotOf(key)
    const node = this.#cluster.slots[slot]?.[0]
    if (node === undefined) throw new ConnectionError(`no master serves slot ${slot}`, 'not-applied')
    return { node, slot }
  }

  async masters(): Promise<Redis[]> {
    await this.#ready.wait()
    // ioredis forgets a node whose connection has ended, so only the table of slots knows all masters
    const serving = (): string[] => [...new Set(this.#cluster.slots.flatMap((nodes) => nodes?.[0] ?? []))]
    const connected = (): Map<string, Redis> =>
      new Map(this.#cluster.nodes('master').map((master) => [addressOf(master), master]))
    const isComplete = (): boolean => serving().length > 0 && serving().every((address) => connected().has(address))
    if (!isComplete()) await this.refresh()
    const masters = connected()
    if (serving().length === 0) throw new ConnectionError('no master is known in the cluster', 'not-applied')
    return serving().map((address) => {
      const master = masters.get(address)
      if (master === undefined) throw new ConnectionError(`the master ${address} is not connected`, 'not-applied')
      return master
    })
  }

  refresh(): Promise<void> {
    this.#refreshing = new Promise((resolve) => this.#cluster.refreshSlotsCache(() => resolve()))
    return this.#refreshing
  }

  async isOver(key: string, since: number): Promise<boolean> {
    if (!this.#owned) return this.predecessors.areOver(since) // ioredis repeats by itself and at once
    await this.refresh()
    const { node, slot } = await this.place(key)
    const master = this.#cluster.nodes('master').find((each) => addressOf(each) === node)
    if (master === undefined) throw new ConnectionError(`the master of slot ${slot} is not connected`, 'not-applied')
    const areEnded = await this.predecessors.end(master, await assertVersion(master))
    return areEnded && this.predecessors.areOver(since)
  }

  recover(): Promise<void> | undefined {
    if (!this.#owned) return undefined // a client of the user has asked for the slots and resent the command by itself
    return Promise.all([this.refresh(), pause(RECOVER_MS)]).then(() => undefined)
  }

  onDemoted(): boolean {
    return false // ioredis follows the redirections
  }

  /** Learns the connection of a node: ioredis creates another client when this one has ended. */
  #learn(node: Redis): void {
    const { predecessors } = this
    const learn = (): void => void predecessors.learn(node).catch(() => undefined)
    node.once('connect', learn)
    node.once('ready', () => {
      predecessors.note(node)
      if (!predecessors.knows(node)) learn() // a server with a password may refuse to answer before
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const cluster = this.#cluster
    this.#ready.close()
    this.#endGuard()
    this.#endMoves()
    this.watch.stop()
    // the cluster's own connections, which the user's code may have left open
    if (this.#refreshing !== undefined) await atMost(QUIT_TIMEOUT_MS, this.#refreshing)
    this.#endRequests()
    if (!this.#owned) return
    if (this.#isAnyReady()) await atMost(QUIT_TIMEOUT_MS, cluster.quit())
    const ended = cluster.nodes('all').map((node) => new Promise((resolve) => node.once('end', resolve)))
    cluster.nodes('all').forEach(abandon)
    cluster.disconnect()
    await atMost(QUIT_TIMEOUT_MS, Promise.all(ended))
    if (cluster.status === 'end') return
    // Without a node, as between two attempts to connect, ioredis's `quit` would never end, nor would the commands that it keeps for
    // the next connection. A cluster that was never connected it ends at once.
    cluster.status = 'wait'
    cluster.disconnect()
  }

  #isAnyReady(): boolean {
    return this.#cluster.nodes('all').some((node) => node.status === 'ready')
  }
}

function addressOf(redis: Redis): string {
  return `${redis.options.host}:${redis.options.port}`
}
