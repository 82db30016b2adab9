import { shardOfKey, shardsOfKey } from './shard-of-key.js'

/** Ids that a script makes of another one: of the tick of a schedule, and of a dead letter whose id was taken. They stay in the shard of that one. */
const DERIVED = /^(.+)(?:@\d{1,16}|~\d{1,16}\.\d{1,10})$/s

/** Suffixes add up while dead letters are redriven and fail again; an id is too long for more of them. */
const MAX_ORIGINS = 4

/** How many shards there are: ids are placed over `shards`, and messages can be in `covered`. */
export interface ShardCounts {
  readonly shards: number
  readonly covered: number
}

/**
 * The shards where the message of an id can be, the one where it is added first. A jump hash moves an id only to a new shard, so these are few
 * (about the logarithm of their number), and whatever number of shards a message was added with, its shard is among them.
 */
export function placesOf(id: string, { shards, covered }: ShardCounts): readonly [number, ...number[]] {
  const place = shardOfKey(id, shards)
  const all = new Set<number>()
  for (const name of [id, ...originsOf(id)]) for (const each of shardsOfKey(name, covered).reverse()) all.add(each)
  all.delete(place)
  return [place, ...all]
}

/** Whether a script may have made the id of another one. */
export function isDerived(id: string): boolean {
  return DERIVED.test(id)
}

/** The ids that this one may have been made of. */
function originsOf(id: string): string[] {
  const origins: string[] = []
  for (let made = DERIVED.exec(id); made !== null && origins.length < MAX_ORIGINS; made = DERIVED.exec(made[1] ?? '')) {
    origins.push(made[1] ?? '')
  }
  return origins
}
