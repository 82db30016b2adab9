import type { EventName, Listener } from '../events.js'
import type { DelayedQueue } from './delayed-queue.js'

/** Methods that read or take pending messages one by one, or have their keys as one object; with `layout: 'wheel'` they reject. */
type NotWithWheel =
  | 'peek'
  | 'element'
  | 'readAll'
  | 'toArray'
  | 'iterate'
  | 'contains'
  | 'containsAll'
  | 'poll'
  | 'remove'
  | 'removeAll'
  | 'retainAll'
  | 'pollLastAndOfferFirstTo'
  | 'touch'
  | 'sizeInMemory'
  | 'expire'
  | 'expireIfSet'
  | 'expireIfNotSet'
  | 'expireIfGreater'
  | 'expireIfLess'
  | 'clearExpire'
  | 'remainTimeToLive'
  | 'getExpireTime'
  | 'rename'
  | 'renamenx'
  | 'copy'
  | 'copyAndReplace'

/** A `DelayedQueue` with `layout: 'wheel'`: the methods that work there. See docs/delayed-queue.md. */
export type WheelQueue<T = unknown> = Omit<DelayedQueue<T>, NotWithWheel | keyof Listening> & Listening

interface Listening {
  /**
   * Listens to an event of this queue.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * delayed.on('error', (error) => console.error(error.message))
   * ```
   */
  on<K extends EventName>(name: K, listener: Listener<K>): this
  /**
   * Listens to the next event of this name.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * delayed.once('subscribed', ({ queue }) => console.log(queue))
   * ```
   */
  once<K extends EventName>(name: K, listener: Listener<K>): this
  /**
   * Stops listening.
   *
   * @throws TypeError: the listener is not a function
   *
   * @example
   * ```ts
   * const log = (error: Error) => console.error(error.message)
   * delayed.on('error', log)
   * delayed.off('error', log)
   * ```
   */
  off<K extends EventName>(name: K, listener: Listener<K>): this
}
