import { createHash } from 'node:crypto'

const MULTIPLIER = 2_862_933_555_777_941_757n

/**
 * The shard of a key. With one shard more, a key stays or moves to the new one. It is what Java gets from Guava by
 * `Hashing.consistentHash(Hashing.sha256().hashString(key, UTF_8), shards)`.
 */
export function shardOfKey(key: string, shards: number): number {
  return jumpHash(hashOf(key), shards)
}

/** Every shard that a key has with any number of shards from 1 to `most`, the one with the most of them last. */
export function shardsOfKey(key: string, most: number): number[] {
  return [...jumps(hashOf(key), most)]
}

/** The jump consistent hash of Lamping and Veach. */
export function jumpHash(hash: bigint, buckets: number): number {
  let last = 0
  for (const bucket of jumps(hash, buckets)) last = bucket
  return last
}

/** The buckets of a hash as their number grows: each is the one until the next is among them. */
function* jumps(hash: bigint, buckets: number): Generator<number, void> {
  let state = hash
  for (let bucket = 0; bucket < buckets;) {
    yield bucket
    state = BigInt.asUintN(64, state * MULTIPLIER + 1n)
    bucket = Math.floor((bucket + 1) / ((Number(state >> 33n) + 1) / 2 ** 31))
  }
}

function hashOf(key: string): bigint {
  return createHash('sha256').update(key).digest().readBigUInt64LE(0)
}
