import type { Cluster, Redis } from 'ioredis'
import { idsIn, idsOf } from './node-ids.js'
import { StrangerWatch } from './stranger-watch.js'
import { WayBack, type Seed } from './way-back.js'

type Callback = (error?: Error) => void

interface Address {
  readonly host?: string | undefined
  readonly port?: number | undefined
}

/** Private members of ioredis. */
interface Internals {
  readonly isRefreshing: boolean
  readonly connectionPool: {
    findOrCreate(node: Address): Redis
    /** A version may lack it. */
    recreate?: (node: Address, readOnly?: boolean) => Redis
  }
  refreshSlotsCache(callback?: Callback): void
}

/** How long another cluster must be the only one that answers before the client follows it, if some nodes do not answer. */
const REPLACED_MS = 30_000
/** The same if it answers at all addresses: a proxy or a name server can lead there for a moment. */
const ALL_REPLACED_MS = 5_000
/** The time before own nodes without an answer are asked again: ioredis has no reason to while another cluster carries out the calls. */
const AGAIN_MS = 1_000
/**
 * Called when the client changes clusters: without an argument when it goes to another one; with the addresses of its own nodes when it
 * stops using foreign nodes that a table had named as its own.
 */
type OnMoved = (own?: ReadonlySet<string>) => void

const known = new WeakMap<Cluster, OwnNodes>()

/** The `OwnNodes` of a Cluster, shared by all clients on a Cluster of the user. */
export function ownNodesOf(cluster: Cluster): OwnNodes {
  const nodes = known.get(cluster) ?? new OwnNodes(cluster)
  known.set(cluster, nodes)
  return nodes
}

/**
 * Recognizes a cluster by the ids of its nodes. If a node redirects to another cluster, or its address now belongs to another cluster, that
 * cluster's table of slots would lead ioredis away from all own nodes, and never back. So such a table is accepted only when the own
 * cluster is gone: all its addresses belong to the other one, or none has answered for a while. The way back from there: `WayBack`.
 */
