import type { Codec } from '../codecs/codec.js'
import { boolean, integer, oneOf } from '../options.js'
import { LAYOUTS, type Layout, type OfferItem, type OfferOptions } from '../queues/delayed-options.js'
import { MAX_SHARDS } from './shard-names.js'

export interface ShardedDelayedQueueOptions<T> {
  /** The number of shards over which offers are spread. All users of the queue must give the same. 1 to 256. */
  readonly shards: number
  /**
   * The number of shards before it was lowered: shards beyond `shards` get no offers any more, but are
   * still delivered, taken from, counted and read. Leave it out once they are empty. 1 to 256; default: as `shards`.
   */
  readonly formerShards?: number | undefined
  /** Turns values into bytes and back. All processes that use the queue must use the same; default: the client's. */
  readonly codec?: Codec<T> | undefined
  /** As for `getDelayedQueue`, but with the layout that scales by default. Default `'compact'`. */
  readonly layout?: 'redisson' | 'compact' | 'wheel' | undefined
  /** Whether this client takes part in delivering the queue. Default true. */
  readonly deliver?: boolean | undefined
  /** As for `getDelayedQueue`. Default false. */
  readonly unguessableTickets?: boolean | undefined
  /** As the client's option of the same name, for this queue object. Default: the client's. */
  readonly consumersDeliver?: boolean | undefined
}

export const SHARDED_OPTIONS = [
  'shards',
  'formerShards',
  'codec',
  'layout',
  'deliver',
  'unguessableTickets',
  'consumersDeliver',
] as const satisfies readonly (keyof ShardedDelayedQueueOptions<unknown>)[]

export interface ShardedOfferOptions extends OfferOptions {
  /** The key that chooses the shard: messages of one key and one due time keep their order. Without it the shards take turns. */
  readonly key?: string | undefined
}

/** One message for `offerAll` of a sharded queue. */
export type ShardedOfferItem<T> = OfferItem<T> & {
  /** As the option of the same name. */
  readonly key?: string | undefined
}

export interface ShardedSettings {
  readonly shards: number
  /** The number of shards that are delivered, taken from and read. */
  readonly covered: number
  readonly layout: Layout
  readonly deliver: boolean
  readonly unguessableTickets: boolean
  readonly consumersDeliver: boolean | undefined
}

export function resolveShardedOptions(options: ShardedDelayedQueueOptions<unknown>): ShardedSettings {
  const shards = integer('shards', options.shards, 1, MAX_SHARDS)
  const former = integer('formerShards', options.formerShards ?? shards, 1, MAX_SHARDS)
  const { consumersDeliver } = options
  return {
    shards,
    covered: Math.max(shards, former),
    layout: oneOf('layout', options.layout ?? 'compact', LAYOUTS),
    deliver: boolean('deliver', options.deliver ?? true),
    unguessableTickets: boolean('unguessableTickets', options.unguessableTickets ?? false),
    consumersDeliver: consumersDeliver === undefined ? undefined : boolean('consumersDeliver', consumersDeliver),
  }
}
