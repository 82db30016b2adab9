import { createHash } from 'node:crypto'

const MULTIPLIER = 2_862_933_555_777_941_757n

/**
 * The shard of a key. With one shard more, a key stays or moves to the new one. It is what Java gets from Guava by
 * `Hashing.consistentHash(Hashing.sha256().hashString(key, UTF_8), shards)`.
 */
export function shardOfKey(key: string, shards: number): number {
  return jumpHash(createHash('sha256').update(key).digest().readBigUInt64LE(0), shards)
}

/** The jump consistent hash of Lamping and Veach. */
export function jumpHash(hash: bigint, buckets: number): number {
  let state = hash
  let bucket = 0
  for (;;) {
    state = BigInt.asUintN(64, state * MULTIPLIER + 1n)
    const next = Math.floor((bucket + 1) / ((Number(state >> 33n) + 1) / 2 ** 31))
    if (next >= buckets) return bucket
    bucket = next
  }
}
