import { assertRepeatName } from '../reliable/repeats/repeat-definition.js'
import type { ScheduleInfo } from '../reliable/repeats/schedules.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import type { ScheduleArguments } from '../reliable/tasks.js'
import { allOf, type ReliableShards } from './reliable-shards.js'
import { shardOfKey, shardsOfKey } from './shard-of-key.js'

/** The schedules of a sharded queue: each is in the shard of its name. */
export class ShardSchedules<T> {
  readonly #shards: ReliableShards<T>

  constructor(shards: ReliableShards<T>) {
    this.#shards = shards
  }

  /**
   * Sets the schedule in its shard before ending it in the shards of other numbers of shards, so that it is never missing. It continues after the last tick that
   * was prepared there: a shard whose master was away has missed some.
   */
  async upsert(name: string, schedule: ScheduleArguments<T>): Promise<boolean> {
    const place = this.#shards.at(shardOfKey(assertRepeatName(name), this.#shards.shards))
    const others = this.#placesOf(name).filter((queue) => queue !== place)
    const known = await allOf(others.map((queue) => queue.lastTickOf(name, ...schedule)))
    const ticks = known.filter((tick) => tick !== null)
    const last = ticks.length === 0 ? null : Math.max(...ticks)
    const isChanged = await place.continueSchedule(name, last, ...schedule)
    return (await removeFrom(others, name)) || isChanged
  }

  /** Removes it from all shards: another program can have written a copy into a shard that is none of its name. */
  async remove(name: string): Promise<boolean> {
    return removeFrom(this.#shards.queues, assertRepeatName(name))
  }

  async list(): Promise<ScheduleInfo<T>[]> {
    const all = (await this.#shards.each((queue) => queue.listSchedules())).flat()
    return all.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #placesOf(name: string): ReliableQueue<T>[] {
    return shardsOfKey(assertRepeatName(name), this.#shards.covered).map((shard) => this.#shards.at(shard))
  }
}

async function removeFrom<T>(queues: readonly ReliableQueue<T>[], name: string): Promise<boolean> {
  return (await allOf(queues.map((queue) => queue.removeSchedule(name)))).includes(true)
}
