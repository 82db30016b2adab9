import { ShutdownError } from '../errors.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { atMost } from '../timing/at-most.js'
import type { Sources, Taken } from './sources.js'

/** Before a queue that failed is asked again. */
const RETRY_MS = 1_000
/** What one poll can ask for. */
const MOST = 1_000

/** Takes messages from the queues of a worker. A queue that fails does not keep the others from being asked. */
export class Fetching {
  readonly #sources: Sources
  readonly #visibility: number
  readonly #onError: (thrown: unknown) => void

  constructor(sources: Sources, visibility: number, onError: (thrown: unknown) => void) {
    this.#sources = sources
    this.#visibility = visibility
    this.#onError = onError
  }

  /** Up to `room` messages, as soon as there are any; of several queues it can be more. None when it is aborted, or all queues fail. */
  async take(room: number, signal: AbortSignal): Promise<Taken[]> {
    const count = Math.min(room, MOST)
    const queues = this.#sources.next()
    if (queues.length > 1) {
      const taken = await this.#look(queues, count, signal)
      if (taken.length > 0 || signal.aborted) return taken
    }
    // several can have something at once: what is more than was asked for is kept for later
    const ended = new AbortController()
    const end = (): void => ended.abort(new ShutdownError('the worker waits no longer'))
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    try {
      const taken = await Promise.all(queues.map((queue) => this.#wait(queue, count, ended)))
      return taken.flat()
    } finally {
      signal.removeEventListener('abort', end)
    }
  }

  /** What the first of some queues has now. */
  async #look(queues: readonly ReliableQueue[], count: number, signal: AbortSignal): Promise<Taken[]> {
    for (const queue of queues) {
      try {
        const messages = await queue.pollMany({ count, visibility: this.#visibility })
        if (messages.length > 0) return messages.map((message) => ({ queue, message }))
      } catch (thrown) {
        if (thrown instanceof ShutdownError) throw thrown
        this.#onError(thrown)
      }
      if (signal.aborted) break
    }
    return []
  }

  /** The first that gets something ends the waits of the others; one that fails does so after a while. */
  async #wait(queue: ReliableQueue, count: number, ended: AbortController): Promise<Taken[]> {
    const { signal } = ended
    try {
      const messages = await queue.pollMany({ count, visibility: this.#visibility, timeout: Infinity, signal })
      return messages.map((message) => ({ queue, message }))
    } catch (thrown) {
      if (signal.aborted) return []
      if (thrown instanceof ShutdownError) throw thrown
      this.#onError(thrown)
      const end = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      await atMost(RETRY_MS, end) // not longer: what others have got meanwhile is not extended yet
      return []
    } finally {
      ended.abort(new ShutdownError('another queue was faster'))
    }
  }
}
