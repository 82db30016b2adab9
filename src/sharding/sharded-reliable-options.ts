import type { Codec } from '../codecs/codec.js'
import { integer } from '../options.js'
import type { ShardCounts } from './id-places.js'
import { MAX_SHARDS } from './shard-names.js'

export interface ShardedReliableQueueOptions<T> {
  /** Over how many shards ids are placed. Everyone on the queue gives the same number. 1 to 256. */
  readonly shards: number
  /**
   * How many shards there were before the number was changed; of several numbers the largest. Give it until the messages of that time
   * are gone: shards beyond `shards` are still polled and read, and a message added with an id of your own meets one of this id from before.
   * 1 to 256; default: as `shards`.
   */
  readonly formerShards?: number | undefined
  /** How values are turned into bytes. Everyone on the queue must use the same; default: the client's. */
  readonly codec?: Codec<T> | undefined
}

export const SHARDED_RELIABLE_OPTIONS = [
  'shards',
  'formerShards',
  'codec',
] as const satisfies readonly (keyof ShardedReliableQueueOptions<unknown>)[]

export interface ShardedReliableSettings extends ShardCounts {
  /** Whether `formerShards` was given: messages can be where another number of shards placed them. */
  readonly isChanging: boolean
}

export function resolveShardedReliableOptions(options: ShardedReliableQueueOptions<unknown>): ShardedReliableSettings {
  const shards = integer('shards', options.shards, 1, MAX_SHARDS)
  const former = integer('formerShards', options.formerShards ?? shards, 1, MAX_SHARDS)
  return { shards, covered: Math.max(shards, former), isChanging: options.formerShards !== undefined }
}
