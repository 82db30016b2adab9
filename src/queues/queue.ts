import { ListQueue } from './list-queue.js'
import { namesOperations } from './operations.js'

/** Redisson's `RQueue`: a first-in first-out queue on a Redis LIST. */
export class Queue<T = unknown> extends ListQueue<T> {
  static {
    namesOperations(this, { queueOf: ({ name }) => name })
  }

  /**
   * Takes the first element, or `null` when the queue is empty.
   *
   * @throws InvalidArgumentError `ERR_INVALID_ARGUMENT`: an argument is not as described; nothing was sent
   * @throws ConnectionError `ERR_CONNECTION`: there is no connection, or it broke; `outcome` says whether the call was carried out
   *
   * @example
   * ```ts
   * const mail = await queue.poll()
   * const more = await queue.poll(10)
   * console.log(mail, more.length)
   * ```
   */
  poll(): Promise<T | null>
  /** Takes up to `limit` elements. */
  poll(limit: number): Promise<T[]>
  async poll(limit?: number): Promise<T | null | T[]> {
    return limit === undefined ? this.list.pop('left') : this.drainTo(limit)
  }
}
