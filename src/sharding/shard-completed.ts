import { NotCompletedError, UnsupportedOperationError } from '../errors.js'
import type { CompletedMessage, WaitOptions } from '../reliable/completed.js'
import { durationMs } from '../duration.js'
import { onlyKnown } from '../options.js'
import { unlessAborted } from '../timing/pause.js'
import { isDerived, placesOf } from './id-places.js'
import type { ReliableShards } from './reliable-shards.js'

/** How often the shards of an id are asked, because its message can move between them while the number of shards changes. */
const ROUNDS = 2

/** The completed messages of a sharded queue, each kept in the shard that handled it. */
export class ShardCompleted<T> {
  readonly #shards: ReliableShards<T>
  /**
   * Whether a message may still be in its shard of an earlier number of shards, while its present shard keeps an earlier message of its id.
   */
  readonly #isChanging: boolean

  constructor(shards: ReliableShards<T>, isChanging: boolean) {
    this.#shards = shards
    this.#isChanging = isChanging
  }

  async wait<R>(id: string, options: WaitOptions): Promise<R | undefined> {
    onlyKnown('options', options, ['timeout', 'signal'])
    const { timeout, signal } = options
    const isEndless = timeout === undefined || timeout === Infinity
    const deadline = isEndless ? Infinity : performance.now() + durationMs('timeout', timeout)
    const seeking = this.#placesOf(id)
    const places = await (signal === undefined ? seeking : unlessAborted(seeking, signal))
    for (let turn = 1; ; turn++) {
      const queue = this.#shards.at(places[(turn - 1) % places.length] as number)
      const left = isEndless ? Infinity : Math.max(0, Math.round(deadline - performance.now()))
      try {
        return await queue.waitUntilFinished<R>(id, { timeout: left, signal })
      } catch (error) {
        if (!mayBeElsewhere(error) || places.length === 1 || turn >= ROUNDS * places.length) throw error
      }
    }
  }

  /** The completed message of an id; if several shards keep one, the latest. */
  async get<R>(id: string): Promise<CompletedMessage<R> | null> {
    const found = await Promise.all(
      placesOf(id, this.#shards).map((place) => this.#shards.at(place).getCompleted<R>(id)),
    )
    return found.reduce((last, one) => ((one?.completedAt ?? -1) > (last?.completedAt ?? -1) ? one : last), null)
  }

  async *list<R>(options: { readonly pageSize?: number }): AsyncGenerator<CompletedMessage<R>, void> {
    for (const queue of this.#shards.queues) yield* queue.listCompleted<R>(options)
  }

  /** The shards of an id, beginning with the one that has the message now. */
  async #placesOf(id: string): Promise<readonly number[]> {
    const places = placesOf(id, this.#shards)
    const first = await this.#shards.placeOf(id, this.#isChanging || isDerived(id))
    return [first, ...places.filter((place) => place !== first)]
  }
}

/** Whether the message may be in another shard; a new shard may not have the configuration yet. */
function mayBeElsewhere(error: unknown): boolean {
  return (error instanceof NotCompletedError && error.reason === 'gone') || error instanceof UnsupportedOperationError
}
