import { createHash } from 'node:crypto'

const MULTIPLIER = 2_862_933_555_777_941_757n

/**
 * The shard of a key. If a shard is added, a key stays or moves to the new one. The result equals that of Guava's
 * `Hashing.consistentHash(Hashing.sha256().hashString(key, UTF_8), shards)` in Java.
 */
export function shardOfKey(key: string, shards: number): number {
  return jumpHash(hashOf(key), shards)
}

/** The shards of a key with 1 to `most` shards, each once; the last one is that with `most` shards. */
export function shardsOfKey(key: string, most: number): number[] {
  return [...jumps(hashOf(key), most)]
}

/** The jump consistent hash of Lamping and Veach. */
export function jumpHash(hash: bigint, buckets: number): number {
  let last = 0
  for (const bucket of jumps(hash, buckets)) last = bucket
  return last
}

/** The buckets of a hash as their number grows: each is valid until the next one exists. */
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
