import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import { StuckChecks } from './progress.js'

/** The number of checks within the limit. The watch counts checks, not time, because a blocked event loop says nothing about the server. */
const CHECKS = 8

/** The calls that await replies of the client. */
export interface AwaitedReplies {
  /** The start of the oldest call, by the monotonic clock; `undefined` without calls. */
  readonly oldest: () => number | undefined
  readonly onForgotten?: () => void
}

export interface SilenceWatchParams {
  /** The ioredis clients to watch, each with one connection that ioredis would keep however long the server is silent. */
  readonly nodes: () => readonly Redis[]
  readonly limitMs: number
  readonly onDropped: (why: ConnectionError) => void
}

/**
 * Drops connections whose server owes a reply and has been (nearly) silent for the limit, where ioredis would wait for ever: those of a
 * Cluster, and of clients of the user. It checks only while calls of this client await replies, and drops no connection before a call has
 * waited for the limit.
 */
export class SilenceWatch {
  readonly #params: SilenceWatchParams
  readonly #waits: AwaitedReplies[] = []
  readonly #checks: StuckChecks
  #timer: NodeJS.Timeout | undefined

  constructor(params: SilenceWatchParams) {
    this.#params = params
    this.#checks = new StuckChecks(params.limitMs / CHECKS)
  }

  watchFor(waits: AwaitedReplies): void {
    this.#waits.push(waits)
  }

  /** The client has forgotten all unanswered commands. */
  forget(): void {
    for (const { onForgotten } of this.#waits) onForgotten?.()
  }

  /** Starts the checks, because a call awaits a reply. */
  start(): void {
    this.#timer ??= setInterval(() => this.#check(), this.#params.limitMs / CHECKS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #check(): void {
    const since = Math.min(...this.#waits.map(({ oldest }) => oldest() ?? Infinity))
    if (since === Infinity) {
      this.stop()
      return
    }
    const isOverdue = performance.now() - since >= this.#params.limitMs
    for (const node of this.#params.nodes()) {
      const stuckChecks = this.#checks.count(node)
      if (isOverdue && stuckChecks >= CHECKS) this.#drop(node)
    }
  }

  #drop(node: Redis): void {
    const { host, port } = node.options
    const message = `the server ${host}:${port} owed a reply and was silent for ${this.#params.limitMs / 1000} s`
    node.stream.destroy()
    this.#params.onDropped(new ConnectionError(message, 'unknown'))
  }
}
