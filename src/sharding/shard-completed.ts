import { NotCompletedError } from '../errors.js'
import type { CompletedMessage, WaitOptions } from '../reliable/completed.js'
import { durationMs } from '../duration.js'
import { onlyKnown } from '../options.js'
import { placesOf } from './id-places.js'
import type { ReliableShards } from './reliable-shards.js'

/** So often the shards of an id are asked: its message can move from one to another while the number of shards changes. */
const ROUNDS = 2

/** The completed messages of a sharded queue: what is kept of each is in the shard that handled it. */
export class ShardCompleted<T> {
  readonly #shards: ReliableShards<T>

  constructor(shards: ReliableShards<T>) {
    this.#shards = shards
  }

  async wait<R>(id: string, options: WaitOptions): Promise<R | undefined> {
    onlyKnown('options', options, ['timeout', 'signal'])
    const { timeout, signal } = options
    const isEndless = timeout === undefined || timeout === Infinity
    const deadline = isEndless ? Infinity : performance.now() + durationMs('timeout', timeout)
    const places = placesOf(id, this.#shards)
    for (let turn = 1; ; turn++) {
      const queue = this.#shards.at(places[(turn - 1) % places.length] as number)
      const left = isEndless ? Infinity : Math.max(0, Math.round(deadline - performance.now()))
      try {
        return await queue.waitUntilFinished<R>(id, { timeout: left, signal })
      } catch (error) {
        const isGone = error instanceof NotCompletedError && error.reason === 'gone'
        if (!isGone || places.length === 1 || turn >= ROUNDS * places.length) throw error
      }
    }
  }

  async get<R>(id: string): Promise<CompletedMessage<R> | null> {
    const found = await Promise.all(
      placesOf(id, this.#shards).map((place) => this.#shards.at(place).getCompleted<R>(id)),
    )
    return found.find((one) => one !== null) ?? null
  }

  async *list<R>(options: { readonly pageSize?: number }): AsyncGenerator<CompletedMessage<R>, void> {
    for (const queue of this.#shards.queues) yield* queue.listCompleted<R>(options)
  }
}
