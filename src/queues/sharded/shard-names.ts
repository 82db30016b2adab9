import { SLOTS, keySlot } from '../../connection/key-slot.js'
import { InvalidArgumentError } from '../../errors.js'

/** The most shards a queue can have. */
export const MAX_SHARDS = 256

/** Each shard has a window of slots of its own, which its name has to hit. */
const WINDOW = SLOTS / MAX_SHARDS

/** One name in 256 hits the window, so this fails once in 10^17 names, or where the mapper makes all names alike. */
const MAX_TRIES = 10_000

const WITHOUT_BRACES = 'one without "{" and "}", which would put all shards into one slot or one shard into several'

/**
 * The name of a shard: `name:shard:k` with the smallest `k` whose slot lies in the shard's window. It does not depend on how
 * many shards there are, so adding some moves nothing. The windows of shards 0, 1, 2 … lie at 0, 1/2, 1/4, 3/4, 1/8 … of the
 * slots: the first n are spread evenly, and so over masters that each own one range of slots.
 */
export function shardName(name: string, shard: number, rawNameOf: (name: string) => string): string {
  if (hasBraces(name)) throw new InvalidArgumentError('name', WITHOUT_BRACES, name)
  const first = reversedBits(shard) * WINDOW
  let rawName = ''
  for (let k = 0; k < MAX_TRIES; k++) {
    const candidate = `${name}:${shard}:${k}`
    rawName = rawNameOf(candidate)
    if (hasBraces(rawName)) {
      throw new InvalidArgumentError('the name that nameMapper returned', WITHOUT_BRACES, rawName)
    }
    const slot = keySlot(rawName)
    if (slot >= first && slot < first + WINDOW) return candidate
  }
  throw new InvalidArgumentError('the name that nameMapper returned', 'another one for each queue', rawName)
}

function hasBraces(name: string): boolean {
  return name.includes('{') || name.includes('}')
}

/** The 8 bits of a number in the opposite order. */
function reversedBits(byte: number): number {
  let reversed = 0
  for (let bit = 0; bit < 8; bit++) reversed = (reversed << 1) | ((byte >> bit) & 1)
  return reversed
}
