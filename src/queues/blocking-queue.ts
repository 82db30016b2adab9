import { InvalidArgumentError, RedelayedError, ShutdownError, toError } from '../errors.js'
import { boolean, integer, onlyKnown } from '../options.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import type { QueueContext, QueueIdentity } from './context.js'
import { ListQueue } from './list-queue.js'

/** Options of a wait. An abort rejects with the signal's reason, unless an element was popped already: that is returned. */
export interface TakeOptions {
  readonly signal?: AbortSignal | undefined
}

export interface TakeManyOptions extends TakeOptions {
  /** How long to wait for the first element, in milliseconds; without it, without end. */
  readonly timeout?: number | undefined
}

const MAX_TAKE = 10_000
const RETRY_AFTER_ERROR_MS = 1_000

/**
 * Redisson's `RBlockingQueue`: a queue whose consumers can wait. Taking is at most once, as in Redisson: an element whose
 * consumer dies is gone. While it waits, this client also transfers the due messages of the delayed queue on it.
 */
export class BlockingQueue<T = unknown> extends ListQueue<T> {
  readonly #delivers: boolean
  readonly #subscriptions = new Map<number, AbortController>()
  readonly #consumers = new Map<(value: T) => unknown, number>()
  #lastSubscription = 0

  /** @internal */
  constructor(
    context: QueueContext,
    identity: QueueIdentity<T>,
    options: { consumersDeliver?: boolean | undefined } = {},
  ) {
    super(context, identity)
    this.#delivers = boolean('consumersDeliver', options.consumersDeliver ?? context.settings.consumersDeliver)
  }

  /** Appends a value. */
  async put(value: T): Promise<void> {
    await this.offer(value)
  }

  /** Takes the first element, waiting for one as long as it takes. */
  async take(options: TakeOptions = {}): Promise<T> {
    const value = await this.#first(undefined, options)
    if (value === null) throw new ShutdownError('the wait ended', { queue: this.name })
    return value
  }

  /** Takes the first element if there is one, without waiting; else `null`. */
  poll(): Promise<T | null>
  /** Takes the first element, waiting at most `timeout` (milliseconds unless a unit is given); `null` when the time is over. `0` returns at once. */
  poll(timeout: number, options?: TakeOptions): Promise<T | null>
  poll(timeout: number, unit?: TimeUnit, options?: TakeOptions): Promise<T | null>
  async poll(timeout?: number, unit?: TimeUnit | TakeOptions, options?: TakeOptions): Promise<T | null> {
    if (timeout === undefined) return this.pollNow()
    const millis = this.checked(() => toMillis('timeout', timeout, typeof unit === 'object' ? undefined : unit))
    return this.#first(millis, typeof unit === 'object' ? unit : (options ?? {}))
  }

  /** Takes between 1 and `max` (1 to 10,000) elements, waiting for the first; an empty array when the timeout is over. */
  async takeMany(max: number, options: TakeManyOptions = {}): Promise<T[]> {
    const timeoutMs = this.checked(() => {
      integer('max', max, 1, MAX_TAKE)
      onlyKnown('options', options, ['timeout', 'signal'])
      return options.timeout === undefined ? undefined : toMillis('timeout', options.timeout)
    })
    return this.#wait(max, timeoutMs, options.signal)
  }

  /** Takes elements for ever; the loop's body is done with one before the next is taken. */
  [Symbol.asyncIterator](): AsyncGenerator<T, void> {
    return this.elements()
  }

  /** The same with a signal; after its abort the iteration throws the signal's reason. */
  async *elements(options: TakeOptions = {}): AsyncGenerator<T, void> {
    for (;;) yield await this.take(options)
  }

  /**
   * Calls `consumer` with each element; the next one is taken when the promise it returns has settled. What it throws is
   * reported by an `error` event, and the element is gone, as in Redisson. Resolves with nothing: the id for `unsubscribe`
   * is returned at once.
   */
  subscribeOnElements(consumer: (value: T) => unknown): number {
    if (typeof consumer !== 'function') throw this.named(new InvalidArgumentError('consumer', 'a function', consumer))
    if (this.#consumers.has(consumer)) {
      throw this.named(new InvalidArgumentError('consumer', 'a function that is not subscribed yet', consumer))
    }
    const id = ++this.#lastSubscription
    const controller = new AbortController()
    this.#subscriptions.set(id, controller)
    this.#consumers.set(consumer, id)
    void this.#consume(consumer, controller.signal).finally(() => {
      this.#subscriptions.delete(id)
      this.#consumers.delete(consumer)
    })
    return id
  }

  /** Ends a subscription; an element popped already still reaches the consumer. False when there is none of this id. */
  unsubscribe(id: number): boolean {
    const controller = this.#subscriptions.get(id)
    this.#subscriptions.delete(id)
    for (const [consumer, other] of this.#consumers) if (other === id) this.#consumers.delete(consumer)
    controller?.abort()
    return controller !== undefined
  }

  async #consume(consumer: (value: T) => unknown, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let value: T
      try {
        value = await this.take({ signal })
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

  async #first(timeoutMs: number | undefined, { signal }: TakeOptions): Promise<T | null> {
    const [value] = await this.#wait(1, timeoutMs, signal)
    return value ?? null
  }

  /** Waits until at least one readable element came; empty when the time is over. */
  async #wait(max: number, timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<T[]> {
    if (signal?.aborted === true) throw toError(signal.reason)
    if (timeoutMs === 0) return this.drainTo(max)
    const deadline = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs
    let release: (() => void) | undefined
    try {
      if (this.#delivers) release = this.context.transfers.consume(this.identity)
      for (;;) {
        const remaining = deadline === Infinity ? undefined : Math.max(1, deadline - performance.now())
        const elements = await this.context.blocking.wait(this.key, { max, timeoutMs: remaining, signal })
        if (elements === null) return []
        const values = await this.accept(elements)
        if (values.length > 0) return values
      }
    } catch (thrown) {
      throw thrown instanceof RedelayedError ? this.named(thrown) : thrown
    } finally {
      release?.()
    }
  }

  #report(what: string, thrown: unknown): void {
    const cause = toError(thrown)
    const code = cause instanceof RedelayedError ? cause.code : 'ERR_CONSUMER'
    this.context.hub.emit('error', new RedelayedError(code, `${what}: ${cause.message}`, { queue: this.name, cause }))
  }
}

/** Ends early, without an error, when the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
    function done(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
  })
}
