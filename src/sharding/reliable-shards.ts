import { ConnectionError, toError } from '../errors.js'
import { isKnownId } from '../reliable/message-id.js'
import type { ReliableQueue } from '../reliable/reliable-queue.js'
import { placesOf, type ShardCounts } from './id-places.js'

/** The queues of a sharded reliable queue; finds the one with the message of an id. */
export class ReliableShards<T> implements ShardCounts {
  /** All queues that are polled and read; ids are placed in the first `shards` of them. */
  readonly queues: readonly ReliableQueue<T>[]
  readonly shards: number

  constructor(queues: readonly ReliableQueue<T>[], shards: number) {
    this.queues = queues
    this.shards = shards
  }

  get covered(): number {
    return this.queues.length
  }

  at(shard: number): ReliableQueue<T> {
    return this.queues[shard] as ReliableQueue<T>
  }

  /** Runs on all shards concurrently; rejects with a failure after all have ended. */
  each<R>(action: (queue: ReliableQueue<T>) => Promise<R>): Promise<R[]> {
    return allOf(this.queues.map(action))
  }

  /** Runs on one shard after the other until one has the message; resolves with whether one did. */
  async find(id: string, action: (queue: ReliableQueue<T>) => Promise<boolean>): Promise<boolean> {
    for (const place of placesOf(id, this)) if (await action(this.at(place))) return true
    return false
  }

  /** The shard of an id; with `isSought`, the one that has a message of this id, if any. */
  async placeOf(id: string, isSought: boolean): Promise<number> {
    const [place, ...others] = placesOf(id, this)
    if (!isSought) return place
    const isThere = await Promise.all(others.map((other) => this.at(other).contains(id)))
    return others.find((_, at) => isThere[at]) ?? place
  }

  /**
   * Moves dead letters of a shard back to it, without those whose ids another shard has or may have. Yields how many each script has moved,
   * and throws the first failure at the end. `silent`: shards that have not answered; ids are no longer looked for there.
   */
  async *redrive(shard: number, count: number, silent: Set<number>): AsyncGenerator<number, void> {
    let failure: Error | undefined
    const isIn = async (other: number, id: string): Promise<boolean> => {
      if (silent.has(other)) return true
      try {
        return await this.at(other).contains(id)
      } catch (thrown) {
        failure ??= toError(thrown)
        silent.add(other)
        return true
      }
    }
    const isFree = async (id: Buffer): Promise<boolean> => {
      if (!isKnownId(id)) return true // no call adds such an id
      const text = id.toString()
      const others = placesOf(text, this).filter((place) => place !== shard)
      return !(await Promise.all(others.map((other) => isIn(other, text)))).includes(true)
    }
    yield* this.at(shard).redriveFree(count, async (ids) => {
      const areFree = await Promise.all(ids.map(isFree))
      return ids.filter((_, at) => areFree[at])
    })
    if (failure !== undefined) throw failure
  }
}

/** Combines calls: waits for all, then resolves, or rejects with the first failure. */
export async function allOf<R>(calls: readonly Promise<R>[]): Promise<R[]> {
  const settled = await Promise.allSettled(calls)
  const failed = settled.find((result) => result.status === 'rejected')
  if (failed === undefined) return settled.map((result) => (result as PromiseFulfilledResult<R>).value)
  const error = toError(failed.reason)
  const isPartly = settled.some((result) => result.status === 'fulfilled' || !wasNotApplied(result.reason))
  throw isPartly && wasNotApplied(error) ? partly(error) : error
}

/** The error of a call of which other parts may have been carried out, though not the part that failed. */
function partly(error: ConnectionError): ConnectionError {
  const { message, queue } = error
  return Object.assign(new ConnectionError(message, 'unknown', { cause: error }), { queue })
}

function wasNotApplied(thrown: unknown): thrown is ConnectionError {
  return thrown instanceof ConnectionError && thrown.outcome === 'not-applied'
}

/** The indexes of the values by key. */
export function groupBy<V, K>(values: readonly V[], keyOf: (value: V, at: number) => K): Map<K, number[]> {
  const groups = new Map<K, number[]>()
  values.forEach((value, at) => {
    const key = keyOf(value, at)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [at])
    else group.push(at)
  })
  return groups
}
