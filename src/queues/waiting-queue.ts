import type { End } from '../redis/blocking/blocking-commands.js'
import { InvalidArgumentError, RedelayedError, ShutdownError, toError } from '../errors.js'
import { boolean } from '../options.js'
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

/** An element and the queue that it came from. */
export interface NamedElement<T> {
  readonly name: string
  readonly value: T
}

/** Names of further queues: one by one, or in an array, which options can follow. */
export type FurtherQueues = readonly string[] | readonly [names: readonly string[], options?: TakeOptions]

/** One wait, with or without an end. */
export interface Wait extends TakeOptions {
  readonly end: End
  readonly max: number
  readonly timeoutMs: number | undefined
}

/** Waiting for elements of one list or of several, for what `BlockingQueue` and `BlockingDeque` offer. */
export abstract class WaitingQueue<T> extends ListQueue<T> {
  readonly #delivers: boolean

  /** @internal */
  constructor(
    context: QueueContext,
    identity: QueueIdentity<T>,
    options: { consumersDeliver?: boolean | undefined } = {},
  ) {
    super(context, identity)
    this.#delivers = boolean('consumersDeliver', options.consumersDeliver ?? context.settings.consumersDeliver)
  }

  /** Takes one element, waiting without end. */
  protected async takeAt(end: End, { signal }: TakeOptions): Promise<T> {
    const [value] = await this.waitHere({ end, max: 1, timeoutMs: undefined, signal })
    if (value === undefined) throw new ShutdownError('the wait ended', { queue: this.name })
    return value
  }

  /** Takes one element: without waiting when no timeout is given, else waiting at most so long. */
  protected async pollAt(
    end: End,
    timeout: number | undefined,
    unit: TimeUnit | TakeOptions | undefined,
    options: TakeOptions | undefined,
  ): Promise<T | null> {
    if (timeout === undefined) return this.pollNow(end)
    const { signal } = typeof unit === 'object' ? unit : (options ?? {})
    const timeoutMs = this.millis(timeout, typeof unit === 'object' ? undefined : unit)
    const [value] = await this.waitHere({ end, max: 1, timeoutMs, signal })
    return value ?? null
  }

  /** Waits until at least one readable element came; empty when the time is over. */
  protected async waitHere(wait: Wait): Promise<T[]> {
    return (await this.waitAmong([this], wait))?.values ?? []
  }

  /**
   * Waits until the first of some queues has a readable element. Those that have one already are looked at in their order;
   * once all are empty, whichever gets one first gives it.
   */
  protected async waitAmong(
    queues: readonly WaitingQueue<T>[],
    { end, max, timeoutMs, signal }: Wait,
  ): Promise<{ queue: WaitingQueue<T>; values: T[] } | null> {
    if (signal?.aborted === true) throw toError(signal.reason)
    const deadline = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs
    if (timeoutMs === 0 || queues.length > 1) {
      if (timeoutMs !== 0 && !(await this.#reach(timeoutMs, signal))) return null
      for (const queue of queues) {
        const values = await queue.takeNow(end, max)
        if (values.length > 0) return { queue, values }
      }
      if (timeoutMs === 0) return null
    }
    const byKey = new Map(queues.map((queue) => [queue.key, queue]))
    const releases: (() => void)[] = []
    try {
      for (const queue of queues) if (queue.#delivers) releases.push(this.context.transfers.consume(queue.identity))
      for (;;) {
        const remaining = deadline === Infinity ? undefined : Math.max(1, deadline - performance.now())
        const taken = await this.context.blocking.wait([...byKey.keys()], end, { max, timeoutMs: remaining, signal })
        const queue = taken === null ? undefined : byKey.get(taken.key)
        if (taken === null || queue === undefined) return null
        const values = await queue.accept(taken.elements)
        if (values.length > 0) return { queue, values }
      }
    } catch (thrown) {
      throw thrown instanceof RedelayedError ? this.handle.withQueueName(thrown) : thrown
    } finally {
      for (const release of releases) release()
    }
  }

  /** What looks without waiting at the server must not wait for a connection longer than the caller. */
  async #reach(timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      return await this.context.blocking.reach({ timeoutMs, signal })
    } catch (thrown) {
      throw thrown instanceof RedelayedError ? this.handle.withQueueName(thrown) : thrown
    }
  }

  /** As `waitAmong`, for this queue and those of the given names: this one first, each once, all with this one's codec. */
  protected waitAny(
    further: FurtherQueues,
    wait: Omit<Wait, 'signal'>,
  ): Promise<{ queue: WaitingQueue<T>; values: T[] } | null> {
    const { queues, signal } = this.handle.checked(() => {
      const { names, options } = parseFurther(further)
      const queues = new Map<string, WaitingQueue<T>>([[this.key, this]])
      for (const name of names) {
        const keys = this.context.keysOf(name)
        const identity = { name, keys, codec: this.codec }
        if (!queues.has(keys.destination)) queues.set(keys.destination, this.sibling(identity, this.#delivers))
      }
      return { queues: [...queues.values()], signal: options.signal }
    })
    return this.waitAmong(queues, { ...wait, signal })
  }

  /** A queue like this one under another name. */
  protected abstract sibling(identity: QueueIdentity<T>, consumersDeliver: boolean): WaitingQueue<T>

  /** Waits for an element at one end of this list and moves it to one end of another, in one step at the server. */
  protected async waitAndMove(
    { from, to, name }: { from: End; to: End; name: string },
    timeoutMs: number | undefined,
    { signal }: TakeOptions,
  ): Promise<T | null> {
    const target = this.handle.checked(() => this.context.keysOf(name).destination)
    const release = this.#delivers ? this.context.transfers.consume(this.identity) : undefined
    let bytes: Buffer | null
    try {
      bytes = await this.context.blocking.move({ source: this.key, target, from, to }, { timeoutMs, signal })
    } catch (thrown) {
      throw thrown instanceof RedelayedError ? this.handle.withQueueName(thrown) : thrown
    } finally {
      release?.()
    }
    return bytes === null ? null : this.handle.decode(bytes)
  }

  protected millis(timeout: number, unit: TimeUnit | undefined): number {
    return this.handle.checked(() => toMillis('timeout', timeout, unit))
  }
}

function parseFurther(further: FurtherQueues): { names: readonly string[]; options: TakeOptions } {
  const [first, options] = further
  if (!Array.isArray(first)) return { names: further as readonly string[], options: {} }
  if (options !== undefined && (typeof options !== 'object' || options === null)) {
    throw new InvalidArgumentError('options', 'an object', options)
  }
  return { names: first as string[], options: options ?? {} }
}
