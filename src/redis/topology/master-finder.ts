import { Redis, type RedisOptions } from 'ioredis'
import { AuthError, ConnectionError, ShutdownError, toError } from '../../errors.js'
import { addressOfNodes } from '../connections/address.js'
import { abandon } from '../connections/disconnect.js'
import type { Settings } from '../../options.js'
import type { Node } from '../options.js'
import { OVERRIDES } from '../connections/ioredis-defaults.js'
import { guardReplies } from '../replies/reply-guard.js'
import { translateError } from '../replies/server-errors.js'
import { pause } from '../../timing/pause.js'
import { roleIn } from '../connections/server-version.js'

/** The time before nodes that answered are asked again while others are silent: a replica may have become the master. */
const AGAIN_MS = 1_000
/** How long the finder waits for other nodes after it has found a master: there may be two for a moment, or by mistake. */
const GRACE_MS = 200

/** Finds the master among nodes without sentinels: asks all at once for their role. */
export class MasterFinder {
  readonly #nodes: readonly Node[]
  readonly #options: RedisOptions
  readonly #probes = new Set<Redis>()
  readonly #probeMs: number
  /** The search that all connections share which ask at the same time, so that they use the same node. */
  #finding: Promise<Node> | undefined
  #closed = false

  constructor(nodes: readonly Node[], options: RedisOptions, settings: Settings) {
    this.#nodes = nodes
    // the search is a part of opening a connection, and must leave time for the other parts
    this.#probeMs = Math.ceil(settings.connectTimeout / 2)
    const connectTimeout = this.#probeMs
    const commandTimeout = Math.min(this.#probeMs, settings.commandTimeout)
    // without the ready check, which would wait for a loading node
    this.#options = { ...options, ...OVERRIDES, enableReadyCheck: false, connectTimeout, commandTimeout }
  }

  /** The nodes, for errors. */
  get address(): string {
    return addressOfNodes(this.#nodes)
  }

  find(): Promise<Node> {
    if (this.#closed) return Promise.reject(new ShutdownError('the client was shut down'))
    this.#finding ??= this.#search().finally(() => (this.#finding = undefined))
    return this.#finding
  }

  /** Ends all searches, and refuses new ones. */
  close(): void {
    this.#closed = true
    this.#endProbes()
  }

  async #search(): Promise<Node> {
    const masters = new Map<string, Node>()
    const reasons: Error[] = []
    const ended = new AbortController()
    await this.#askAll(masters, reasons, ended.signal)
    ended.abort()
    this.#endProbes()
    const [master, second] = masters.values()
    if (second !== undefined) {
      throw new ConnectionError(
        `several nodes say that they are the master: ${[...masters.values()].map(nameOf).join(', ')}`,
        'not-applied',
      )
    }
    if (master !== undefined) return master
    const refusals = reasons.filter((reason) => reason instanceof AuthError)
    const [refused] = refusals
    if (refused !== undefined && refusals.length === this.#nodes.length) throw refused
    const answers = reasons.map((reason) => reason.message).join('; ') || 'no answer'
    throw new ConnectionError(`none of the nodes is a master: ${answers}`, 'not-applied', { cause: reasons[0] })
  }

  /**
   * Asks all nodes; resolves when all have answered, or the time is over. Masters are keyed by run id, because one may have two addresses.
   */
  #askAll(masters: Map<string, Node>, reasons: Error[], ended: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      let timer = setTimeout(resolve, this.#probeMs)
      const found = (runId: string, node: Node): void => {
        if (!masters.has(runId)) masters.set(runId, node)
        clearTimeout(timer)
        timer = setTimeout(resolve, Math.min(GRACE_MS, this.#probeMs))
      }
      const answers = this.#nodes.map((node) =>
        this.#ask(node).then(
          (runId) => found(runId, node),
          (thrown: unknown) => {
            reasons.push(toError(thrown))
            void this.#askAgain(node, found, ended)
          },
        ),
      )
      void Promise.all(answers).then(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  /** Asks a node that is not a master again and again while the search awaits others. */
  async #askAgain(node: Node, found: (runId: string, node: Node) => void, ended: AbortSignal): Promise<void> {
    for (;;) {
      await pause(AGAIN_MS, ended)
      if (ended.aborted) return
      try {
        found(await this.#ask(node), node)
        return
      } catch {
        // the next answer may differ
      }
    }
  }

  #endProbes(): void {
    for (const probe of this.#probes) abandon(probe)
    this.#probes.clear()
  }

  async #ask(node: Node): Promise<string> {
    if (this.#closed) throw new ShutdownError('the client was shut down')
    const probe = guardReplies(new Redis({ ...this.#options, ...node }))
    let reason: Error | undefined
    probe.on('error', (error: Error) => (reason = error)) // ioredis prints errors without a listener
    this.#probes.add(probe)
    try {
      await probe.connect()
      const info = await probe.info()
      const role = roleIn(info)
      if (role !== 'master') throw new ConnectionError(`${nameOf(node)} is a ${role}`, 'not-applied')
      return /^run_id:(\w+)/m.exec(info)?.[1] ?? nameOf(node)
    } catch (thrown) {
      throw translateError(reason ?? thrown)
    }
  }
}

function nameOf({ host, port }: Node): string {
  return `${host}:${port}`
}
