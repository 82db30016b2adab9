import { ListQueue } from './list-queue.js'

/** Redisson's `RQueue`: a first-in first-out queue on a Redis LIST. */
export class Queue<T = unknown> extends ListQueue<T> {
  /** Takes the first element, or `null` when the queue is empty. */
  poll(): Promise<T | null>
  /** Takes up to `limit` elements. */
  poll(limit: number): Promise<T[]>
  async poll(limit?: number): Promise<T | null | T[]> {
    return limit === undefined ? this.list.pop('left') : this.drainTo(limit)
  }
}
