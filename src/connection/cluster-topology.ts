import type { Cluster, Redis } from 'ioredis'
import { ConnectionError } from '../errors.js'
import type { Settings } from '../options.js'
import { atMost } from '../timing/at-most.js'
import { QUIT_TIMEOUT_MS, abandon } from './disconnect.js'
import { keySlot } from './key-slot.js'
import { OVERRIDES } from './overrides.js'
import { Readiness } from './readiness.js'
import { assertVersion } from './server-version.js'
import { NodeGoneError, type Place, type Topology } from './topology.js'

/** A cluster; ioredis follows its redirections and failovers, also by sending a command twice. */
export class ClusterTopology implements Topology {
  readonly resends = true
  readonly closesAtOnce = false
  readonly moves = true
  readonly #cluster: Cluster
  readonly #owned: boolean
  readonly #ready: Readiness
  readonly #onError = (): void => {}
  #closing: Promise<void> | undefined

  constructor(cluster: Cluster, owned: boolean, settings: Settings) {
    this.#cluster = cluster
    this.#owned = owned
    // calls report what fails; without a listener ioredis prints it
    if (owned) cluster.on('error', this.#onError)
    this.#ready = new Readiness(cluster, settings.connectTimeout, async () => {
      const [node] = cluster.nodes('master')
      if (node !== undefined) await assertVersion(node)
    })
  }

  get connected(): boolean {
    // ioredis goes on believing in a cluster as long as it knows a node, also one that it never connected to
    return this.#ready.now && this.#isAnyReady()
  }

  commands(): Cluster | Promise<Cluster> {
    return this.#ready.now ? this.#cluster : this.#ready.wait().then(() => this.#cluster)
  }

  async dedicated(again: boolean, node?: string): Promise<Redis> {
    await this.#ready.wait()
    if (again) await this.refresh() // perhaps another node has taken its place
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

  beside(dedicated: Redis): Redis | undefined {
    return this.#cluster.nodes('all').find((other) => addressOf(other) === addressOf(dedicated))
  }

  async place(key: string): Promise<Place> {
    await this.#ready.wait()
    const slot = keySlot(key)
    const node = this.#cluster.slots[slot]?.[0]
    if (node === undefined) throw new ConnectionError(`no master serves slot ${slot}`, 'not-applied')
    return { node, slot }
  }

  refresh(): Promise<void> {
    return new Promise((resolve) => this.#cluster.refreshSlotsCache(() => resolve()))
  }

  onDemoted(): boolean {
    return false // ioredis follows the redirections
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const cluster = this.#cluster
    this.#ready.close()
    if (!this.#owned) return
    if (this.#isAnyReady()) await atMost(QUIT_TIMEOUT_MS, cluster.quit())
    const ended = cluster.nodes('all').map((node) => new Promise((resolve) => node.once('end', resolve)))
    cluster.nodes('all').forEach(abandon)
    cluster.disconnect()
    await atMost(QUIT_TIMEOUT_MS, Promise.all(ended))
    if (cluster.status === 'end') return
    // Without a node, as between two attempts to connect, ioredis would never end, nor would the commands that it keeps for
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
