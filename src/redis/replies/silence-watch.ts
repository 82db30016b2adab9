import type { Redis } from 'ioredis'
import { ConnectionError } from '../../errors.js'
import { StuckLooks } from './progress.js'

/** How often it looks within the limit. It counts its looks, because a blocked event loop says nothing about a server. */
const LOOKS = 8

/** Those who wait for what the client was given. */
export interface Waits {
  /** Since when the longest of them lasts, by the monotonic clock, while there is any. */
  readonly oldest: () => number | undefined
  readonly onForgotten?: () => void
}

export interface SilenceWatchParams {
  /** The clients of ioredis, each with one connection, that it would keep however long their servers are silent. */
  readonly nodes: () => readonly Redis[]
  readonly limitMs: number
  readonly onDropped: (why: ConnectionError) => void
}

/**
 * Gives up connections whose server owes a reply and has been silent, or nearly so, for the limit, where ioredis would wait for ever: those of its
 * Cluster, and of clients of the user. It looks only while something of ours is waited for, and drops nothing before that has
 * been waited for as long.
 */
export class SilenceWatch {
  readonly #params: SilenceWatchParams
  readonly #waits: Waits[] = []
  readonly #looks: StuckLooks
  #timer: NodeJS.Timeout | undefined

  constructor(params: SilenceWatchParams) {
    this.#params = params
    this.#looks = new StuckLooks(params.limitMs / LOOKS)
  }

  watchFor(waits: Waits): void {
    this.#waits.push(waits)
  }

  /** The client has forgotten everything that it was given and that is not answered. */
  forget(): void {
    for (const { onForgotten } of this.#waits) onForgotten?.()
  }

  /** Something is waited for. */
  start(): void {
    this.#timer ??= setInterval(() => this.#look(), this.#params.limitMs / LOOKS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    const since = Math.min(...this.#waits.map(({ oldest }) => oldest() ?? Infinity))
    if (since === Infinity) {
      this.stop()
      return
    }
    const isOverdue = performance.now() - since >= this.#params.limitMs
    for (const node of this.#params.nodes()) {
      const stuckLooks = this.#looks.count(node)
      if (isOverdue && stuckLooks >= LOOKS) this.#drop(node)
    }
  }

  #drop(node: Redis): void {
    const { host, port } = node.options
    const message = `the server ${host}:${port} owed a reply and was silent for ${this.#params.limitMs / 1000} s`
    node.stream.destroy()
    this.#params.onDropped(new ConnectionError(message, 'unknown'))
  }
}
