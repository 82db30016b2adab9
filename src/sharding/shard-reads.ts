import type { ReliableQueueCounts } from '../reliable/contents.js'
import type { GroupCounts, QueueTotals } from '../reliable/groups.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { placesOf } from './id-places.js'
import { allOf, groupBy, type ReliableShards } from './reliable-shards.js'

/** Reads the messages of all shards as those of one queue. */
export class ShardReads<T> {
  readonly #shards: ReliableShards<T>

  constructor(shards: ReliableShards<T>) {
    this.#shards = shards
  }

  /** Reads messages from the present shards of their ids; missing ones from the other shards where they can be. */
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

  /** How many of the ids have a message. */
  async containsMany(ids: readonly string[]): Promise<number> {
    const isThere = ids.map((id) => this.#shards.find(id, (queue) => queue.contains(id)))
    return (await allOf(isThere)).filter(Boolean).length
  }

  async counts(): Promise<ReliableQueueCounts> {
    const all = await this.#shards.each((queue) => queue.counts())
    const sum = sumsOf(all)
    return {
      total: sum(({ total }) => total),
      visible: sum(({ visible }) => visible),
      delayed: sum(({ delayed }) => delayed),
      inFlight: sum(({ inFlight }) => inFlight),
      dead: sum(({ dead }) => dead),
      oldestMs: Math.max(...all.map(({ oldestMs }) => oldestMs)),
    }
  }

  async countsOfGroup(group: string): Promise<GroupCounts> {
    const all = await this.#shards.each((queue) => queue.countsOfGroup(group))
    const sum = sumsOf(all)
    return {
      ...(all[0] as GroupCounts),
      visible: sum(({ visible }) => visible),
      delayed: sum(({ delayed }) => delayed),
      inFlight: sum(({ inFlight }) => inFlight),
      delivered: sum(({ delivered }) => delivered),
      paused: all.some(({ paused }) => paused),
    }
  }

  async totals(): Promise<QueueTotals> {
    const all = await this.#shards.each((queue) => queue.totals())
    const sum = sumsOf(all)
    return {
      heldBack: { byPause: sum(({ heldBack }) => heldBack.byPause), byLimit: sum(({ heldBack }) => heldBack.byLimit) },
      groups: {
        ready: sum(({ groups }) => groups.ready),
        later: sum(({ groups }) => groups.later),
        paused: sum(({ groups }) => groups.paused),
      },
      tasks: { paused: Math.max(...all.map(({ tasks }) => tasks.paused)) }, // a paused task is paused in all shards
      batches: {
        unfinished: sum(({ batches }) => batches.unfinished),
        finished: sum(({ batches }) => batches.finished),
      },
      paused: { add: all.some(({ paused }) => paused.add), poll: all.some(({ paused }) => paused.poll) },
      completed: { kept: sum(({ completed }) => completed.kept) },
    }
  }
}

/** Adds up one figure of all shards. */
function sumsOf<C>(all: readonly C[]): (figure: (counts: C) => number) => number {
  return (figure) => all.reduce((sum, counts) => sum + figure(counts), 0)
}
