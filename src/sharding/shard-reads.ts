import type { ReliableQueueCounts } from '../reliable/contents.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { placesOf } from './id-places.js'
import { allOf, groupBy, type ReliableShards } from './reliable-shards.js'

/** Reads the messages of all shards as if they lay in one queue. */
export class ShardReads<T> {
  readonly #shards: ReliableShards<T>

  constructor(shards: ReliableShards<T>) {
    this.#shards = shards
  }

  /** First where the ids are placed now; those that are not there, where they can be otherwise. */
  async getAll<M>(
    ids: readonly string[],
    read: (queue: ReliableQueue<T>, ids: string[]) => Promise<(M | null)[]>,
  ): Promise<(M | null)[]> {
    const found = new Array<M | null>(ids.length).fill(null)
    const lookUp = async (places: readonly (readonly [at: number, shard: number])[]): Promise<void> => {
      const inShard = async ([shard, group]: [number, number[]]): Promise<void> => {
        const indexes = group.flatMap((position) => places[position]?.[0] ?? [])
        const infos = await read(
          this.#shards.at(shard),
          indexes.flatMap((at) => ids[at] ?? []),
        )
        indexes.forEach((at, position) => (found[at] ??= infos[position] ?? null))
      }
      await allOf(
        Array.from(
          groupBy(places, ([, shard]) => shard),
          inShard,
        ),
      )
    }
    const all = ids.map((id) => placesOf(id, this.#shards))
    await lookUp(all.map(([place], at) => [at, place] as const))
    await lookUp(
      all.flatMap(([, ...others], at) => (found[at] === null ? others.map((shard) => [at, shard] as const) : [])),
    )
    return found
  }

  /** How many of the ids are there. */
  async containsMany(ids: readonly string[]): Promise<number> {
    const isThere = ids.map((id) => this.#shards.find(id, (queue) => queue.contains(id)))
    return (await allOf(isThere)).filter(Boolean).length
  }

  async counts(): Promise<ReliableQueueCounts> {
    const all = await this.#shards.each((queue) => queue.counts())
    const sum = (which: (counts: ReliableQueueCounts) => number): number => all.reduce((s, one) => s + which(one), 0)
    return {
      total: sum(({ total }) => total),
      visible: sum(({ visible }) => visible),
      delayed: sum(({ delayed }) => delayed),
      inFlight: sum(({ inFlight }) => inFlight),
      dead: sum(({ dead }) => dead),
      oldestMs: Math.max(...all.map(({ oldestMs }) => oldestMs)),
    }
  }
}
