import { InvalidArgumentError, ShutdownError, toError } from '../errors.js'
import { boolean, integer, onlyKnown } from '../options.js'
import type { End } from '../store/list-store.js'
import type { Duration } from '../duration.js'
import { toMillis, type TimeUnit } from '../timing/units.js'
import type { EndMove } from './deque-ends.js'
import { ListElements } from './list-elements.js'

/** Options of a wait. An abort rejects with the signal's reason, unless an element was popped already: then that is returned. */
export interface TakeOptions {
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined
}

export interface TakeManyOptions extends TakeOptions {
  /** How long to wait for the first element, in milliseconds or as a text such as `'5s'`; without it, without end. */
  readonly timeout?: Duration | undefined
}

/** An element and the queue that it came from. */
export interface NamedElement<T> {
  readonly name: string
  readonly value: T
}

/** Names of further queues: one by one, or in an array, which options can follow. */
export type FurtherQueues = readonly string[] | readonly [names: readonly string[], options?: TakeOptions]

/** How long a poll waits: not at all, or for a time in milliseconds or another unit. */
export type PollArguments =
  | readonly [timeout?: Duration, options?: TakeOptions]
  | readonly [timeout?: Duration, unit?: TimeUnit, options?: TakeOptions]

const MAX_TAKE = 10_000

/** One wait, with or without an end. */
interface Wait extends TakeOptions {
  readonly end: End
  readonly max: number
  readonly timeoutMs: number | undefined
}

interface Taken<T> {
  readonly list: ListElements<T>
  readonly values: T[]
}

/** Waits for elements of one list or of several, for `BlockingQueue` and `BlockingDeque`. */
export class Waits<T> {
  readonly #list: ListElements<T>
  /** Whether this client transfers the due messages of the queues it waits for. */
  readonly #delivers: boolean

  constructor(list: ListElements<T>, { consumersDeliver }: { consumersDeliver?: boolean | undefined }) {
    this.#list = list
    const { settings } = list.handle.context
    this.#delivers = boolean('consumersDeliver', consumersDeliver ?? settings.consumersDeliver)
  }

