import { shardOfKey, shardsOfKey } from './shard-of-key.js'

/**
 * Ids that a script derives from another one: for the tick of a schedule, and for a dead letter whose id was taken. They stay in the shard
 * of the original.
 */
const DERIVED = /^(.+)(?:@\d{1,16}|~\d{1,16}\.\d{1,10})$/s

/** The most suffixes of an id, which add up while dead letters are redriven and fail again; more would make the id too long. */
const MAX_ORIGINS = 4

/** The numbers of shards: ids are placed over `shards`, and messages can be in `covered`. */
export interface ShardCounts {
  readonly shards: number
  readonly covered: number
}

/**
 * The shards where the message of an id can be; it is added to the first one. A jump hash moves an id only to a new shard, so these are few
 * (about the logarithm of the number of shards), and include the message's shard for any earlier number of shards.
 */
export function placesOf(id: string, { shards, covered }: ShardCounts): readonly [number, ...number[]] {
  const place = shardOfKey(id, shards)
  const all = new Set<number>()
  for (const name of [id, ...originsOf(id)]) for (const each of shardsOfKey(name, covered).reverse()) all.add(each)
  all.delete(place)
  return [place, ...all]
}

/** Whether a script may have derived the id from another one. */
export function isDerived(id: string): boolean {
  return DERIVED.test(id)
}

/** The ids from which a script may have derived this one. */
function originsOf(id: string): string[] {
  const origins: string[] = []
  for (let made = DERIVED.exec(id); made !== null && origins.length < MAX_ORIGINS; made = DERIVED.exec(made[1] ?? '')) {
    origins.push(made[1] ?? '')
  }
  return origins
}
