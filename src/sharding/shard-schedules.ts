import { assertRepeatName } from '../reliable/repeats/repeat-definition.js'
import type { ScheduleInfo } from '../reliable/repeats/schedules.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import type { ScheduleArguments } from '../reliable/tasks.js'
import { allOf, type ReliableShards } from './reliable-shards.js'
import { shardOfKey, shardsOfKey } from './shard-of-key.js'

/** The schedules of a sharded queue: each is in the shard of its name. */
export class ShardSchedules<T> {
  readonly #shards: ReliableShards<T>
  readonly #isChanging: boolean

  /** @param isChanging schedules can be in the shards of another number of shards */
  constructor(shards: ReliableShards<T>, isChanging: boolean) {
    this.#shards = shards
    this.#isChanging = isChanging
  }

  /**
   * Sets the schedule in its shard before ending it in the shards of other numbers of shards, so that it is never missing. While the number
   * of shards changes, it continues after the last tick that was prepared there: a shard whose master was away has missed some.
   */
  async upsert(name: string, schedule: ScheduleArguments<T>): Promise<boolean> {
    const place = this.#shards.at(shardOfKey(assertRepeatName(name), this.#shards.shards))
    const others = this.#placesOf(name).filter((queue) => queue !== place)
    const last = this.#isChanging ? await this.#lastTickIn(others, name, schedule) : null
    const isChanged = await place.continueSchedule(name, last, ...schedule)
    return (await removeFrom(others, name)) || isChanged
  }

  async #lastTickIn(
    queues: readonly ReliableQueue<T>[],
    name: string,
    schedule: ScheduleArguments<T>,
  ): Promise<number | null> {
    const known = await allOf(queues.map((queue) => queue.lastTickOf(name, ...schedule)))
    const ticks = known.filter((tick) => tick !== null)
    return ticks.length === 0 ? null : Math.max(...ticks)
  }

  async remove(name: string): Promise<boolean> {
    return removeFrom(this.#placesOf(name), name)
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