  /** Takes one element, waiting without end. */
  async take(end: End, { signal }: TakeOptions): Promise<T> {
    const taken = await this.#among([this.#list], { end, max: 1, timeoutMs: undefined, signal })
    const value = taken?.values[0]
    if (value === undefined) throw new ShutdownError('the wait ended', { queue: this.#list.handle.name })
    return value
  }

  /** Takes one element: without waiting when no timeout is given, else waiting at most for that time. */
  async poll(end: End, given: PollArguments): Promise<T | null> {
    const { timeoutMs, signal } = waitOfPoll(given)
    if (timeoutMs === undefined) return this.#list.pop(end)
    const taken = await this.#among([this.#list], { end, max: 1, timeoutMs, signal })
    return taken?.values[0] ?? null
  }

  /** Takes several elements from the front; none when the time is over. */
  async takeMany(max: number, options: TakeManyOptions): Promise<T[]> {
    const timeoutMs = waitOfTake(max, options)
    const taken = await this.#among([this.#list], { end: 'left', max, timeoutMs, signal: options.signal })
    return taken?.values ?? []
  }

  /** Takes one element of this list or of the lists of other queues. */
  async takeFromAny(
    end: End,
    timeout: Duration,
    unit: TimeUnit | undefined,
    further: FurtherQueues,
  ): Promise<NamedElement<T> | null> {
    const taken = await this.#amongNamed(further, { end, max: 1, timeoutMs: this.millis(timeout, unit) })
    const value = taken?.values[0]
    return taken === null || value === undefined ? null : { name: taken.list.handle.name, value }
  }

  /** Takes several elements of the first of some lists that has any; a map with its queue's name. */
  async takeManyFromAny(
    end: End,
    timeout: Duration,
    unit: TimeUnit | undefined,
    count: number,
    further: FurtherQueues,
  ): Promise<Map<string, T[]> | null> {
    const timeoutMs = this.millis(timeout, unit)
    const max = integer('count', count, 1, MAX_TAKE)
    const taken = await this.#amongNamed(further, { end, max, timeoutMs })
    return taken === null ? null : new Map([[taken.list.handle.name, taken.values]])
  }

  /** Waits for an element at one end of this list and moves it to one end of another, in one step at the server. */
  async move({ from, to, name }: EndMove, timeoutMs: number | undefined, { signal }: TakeOptions): Promise<T | null> {
    const { handle, key: source, identity } = this.#list
    const { context } = handle
    const target = context.keysOf(name).destination
    const release = this.#delivers ? context.transfers.consume(identity) : undefined
    let bytes: Buffer | null
    try {
      bytes = await context.blocking.move({ source, target, from, to }, { timeoutMs, signal })
    } finally {
      release?.()
    }
    return bytes === null ? null : handle.decode(bytes)
  }

  /** As `move`, without an end of the wait. */
  async takeAndMove(move: EndMove, options: TakeOptions): Promise<T> {
    return this.#list.handle.orThrow(await this.move(move, undefined, options))
  }

  millis(timeout: Duration, unit: TimeUnit | undefined): number {
    return toMillis('timeout', timeout, unit)
  }

  /** As `#among`, for this list and those of the named queues: this one first, each once, all with this one's codec. */
  #amongNamed(further: FurtherQueues, wait: Omit<Wait, 'signal'>): Promise<Taken<T> | null> {
    const { context, codec } = this.#list.handle
    const { names, options } = parseFurther(further)
    const lists = new Map([[this.#list.key, this.#list]])
    for (const name of names) {
      const keys = context.keysOf(name)
      if (!lists.has(keys.destination)) {
        lists.set(keys.destination, new ListElements<T>(context, { name, keys, codec }))
      }
    }
    return this.#among([...lists.values()], { ...wait, signal: options.signal })
  }

  /**
   * Waits until the first of some lists has a readable element; `null` when the time is over. Lists that have elements already
   * come in their order; once all are empty, the first to get one gives it.
   */
  async #among(lists: readonly ListElements<T>[], { end, max, timeoutMs, signal }: Wait): Promise<Taken<T> | null> {
    if (signal?.aborted === true) throw toError(signal.reason)
    const { handle } = this.#list
    const { blocking, transfers } = handle.context
    const deadline = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs
    if (timeoutMs === 0 || lists.length > 1) {
      // a drain must not wait for a connection longer than its caller does
      if (timeoutMs !== 0 && !(await blocking.reach({ timeoutMs, signal }))) return null
      for (const list of lists) {
        const values = await list.drain(end, max, timeoutMs === 0 ? undefined : deadline)
        if (values.length > 0) return { list, values }
      }
      if (timeoutMs === 0) return null
    }
    const keys = lists.map(({ key }) => key)
    const releases: (() => void)[] = []
    try {
      if (this.#delivers) for (const list of lists) releases.push(transfers.consume(list.identity))
      for (;;) {
        const remaining = deadline === Infinity ? undefined : Math.max(1, deadline - performance.now())
        const taken = await blocking.wait(keys, end, { max, timeoutMs: remaining, signal })
        const list = lists.find(({ key }) => key === taken?.key)
        if (taken === null || list === undefined) return null
        const values = await list.quarantine.accept(taken.elements)
        if (values.length > 0) return { list, values }
        if (performance.now() >= deadline) return null // unreadable elements can follow each other without end
      }
    } catch (thrown) {
      throw handle.attributed(thrown)
    } finally {
      for (const release of releases) release()
    }
  }
}

/** The wait of a poll; without `timeoutMs` it does not wait. */
export function waitOfPoll([timeout, unit, options]: PollArguments): TakeOptions & { timeoutMs?: number } {
  if (timeout === undefined) return {}
  if (typeof unit === 'object' && unit !== null) return { timeoutMs: toMillis('timeout', timeout), signal: unit.signal }
  return { timeoutMs: toMillis('timeout', timeout, unit), signal: options?.signal }
}

/** How long a `takeMany` waits; undefined: without end. */
export function waitOfTake(max: number, options: TakeManyOptions): number | undefined {
  integer('max', max, 1, MAX_TAKE)
  onlyKnown('options', options, ['timeout', 'signal'])
  return options.timeout === undefined ? undefined : toMillis('timeout', options.timeout)
}

function parseFurther(further: FurtherQueues): { names: readonly string[]; options: TakeOptions } {
  const [first, options] = further
  if (!Array.isArray(first)) return { names: further as readonly string[], options: {} }
  if (options !== undefined && (typeof options !== 'object' || options === null)) {
    throw new InvalidArgumentError('options', 'an object', options)
  }
  return { names: first as string[], options: options ?? {} }
}
