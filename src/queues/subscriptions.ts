import { InvalidArgumentError, ShutdownError, failureOf } from '../errors.js'
import type { Emit } from '../events.js'
import type { End } from '../store/list-store.js'
import { pause } from '../timing/pause.js'
import type { Waits } from './waits.js'

const RETRY_AFTER_ERROR_MS = 1_000

/** The subscribed consumers, which get a queue's elements one after the other, as with Redisson's `subscribeOnElements`. */
export class Subscriptions<T> {
  readonly #waits: Waits<T>
  readonly #queue: string
  readonly #emit: Emit
  readonly #controllers = new Map<number, AbortController>()
  readonly #consumers = new Map<(value: T) => unknown, number>()
  #last = 0

  constructor(waits: Waits<T>, queue: string, emit: Emit) {
    this.#waits = waits
    this.#queue = queue
    this.#emit = emit
  }

  /** Calls `consumer` with elements taken at an end until the subscription is removed; returns the subscription's id. */
  add(end: End, consumer: (value: T) => unknown): number {
    if (typeof consumer !== 'function') throw this.#invalid('a function', consumer)
    if (this.#consumers.has(consumer)) throw this.#invalid('a function that is not subscribed yet', consumer)
    const id = ++this.#last
    const controller = new AbortController()
    this.#controllers.set(id, controller)
    this.#consumers.set(consumer, id)
    void this.#consume(end, consumer, controller.signal).finally(() => {
      this.#controllers.delete(id)
      if (this.#consumers.get(consumer) === id) this.#consumers.delete(consumer)
    })
    return id
  }

  /** False when there is no subscription of this id. */
  remove(id: number): boolean {
    const controller = this.#controllers.get(id)
    this.#controllers.delete(id)
    for (const [consumer, other] of this.#consumers) if (other === id) this.#consumers.delete(consumer)
    controller?.abort()
    return controller !== undefined
  }

  async #consume(end: End, consumer: (value: T) => unknown, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let value: T
      try {
        value = await this.#waits.take(end, { signal })
      } catch (thrown) {
        if (signal.aborted || thrown instanceof ShutdownError) return
        this.#report('taking for a subscription failed', thrown)
        await pause(RETRY_AFTER_ERROR_MS, signal)
        continue
      }
      try {
        await consumer(value)
      } catch (thrown) {
        this.#report('the consumer of a subscription threw', thrown)
      }
    }
  }

  #invalid(expected: string, received: unknown): InvalidArgumentError {
    return new InvalidArgumentError('consumer', expected, received, { queue: this.#queue })
  }

  #report(what: string, thrown: unknown): void {
    this.#emit('error', failureOf(what, thrown, { queue: this.#queue, code: 'ERR_CONSUMER' }))
  }
}
