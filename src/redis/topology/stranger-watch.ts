import type { Cluster, Redis } from 'ioredis'
import { backgroundClock, type Clock } from '../../timing/clock.js'
import { atMost } from '../../timing/pause.js'
import { remoteAddressOf } from '../connections/remote-address.js'

const NODE_ID = /^[0-9a-f]{40}$/
/**
 * The replies of a server that will probably not name itself the next time either: it is asked ever less often. Another program can have
 * caused them for a while.
 */
const NAMELESS = /^(NOPERM|ERR unknown|ERR This instance has cluster support disabled)/i

/** Nodes are compared this often, because both a table and an id can be wrong for a while; sooner at first, and while one is a stranger. */
const COMPARE_MS = 60_000
const SOON_MS = 5_000
/** How soon they are compared when a node has come after a stranger. */
const AFTER_NODE_MS = 1_000
/**
 * A node that refused to name itself is asked again after `COMPARE_MS`, then after twice as long each time, at most this: each refusal is a
 * line in the ACL log of Redis.
 */
const NAMELESS_MS = 3_600_000
/** The least time between two requests for the slots, and the longest wait for an id. */
const REQUEST_MS = 1_000
const ANSWER_MS = 2_000

type Identity = 'own' | 'stranger' | 'unknown'

/**
 * Compares the ids of connected nodes with those of the table of slots. A forged table can name addresses of another cluster with the ids
 * of the own one, and calls that are answered there would be no reason to ask for the slots again. A user may have no right to the command;
 * servers that imitate a cluster may have no ids.
 */
export class StrangerWatch {
  readonly #cluster: Cluster
  readonly #ids: () => ReadonlySet<string>
  readonly #onFound: () => void
  readonly #onLeft: (own: ReadonlySet<string>) => void
  readonly #clock: Clock
  /** The nodes that refused to name themselves: when they are asked again, and how long that is. */
  readonly #nameless = new WeakMap<Redis, { readonly at: number; readonly afterMs: number }>()
  #isOn = false
  #timer: unknown
  /** When the next comparison begins. */
  #at = Infinity
  /** There was a stranger, and no comparison since then has found own nodes only. */
  #isInDoubt = false
  /** How many times a node has not named itself since a comparison has found that each node is an own one: it can have been a stranger. */
  #unnamed = 0
  #requestedAt = -Infinity

  /**
   * `ids`: those of the table. `onFound`: a node is a stranger, so the slots have to be asked for. `onLeft`: there is none any more; gets
   * the remote addresses of nodes that are own ones.
   */
  constructor(params: {
    cluster: Cluster
    ids: () => ReadonlySet<string>
    onFound: () => void
    onLeft: (own: ReadonlySet<string>) => void
    clock?: Clock
  }) {
    this.#cluster = params.cluster
    this.#ids = params.ids
    this.#onFound = params.onFound
    this.#onLeft = params.onLeft
    this.#clock = params.clock ?? backgroundClock
  }

  begin(): void {
    this.#isOn = true
    this.#compareIn(SOON_MS)
  }

  end(): void {
    this.#isOn = false
    this.#clock.clearTimeout(this.#timer)
    this.#at = Infinity
  }

  /** Looks at a node as soon as it is ready. */
  async onReady(node: Redis): Promise<void> {
    if (!this.#isOn) return
    const identity = await this.#identityOf(node)
    // before the first table no id says anything
    if (identity === 'unknown' && this.#ids().size > 0) this.#unnamed++
    if (identity === 'stranger') this.#doubt(SOON_MS)
    else if (this.#isInDoubt) this.#compareIn(AFTER_NODE_MS)
    else if (this.#unnamed > 0) this.#compareIn(SOON_MS)
  }

  /**
   * No answer says nothing: only an own id ends a doubt. After a node without an answer, waits stay where they are until each node is an
   * own one.
   */
  async #identityOf(node: Redis): Promise<Identity> {
    const asked = (node.cluster('MYID') as Promise<unknown>).catch((error: Error) => {
      if (NAMELESS.test(error.message)) this.#askLater(node)
      return undefined
    })
    const id = await atMost(ANSWER_MS, asked)
    const ids = this.#ids()
    if (typeof id !== 'string' || !NODE_ID.test(id)) return 'unknown'
    this.#nameless.delete(node)
    if (ids.size === 0) return 'unknown'
    return ids.has(id) ? 'own' : 'stranger'
  }

  #askLater(node: Redis): void {
    const before = this.#nameless.get(node)?.afterMs
    const afterMs = before === undefined ? COMPARE_MS : Math.min(NAMELESS_MS, 2 * before)
    this.#nameless.set(node, { at: this.#clock.now() + afterMs, afterMs })
  }

  #mayAsk(node: Redis): boolean {
    const { at } = this.#nameless.get(node) ?? { at: -Infinity }
    return this.#clock.now() >= at
  }

  /** The table may still be forged, so the ids are compared again. */
  #doubt(againMs: number): void {
    if (!this.#isOn) return
    this.#isInDoubt = true
    this.#compareIn(againMs)
    const now = this.#clock.now()
    if (now - this.#requestedAt < REQUEST_MS) return
    this.#requestedAt = now
    this.#onFound()
  }

  /** An earlier comparison stays. */
  #compareIn(ms: number): void {
    const at = this.#clock.now() + ms
    if (!this.#isOn || at >= this.#at) return
    this.#clock.clearTimeout(this.#timer)
    this.#at = at
    this.#timer = this.#clock.setTimeout(() => void this.#compare(ms), ms)
  }

  async #compare(afterMs: number): Promise<void> {
    this.#at = Infinity
    this.#compareIn(COMPARE_MS)
    // ioredis connects to a replica, or to a master without a slot, only when it has a command for it
    const ready = this.#cluster.nodes('all').filter(({ status }) => status === 'ready')
    const nodes = ready.filter((node) => this.#mayAsk(node))
    const unnamed = this.#unnamed
    const identities = await Promise.all(nodes.map((node) => this.#identityOf(node)))
    if (!this.#isOn) return
    const againMs = Math.min(COMPARE_MS, Math.max(SOON_MS, 2 * afterMs))
    const own = nodes.filter((_, at) => identities[at] === 'own')
    if (identities.includes('stranger')) this.#doubt(againMs)
    else if (!this.#isInDoubt && unnamed === 0) return
    else if (own.length === 0 || (!this.#isInDoubt && own.length < ready.length)) this.#compareIn(againMs)
    else {
      this.#isInDoubt = false
      this.#unnamed -= unnamed
      this.#onLeft(new Set(own.map(remoteAddressOf)))
    }
  }
}
