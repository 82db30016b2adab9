import type { Cluster, Redis } from 'ioredis'
import { backgroundClock, type Clock } from '../../timing/clock.js'
import { atMost } from '../../timing/pause.js'
import { abandon } from '../connections/disconnect.js'
import { idsOf } from './node-ids.js'

/** An address as the user has configured it, with its other options. */
export interface Seed {
  readonly host?: string | undefined
  readonly port?: number | undefined
}

type Ids = ReadonlySet<string>

/** Private members of ioredis; a version may lack them. */
interface Internals {
  readonly options: { readonly slotsRefreshTimeout?: number }
  resolveStartupNodeHostnames?(): Promise<readonly Seed[]>
}

/** The configured addresses are asked this often at first, and less often later: an intended move is never undone. */
const LOOK_MS = 5_000
const SELDOM_MS = 60_000
/** They are asked this often while they lead back. */
const AGAIN_MS = 1_000
/**
 * For how long they must lead back before the client follows them; twice as long each time, for as long as the client moves within an hour.
 */
const LEAST_MS = 5_000
const MOST_MS = 600_000
const QUIET_MS = 3_600_000
/** The most addresses to ask, and the most clusters to remember. */
const MAX_SEEDS = 20
const MAX_FORMER = 4

/**
 * The way back to a cluster that a client has left because all its addresses led to another one. The nodes of that one know nothing about
 * it, so only the addresses that the user has configured can say that it is there again. They decide: the client returns when more of them
 * lead to the cluster that it has left than to the one that it uses, for a while. It never follows them to a third cluster.
 */
export class WayBack {
  readonly #cluster: Cluster
  readonly #current: () => Ids
  readonly #onBack: (ids: Ids, seeds: readonly Seed[]) => void
  readonly #clock: Clock
  #former: readonly Ids[] = []
  #timer: unknown
  /** Of the looks: one that was under way when the client moved means nothing any more. */
  #round = 0
  #leftAt = 0
  #isAway = false
  #returnedAt = -Infinity
  #limitMs = LEAST_MS
  /** The connections of looks that are under way. */
  readonly #copies = new Set<Redis>()
  /** The cluster to which the addresses lead now, and since when. */
  #found: { readonly ids: Ids; readonly since: number } | undefined

  /** `current`: the node ids of the cluster in use. `onBack`: the addresses have led back for long enough. */
  constructor(params: {
    cluster: Cluster
    current: () => Ids
    onBack: (ids: Ids, seeds: readonly Seed[]) => void
    clock?: Clock
  }) {
    this.#cluster = params.cluster
    this.#current = params.current
    this.#onBack = params.onBack
    this.#clock = params.clock ?? backgroundClock
  }

  /** The client has left the cluster with these node ids. */
  left(ids: Ids): void {
    const [first, ...others] = this.#former.filter((each) => !isSame(each, ids))
    this.#former = [...(first === undefined ? [] : [first]), ...others.slice(2 - MAX_FORMER), ids]
    this.#leftAt = this.#clock.now()
    this.end()
    this.#isAway = true
  }

  /** Looks for the way back, if the client has left a cluster and not returned. */
  begin(): void {
    if (this.#isAway) this.#lookIn(LOOK_MS)
  }

  /** The client uses a cluster again that it had left. */
  returned(): void {
    this.end()
    this.#isAway = false
    const now = this.#clock.now()
    this.#limitMs = now - this.#returnedAt < QUIET_MS ? Math.min(MOST_MS, 2 * this.#limitMs) : 2 * LEAST_MS
    this.#returnedAt = now
  }

  /** Whether the client has left the cluster with these node ids before. */
  hasLeft(ids: readonly string[]): boolean {
    return this.#former.some((former) => ids.some((id) => former.has(id)))
  }

  /** Looks no more, until `begin`. */
  end(): void {
    this.#round++
    this.#found = undefined
    this.#clock.clearTimeout(this.#timer)
    this.#copies.forEach(abandon)
    this.#copies.clear()
  }

  #lookIn(ms: number): void {
    this.#clock.clearTimeout(this.#timer)
    this.#timer = this.#clock.setTimeout(() => void this.#look(), ms)
  }

  async #look(): Promise<void> {
    const [round, leftAt] = [this.#round, this.#leftAt]
    const seeds = await this.#seeds()
    if (round !== this.#round) return
    const tables = (await Promise.all(seeds.map((seed) => this.#idsAt(seed)))).filter((ids) => ids !== undefined)
    if (round !== this.#round) return
    const ids = this.#leadingTo(tables)
    const now = this.#clock.now()
    if (ids === undefined) this.#found = undefined
    else if (this.#found?.ids !== ids) this.#found = { ids, since: now }
    const limitMs = now - this.#returnedAt < QUIET_MS ? this.#limitMs : LEAST_MS
    if (this.#found === undefined) this.#lookIn(Math.min(SELDOM_MS, Math.max(LOOK_MS, (now - leftAt) / 10)))
    else this.#lookIn(Math.max(AGAIN_MS, limitMs / 10))
    if (this.#found !== undefined && now - this.#found.since >= limitMs) this.#onBack(this.#found.ids, seeds)
  }

  /** The left cluster to which more addresses lead than to the one in use. */
  #leadingTo(tables: readonly (readonly string[])[]): Ids | undefined {
    const current = this.#current()
    const elsewhere = tables.filter((table) => !table.some((id) => current.has(id)))
    const here = tables.length - elsewhere.length
    return this.#former.find((ids) => elsewhere.filter((table) => table.some((id) => ids.has(id))).length > here)
  }

  async #seeds(): Promise<readonly Seed[]> {
    const own = this.#cluster as unknown as Internals
    const seeds = await own.resolveStartupNodeHostnames?.().catch(() => undefined)
    return (seeds ?? []).slice(0, MAX_SEEDS)
  }

  /** The ids in the table of slots at an address; undefined if there is no answer. */
  async #idsAt(seed: Seed): Promise<readonly string[] | undefined> {
    const [node] = this.#cluster.nodes('all')
    if (node === undefined) return undefined
    const copy = node.duplicate({ ...(seed as object), ...ONE_QUESTION })
    copy.on('error', () => {})
    this.#copies.add(copy)
    const { slotsRefreshTimeout = AGAIN_MS } = (this.#cluster as unknown as Internals).options
    const asked = (copy.cluster('SLOTS') as Promise<unknown>).then((table) => idsOf(table as unknown[]))
    const ids = await atMost(slotsRefreshTimeout, asked)
    this.#copies.delete(copy)
    abandon(copy)
    return ids
  }
}

const ONE_QUESTION = {
  enableOfflineQueue: true,
  enableReadyCheck: false,
  retryStrategy: null,
  readOnly: false,
  protocol: 2,
} as unknown as Parameters<Redis['duplicate']>[0]

function isSame(one: Ids, other: Ids): boolean {
  return [...one].some((id) => other.has(id))
}
