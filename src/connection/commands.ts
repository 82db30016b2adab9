import type { Cluster, Redis } from 'ioredis'
import { ConnectionError, ShutdownError } from '../errors.js'
import type { CommandArg } from '../lua/script.js'
import type { Sender } from '../lua/run.js'
import { translateError } from './server-errors.js'
import type { Topology } from './topology.js'

/** How often an idempotent command is sent again when connections break one after the other. */
const MAX_RETRIES = 3

/** Sends commands and counts those under way, so that a shutdown can let them finish. Replies carry bytes as `Buffer`. */
export class Commands implements Sender {
  readonly #topology: Topology
  #underWay = 0
  #idle: (() => void) | undefined
  #closed = false

  constructor(topology: Topology) {
    this.#topology = topology
  }

  /** See `Topology.resends`. */
  get resends(): boolean {
    return this.#topology.resends
  }

  call(command: string, args: readonly CommandArg[], options: { idempotent?: boolean } = {}): Promise<unknown> {
    return this.#track(async () => {
      for (let attempt = 0; ; attempt++) {
        try {
          const client = await this.#topology.commands()
          return await client.callBuffer(command, ...args)
        } catch (thrown) {
          const error = translateError(thrown)
          if (!(error instanceof ConnectionError) || attempt >= MAX_RETRIES || this.#closed) throw error
          if (!mayRetry(thrown, error, options.idempotent === true)) throw error
        }
      }
    })
  }

  pipeline(commands: readonly (readonly [command: string, args: readonly CommandArg[]])[]): Promise<unknown[]> {
    return this.#track(async () => {
      let results: [error: Error | null, result: unknown][] | null
      try {
        const client: Redis | Cluster = await this.#topology.commands()
        const pipeline = client.pipeline()
        for (const [command, args] of commands) pipeline.callBuffer(command, ...args)
        results = await pipeline.exec()
      } catch (thrown) {
        const error = translateError(thrown)
        return commands.map(() => error)
      }
      return commands.map((_, index) => {
        const [error, result] = results?.[index] ?? [new Error('the pipeline gave no reply'), undefined]
        return error === null ? result : translateError(error)
      })
    })
  }

  /** Refuses new commands and resolves when those under way have ended. */
  async drain(): Promise<void> {
    this.#closed = true
    if (this.#underWay === 0) return
    await new Promise<void>((resolve) => (this.#idle = resolve))
  }

  async #track<T>(action: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new ShutdownError('the client was shut down')
    this.#underWay++
    try {
      return await action()
    } finally {
      if (--this.#underWay === 0) this.#idle?.()
    }
  }
}

/** A failed wait for a connection is final; a command that met a closing socket, or may be repeated, gets another try. */
function mayRetry(thrown: unknown, error: ConnectionError, idempotent: boolean): boolean {
  if (thrown === error) return false
  return idempotent || error.outcome === 'not-applied'
}
