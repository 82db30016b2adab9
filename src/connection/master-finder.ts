import { Redis, type RedisOptions } from 'ioredis'
import { AuthError, ConnectionError, ShutdownError, toError } from '../errors.js'
import { abandon } from './disconnect.js'
import type { Settings } from '../options.js'
import type { Node } from './options.js'
import { OVERRIDES } from './overrides.js'
import { translateError } from './server-errors.js'

/** A node that is silent must not hold up those that answer: whoever asked asks again soon. */
const PROBE_MS = 1_000

/** Finds the master among nodes that no sentinel watches: asks all at once, and takes the first that says it is one. */
export class MasterFinder {
  readonly #nodes: readonly Node[]
  readonly #options: RedisOptions
  readonly #probes = new Set<Redis>()
  /** One search for all connections that ask at the same time, so that all of them go to the same node. */
  #finding: Promise<Node> | undefined
  #closed = false

  constructor(nodes: readonly Node[], options: RedisOptions, settings: Settings) {
    this.#nodes = nodes
    const connectTimeout = Math.min(PROBE_MS, settings.connectTimeout)
    const commandTimeout = Math.min(PROBE_MS, settings.commandTimeout)
    this.#options = { ...options, ...OVERRIDES, connectTimeout, commandTimeout }
  }

  find(): Promise<Node> {
    if (this.#closed) return Promise.reject(new ShutdownError('the client was shut down'))
    this.#finding ??= this.#search().finally(() => (this.#finding = undefined))
    return this.#finding
  }

  /** Gives up asking, for good. */
  close(): void {
    this.#closed = true
    this.#endProbes()
  }

  async #search(): Promise<Node> {
    try {
      return await Promise.any(this.#nodes.map((node) => this.#ask(node)))
    } catch (thrown) {
      const reasons = thrown instanceof AggregateError ? thrown.errors.map(toError) : [toError(thrown)]
      const refused = reasons.find((reason) => reason instanceof AuthError)
      if (refused !== undefined) throw refused
      const told = reasons.map((reason) => reason.message).join('; ')
      throw new ConnectionError(`none of the nodes is a master: ${told}`, 'not-applied', { cause: thrown })
    } finally {
      this.#endProbes()
    }
  }

  #endProbes(): void {
    for (const probe of this.#probes) abandon(probe)
    this.#probes.clear()
  }

  async #ask(node: Node): Promise<Node> {
    const probe = new Redis({ ...this.#options, ...node })
    let reason: Error | undefined
    probe.on('error', (error: Error) => (reason = error)) // ioredis prints what nobody listens to
    this.#probes.add(probe)
    try {
      await probe.connect()
      const [role] = (await probe.call('ROLE')) as [string]
      if (role === 'master') return node
      throw new ConnectionError(`${node.host}:${node.port} is a ${role}`, 'not-applied')
    } catch (thrown) {
      throw translateError(reason ?? thrown)
    }
  }
}
