import { Redis, type RedisOptions } from 'ioredis'
import { AuthError, ConnectionError, toError } from '../errors.js'
import { disconnect } from './disconnect.js'
import type { Settings } from '../options.js'
import type { Node } from './options.js'
import { OVERRIDES } from './overrides.js'
import { translateError } from './server-errors.js'

/** Finds the master among nodes that no sentinel watches: asks all at once, and takes the first that says it is one. */
export class MasterFinder {
  readonly #nodes: readonly Node[]
  readonly #options: RedisOptions
  readonly #probes = new Set<Redis>()

  constructor(nodes: readonly Node[], options: RedisOptions, { connectTimeout, commandTimeout }: Settings) {
    this.#nodes = nodes
    this.#options = { ...options, ...OVERRIDES, connectTimeout, commandTimeout }
  }

  async find(): Promise<Node> {
    try {
      return await Promise.any(this.#nodes.map((node) => this.#ask(node)))
    } catch (thrown) {
      const reasons = thrown instanceof AggregateError ? thrown.errors.map(toError) : [toError(thrown)]
      const [first] = reasons
      if (first instanceof AuthError) throw first
      const told = reasons.map((reason) => reason.message).join('; ')
      throw new ConnectionError(`none of the nodes is a master: ${told}`, 'not-applied', { cause: thrown })
    } finally {
      this.close()
    }
  }

  /** Gives up asking. */
  close(): void {
    for (const probe of this.#probes) disconnect(probe)
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
