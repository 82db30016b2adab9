import { durationMs, type Duration } from '../duration.js'
import { NotCompletedError } from '../errors.js'
import { integer, onlyKnown } from '../options.js'
import type { QueueHandle } from '../queues/queue-handle.js'
import type { QueueRegistry } from '../scheduler/queue-registry.js'
import type { EndReply } from '../store/reliable-scripts.js'
import type { ReliableStore } from '../store/reliable-store.js'
import { systemClock } from '../timing/clock.js'
import { EndWaits, type EndWaitsParams } from './end-waits.js'
import { readFailures } from './failures.js'
import { assertKnownId } from './message-id.js'

/** The kept data of a handled message. */
export interface CompletedMessage<R = unknown> {
  readonly id: string
  /** Epoch milliseconds by the Redis clock. */
  readonly completedAt: number
  /** How often it was delivered. */
  readonly attempts: number
  /** The result that the consumer gave; `undefined` for none. */
  readonly result: R | undefined
}

export interface WaitOptions {
  /** How long to wait, in milliseconds; `Infinity` (default) waits without end. */
  readonly timeout?: Duration | undefined
  /** Ends the wait; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/** Reads the completed messages that a queue keeps, and waits for messages to complete. */
export class Completed<T> {
  readonly #handle: QueueHandle<T>
  readonly #store: ReliableStore
  readonly #waits: QueueRegistry<EndWaits>
  readonly #params: EndWaitsParams

  constructor(handle: QueueHandle<T>, store: ReliableStore, waits: QueueRegistry<EndWaits>) {
    this.#handle = handle
    this.#store = store
    this.#waits = waits
    const address = { name: handle.name, channel: store.keys.ends }
    this.#params = {
      address,
      readEnds: (ids) => store.ends(ids),
      onError: (error) => waits.report(address, error),
      noConnectionYet: (triedForMs) => handle.context.commands.noConnectionYet(triedForMs),
      clock: systemClock,
    }
  }

  async wait<R>(id: string, options: WaitOptions): Promise<R | undefined> {
    onlyKnown('options', options, ['timeout', 'signal'])
    const { timeout = Infinity, signal } = options
    const timeoutMs = timeout === Infinity ? undefined : durationMs('timeout', timeout)
    const known = assertKnownId('id', id)
    const waits = this.#waits.serve(this.#params.address, () => new EndWaits(this.#params))
    const end = await waits.wait(known, { timeoutMs, signal })
    if (end.is === 'completed') return this.#resultOf(end) as R | undefined
    if (end.is === 'dead') throw new NotCompletedError('dead', readFailures(end.failures).at(-1)?.reason)
    throw new NotCompletedError(end.is === 'gone' ? 'gone' : 'timeout')
  }

  async get<R>(id: string): Promise<CompletedMessage<R> | null> {
    const [found = null] = await this.#read<R>([Buffer.from(assertKnownId('id', id))])
    return found
  }

  /** The completed messages, the latest first. */
  async *list<R>(options: { readonly pageSize?: number }): AsyncGenerator<CompletedMessage<R>, void> {
    onlyKnown('options', options, ['pageSize'])
    const pageSize = integer('pageSize', options.pageSize ?? 100, 1, 1_000)
    for (let from = 0; ; from += pageSize) {
      const ids = await this.#store.completedIds(from, pageSize)
      for (const message of await this.#read<R>(ids)) if (message !== null) yield message
      if (ids.length < pageSize) return
    }
  }

  /** One completed message for each id; `null` where none is kept. */
  async #read<R>(ids: readonly Buffer[]): Promise<(CompletedMessage<R> | null)[]> {
    const found: (CompletedMessage<R> | null)[] = []
    while (found.length < ids.length) {
      const ends = await this.#store.completed(ids.slice(found.length))
      for (const end of ends) {
        const id = String(ids[found.length])
        if (end.is !== 'completed') found.push(null)
        else
          found.push({ id, completedAt: end.at, attempts: end.attempts, result: this.#resultOf(end) as R | undefined })
      }
    }
    return found
  }

  #resultOf({ result }: Extract<EndReply, { is: 'completed' }>): unknown {
    return result === null ? undefined : this.#handle.decode(result)
  }
}
