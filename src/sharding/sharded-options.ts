import type { Codec } from '../codecs/codec.js'
import { boolean, integer, oneOf } from '../options.js'
import type { OfferItem, OfferOptions } from '../queues/delayed-options.js'
import { MAX_SHARDS } from './shard-names.js'

export interface ShardedDelayedQueueOptions<T> {
  /** Over how many shards offers are spread. Everyone on the queue gives the same number. 1 to 256. */
  readonly shards: number
  /**
   * How many shards there were before the number was lowered: those beyond `shards` get no offers any more, but are
   * still delivered, taken from, counted and read. Can be left out when they are empty. 1 to 256; default: as `shards`.
   */
  readonly formerShards?: number | undefined
  /** How values are turned into bytes. Everyone on the queue must use the same; default: the client's. */
  readonly codec?: Codec<T> | undefined
  /** As for `getDelayedQueue`, but by default the layout that scales. Default `'compact'`. */
  readonly layout?: 'redisson' | 'compact' | undefined
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
  /** Messages of one key go to one shard, so that those of the same due time keep their order. Without it the shards take turns. */
  readonly key?: string | undefined
}

/** One message for `offerAll` of a sharded queue. */
export type ShardedOfferItem<T> = OfferItem<T> & {
  /** As the option of the same name. */
  readonly key?: string | undefined
}

export interface ShardedSettings {
  readonly shards: number
  /** How many shards are delivered, taken from and read. */
  readonly covered: number
  readonly layout: 'redisson' | 'compact'
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
    layout: oneOf('layout', options.layout ?? 'compact', ['redisson', 'compact']),
    deliver: boolean('deliver', options.deliver ?? true),
    unguessableTickets: boolean('unguessableTickets', options.unguessableTickets ?? false),
    consumersDeliver: consumersDeliver === undefined ? undefined : boolean('consumersDeliver', consumersDeliver),
  }
}
