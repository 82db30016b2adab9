import {
  assertRestored,
  howToRestore,
  type RestoreItem,
  type RestoreOptions,
  type RestoreOutcome,
} from '../reliable/raw-messages.js'
import { isDerived } from './id-places.js'
import { allOf, groupBy, type ReliableShards } from './reliable-shards.js'

/** Restores messages into the shards of their ids. */
export class ShardRestores<T> {
  readonly #shards: ReliableShards<T>
  readonly #isChanging: boolean

  constructor(shards: ReliableShards<T>, isChanging: boolean) {
    this.#shards = shards
    this.#isChanging = isChanging
  }

  /**
   * Checks all messages before anything is sent. First searches for messages that can be in another shard, because none may exist twice.
   */
  async restoreMany(messages: Iterable<RestoreItem>, options: RestoreOptions = {}): Promise<RestoreOutcome[]> {
    const items = Array.from(messages)
    items.forEach(assertRestored)
    howToRestore(options)
    const places = await allOf(items.map(({ id }) => this.#shards.placeOf(id, this.#isChanging || isDerived(id))))
    const outcomes = new Array<RestoreOutcome>(items.length)
    const restore = async ([shard, indexes]: [number, number[]]): Promise<void> => {
      const restored = await this.#shards.at(shard).restoreMany(
        indexes.flatMap((at) => items[at] ?? []),
        options,
      )
      indexes.forEach((at, position) => (outcomes[at] = restored[position] ?? 'present'))
    }
    await allOf(
      Array.from(
        groupBy(places, (place) => place),
        restore,
      ),
    )
    return outcomes
  }
}
