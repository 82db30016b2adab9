import type { Cluster, Redis } from 'ioredis'

type Callback = (error?: Error) => void

interface Address {
  readonly host?: string | undefined
  readonly port?: number | undefined
}

/** Private members of ioredis. */
interface Internals {
  readonly isRefreshing: boolean
  readonly connectionPool: { findOrCreate(node: Address): Redis }
  refreshSlotsCache(callback?: Callback): void
}

/** How long another cluster must be the only one that answers before the client follows it, if some nodes do not answer. */
const REPLACED_MS = 30_000
/** The same if it answers at all addresses: a proxy or a name server can lead there for a moment. */
const ALL_REPLACED_MS = 5_000
/** The time before own nodes without an answer are asked again: ioredis has no reason to while another cluster carries out the calls. */
const AGAIN_MS = 1_000

const known = new WeakMap<Cluster, OwnNodes>()

/** The `OwnNodes` of a Cluster, shared by all clients on a Cluster of the user. */
export function ownNodesOf(cluster: Cluster): OwnNodes {
  const nodes = known.get(cluster) ?? new OwnNodes(cluster)
  known.set(cluster, nodes)
  return nodes
}

/**
 * Recognizes a cluster by the ids of its nodes. If a node redirects to another cluster, or its address now belongs to another cluster, that
 * cluster's table of slots would lead ioredis away from all own nodes, and never back. So such a table is accepted only when the own cluster is gone: all its
 * addresses belong to the other one, or none has answered for a while.
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

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    this.#internals = cluster as unknown as Internals
    this.#refresh = this.#internals.refreshSlotsCache.bind(cluster)
    this.#internals.refreshSlotsCache = (callback) => this.#refreshFrom(callback)
    cluster.on('end', () => clearTimeout(this.#timer))
    cluster.on('+node', (node: Redis) => node.once('ready', () => (this.#wasReached = true)))
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
  }

  /** After the first refusals the own nodes are asked as well, and the other cluster's when the own one is gone. */
  #mayAskAgain(wereRefused: boolean): boolean {
    if (!wereRefused) return true
    if (!this.#isReplaced()) return false
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
    if (!ids.some((id) => this.#ids.has(id))) this.#wasReached = false
    this.#ids = new Set(ids)
    this.#since = undefined
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

/** The node ids: the first word of each line. */
function idsIn(nodes: unknown): string[] {
  return typeof nodes === 'string' ? nodes.split('\n').map((line) => line.slice(0, Math.max(0, line.indexOf(' ')))) : []
}

/** The node ids in a table; servers that imitate a cluster may have none. */
function idsOf(table: readonly unknown[]): string[] {
  const nodes = table.flatMap((range) => (range as unknown[]).slice(2))
  return nodes.map((node) => (node as unknown[])[2]).filter((id): id is string => typeof id === 'string' && id !== '')
}