export class OwnNodes {
  readonly #cluster: Cluster
  readonly #internals: Internals
  readonly #refresh: Internals['refreshSlotsCache']
  #ids: ReadonlySet<string> = new Set()
  #addresses: readonly Address[] = []
  /** Whether a connection to an own node was ever ready: a table of unreachable addresses is not a reason to refuse all others. */
  #wasReached = false
  /** The number of nodes to ask in this round; `#strangers` of them belong to another cluster. */
  #asked = 0
  #strangers = 0
  /** When the first node of another cluster was refused since an own node answered. */
  #since: number | undefined
  #timer: NodeJS.Timeout | undefined
  /** The ids of the cluster that is about to be left for another one. */
  #leaving: ReadonlySet<string> | undefined
  /** The connections of that cluster, until the pool has those of the other one. */
  #old: readonly Redis[] = []
  readonly #listeners = new Set<OnMoved>()
  readonly #strangerWatch: StrangerWatch
  readonly #wayBack: WayBack

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    this.#internals = cluster as unknown as Internals
    this.#refresh = this.#internals.refreshSlotsCache.bind(cluster)
    this.#internals.refreshSlotsCache = (callback) => this.#refreshFrom(callback)
    this.#wayBack = new WayBack({
      cluster,
      current: () => this.#ids,
      onBack: (ids, seeds) => this.#goBack(ids, seeds),
    })
    this.#strangerWatch = new StrangerWatch({
      cluster,
      ids: () => this.#ids,
      onFound: () => {
        if (this.#cluster.status === 'ready') this.#internals.refreshSlotsCache()
      },
      onLeft: (own) => this.#notify(own),
    })
    cluster.on('end', () => {
      clearTimeout(this.#timer)
      this.#strangerWatch.end()
      this.#wayBack.end()
    })
    // a Cluster of the user can be connected again
    cluster.on('ready', () => this.#listeners.size > 0 && this.#strangerWatch.begin())
    cluster.on('+node', (node: Redis) => {
      node.once('ready', () => {
        this.#wasReached = true
        void this.#strangerWatch.onReady(node)
      })
    })
  }

  #notify(own?: ReadonlySet<string>): void {
    for (const listener of this.#listeners) listener(own)
  }

  /** Calls `listener` with each move, until the returned function is called. */
  onMoved(listener: OnMoved): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) {
      this.#wayBack.begin()
      this.#strangerWatch.begin()
    }
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#wayBack.end()
      this.#strangerWatch.end()
    }
  }

  /** The refresh of ioredis, which asks one node after the other until one returns a table that is accepted. */
  #refreshFrom(callback?: Callback): void {
    if (!this.#internals.isRefreshing) this.#beginRound()
    const wereRefused = this.#since !== undefined
    this.#refresh((error) => {
      if (!error) this.#onAccepted()
      const onlyStrangers = Boolean(error) && this.#strangers > 0 && !isClosing(this.#cluster)
      if (onlyStrangers && this.#mayAskAgain(wereRefused)) {
        // ioredis loses a request made within a callback
        process.nextTick(() => this.#refreshFrom(callback))
        return
      }
      callback?.(error)
      if (onlyStrangers) this.#askLater()
    })
  }

  #beginRound(): void {
    // ioredis forgets the nodes whose connections break
    if (this.#since !== undefined)
      for (const address of this.#addresses) this.#internals.connectionPool.findOrCreate(address)
    this.#asked = this.#cluster.nodes('all').length
    this.#strangers = 0
  }

  #onAccepted(): void {
    this.#addresses = this.#cluster.nodes('master').map(({ options: { host, port } }) => ({ host, port }))
    this.#wasReached ||= this.#cluster.nodes('all').some(({ status }) => status === 'ready')
    this.#dropOld()
  }

  /** Replaces the connections that still lead to the cluster that was left: both can have the same addresses. */
  #dropOld(): void {
    if (this.#old.length === 0) return
    const current = new Set(this.#cluster.nodes('all'))
    const same = this.#old.filter((node) => current.has(node))
    this.#old = []
    const pool = this.#internals.connectionPool
    for (const node of same) {
      const { host, port, readOnly } = node.options
      if (pool.recreate === undefined) node.disconnect()
      else pool.recreate({ host, port }, readOnly)
    }
    this.#notify()
  }

  /** The configured addresses lead back to a cluster that was left: its tables are accepted again, and only these. */
  #goBack(ids: ReadonlySet<string>, seeds: readonly Seed[]): void {
    if (isClosing(this.#cluster) || this.#listeners.size === 0) return
    this.#leaving ??= this.#ids
    this.#ids = ids
    this.#since = undefined
    for (const seed of seeds) this.#internals.connectionPool.findOrCreate({ ...seed })
    this.#internals.refreshSlotsCache()
  }

  /** After the first refusals the own nodes are asked as well, and the other cluster's when the own one is gone. */
  #mayAskAgain(wereRefused: boolean): boolean {
    if (!wereRefused) return true
    if (!this.#isReplaced()) return false
    if (this.#wasReached) this.#leaving ??= this.#ids
    this.#ids = new Set()
    return true
  }

  #askLater(): void {
    clearTimeout(this.#timer)
    const ask = (): void => {
      if (this.#cluster.status === 'ready') this.#internals.refreshSlotsCache()
    }
    this.#timer = setTimeout(ask, AGAIN_MS).unref()
  }

  /**
   * Whether this table of slots may be of the own cluster. `nodes`: all nodes known to the node that returned the table,
   * as `CLUSTER NODES` lists them.
   */
  accepts(table: readonly unknown[], nodes?: unknown): boolean {
    const ids = idsOf(table)
    if (ids.length === 0) return true
    const known = nodes === undefined ? ids : idsIn(nodes)
    if (this.#ids.size > 0 && !known.some((id) => this.#ids.has(id))) return false
    if (!known.some((id) => ids.includes(id))) return false // the node does not know the nodes that it names
    const isNew = !ids.some((id) => this.#ids.has(id))
    if (isNew) this.#wasReached = false
    const left = this.#leaving
    this.#leaving = undefined
    this.#ids = new Set(ids)
    this.#since = undefined
    if (left === undefined || ids.some((id) => left.has(id))) return true
    this.#old = this.#cluster.nodes('all')
    if (this.#wayBack.hasLeft(ids)) this.#wayBack.returned()
    else this.#wayBack.left(left)
    if (this.#listeners.size > 0) this.#wayBack.begin() // not for a Cluster of the user whose clients have ended
    return true
  }

  /** Notes a refused table. Before the first accepted table it has no effect. */
  refuse(): void {
    if (this.#ids.size === 0) return
    this.#strangers++
    this.#since ??= performance.now()
  }

  #isReplaced(): boolean {
    if (!this.#wasReached) return true
    const isEverywhere = this.#strangers >= this.#asked
    return performance.now() - (this.#since ?? Infinity) >= (isEverywhere ? ALL_REPLACED_MS : REPLACED_MS)
  }
}

function isClosing({ status }: Cluster): boolean {
  return status === 'disconnecting' || status === 'close' || status === 'end'
}
