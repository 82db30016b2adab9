import type { Codec } from '../codecs/codec.js'
import { integer } from '../options.js'
import type { ShardCounts } from './id-places.js'
import { MAX_SHARDS } from './shard-names.js'

export interface ShardedReliableQueueOptions<T> {
  /** The number of shards over which ids are placed. All users of the queue must give the same. 1 to 256. */
  readonly shards: number
  /**
   * The number of shards before it was changed; after several changes the largest. Give it until the earlier messages
   * are gone: shards beyond `shards` are still polled and read, and an `add` with an id of your own, and `redrive`,
   * find an earlier message of this id. 1 to 256; default: as `shards`.
   */
  readonly formerShards?: number | undefined
  /** Turns values into bytes and back. All processes that use the queue must use the same; default: the client's. */
  readonly codec?: Codec<T> | undefined
}

export const SHARDED_RELIABLE_OPTIONS = [
  'shards',
  'formerShards',
  'codec',
] as const satisfies readonly (keyof ShardedReliableQueueOptions<unknown>)[]

export interface ShardedReliableSettings extends ShardCounts {
  /** Whether `formerShards` was given, so that messages can be in the shards of another number of shards. */
  readonly isChanging: boolean
}

export function resolveShardedReliableOptions(options: ShardedReliableQueueOptions<unknown>): ShardedReliableSettings {
  const shards = integer('shards', options.shards, 1, MAX_SHARDS)
  const former = integer('formerShards', options.formerShards ?? shards, 1, MAX_SHARDS)
  return { shards, covered: Math.max(shards, former), isChanging: options.formerShards !== undefined }
}
