import { SLOTS, crc16, keySlot } from '../redis/topology/key-slot.js'
import { InvalidArgumentError, inQuotes } from '../errors.js'

/** The most shards a queue can have. */
export const MAX_SHARDS = 256

/** The size of each shard's own window of slots, which its name has to hit. The windows begin at least 42 slots apart. */
const WINDOW = 32

/**
 * The most names to try. One in 512 hits the window, so the search fails once in 10^17 names, or if the mapper returns the same name for
 * all.
 */
const MAX_TRIES = 20_000

const WITHOUT_BRACES = 'one without "{" and "}", which would put all shards into one slot or one shard into several'

/** The most queues whose shard names are cached. */
const MAX_KNOWN = 1_000

/** Finds the names of shards with a client's mapper, and caches them, because each takes hundreds of calls of the mapper. */
export class ShardNames {
  readonly #rawNameOf: (name: string) => string
  readonly #known = new Map<string, Map<number, string>>()

  constructor(rawNameOf: (name: string) => string) {
    this.#rawNameOf = rawNameOf
  }

  /** See `shardName`. */
  of(name: string, shard: number): string {
    const known = this.#known.get(name) ?? this.#remember(name)
    const found = known.get(shard) ?? shardName(name, shard, this.#rawNameOf)
    known.set(shard, found)
    return found
  }

  #remember(name: string): Map<number, string> {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    const names = new Map<number, string>()
    this.#known.set(name, names)
    return names
  }
}

/**
 * The name of a shard: `name:shard:k` with the smallest `k` whose slot lies in the shard's window. It does not depend on the
 * number of shards, so adding some moves nothing. Shards take the thirds of the slots in turn, because clusters have three
 * masters more often than any other number, and lie within a third at 0, 1/2, 1/4, 3/4, 1/8 …: so the first n are spread evenly,
 * also over other numbers of masters that each own one range of slots.
 */
export function shardName(name: string, shard: number, rawNameOf: (name: string) => string): string {
  if (hasBraces(name)) throw new InvalidArgumentError('name', WITHOUT_BRACES, inQuotes(name))
  const first = firstSlot(shard)
  const stem = `${name}:${shard}:`
  const crc = crc16(stem) // computed once, because any program can write keys with long names
  let rawName = ''
  for (let k = 0; k < MAX_TRIES; k++) {
    const candidate = `${stem}${k}`
    rawName = rawNameOf(candidate)
    const isMapped = rawName !== candidate
    if (isMapped && hasBraces(rawName)) {
      throw new InvalidArgumentError('the name that nameMapper returned', WITHOUT_BRACES, inQuotes(rawName))
    }
    const slot = isMapped ? keySlot(rawName) : crc16(String(k), crc) % SLOTS
    if (slot >= first && slot < first + WINDOW) return candidate
  }
  throw new InvalidArgumentError('the name that nameMapper returned', 'another one for each queue', inQuotes(rawName))
}

const SHARD = /^(.+):(\d{1,3}):(\d{1,5})$/s

/** The queue and the number of the shard with this name; `null` for any other name. */
export function shardOf(name: string): { readonly queue: string; readonly shard: number } | null {
  const [, queue = '', digits = ''] = SHARD.exec(name) ?? []
  const shard = Number(digits)
  if (queue === '' || hasBraces(name) || shard >= MAX_SHARDS || String(shard) !== digits) return null
  const past = keySlot(name) - firstSlot(shard) // other names are seldom in the window, and need no search
  if (past < 0 || past >= WINDOW) return null
  return shardName(queue, shard, (itself) => itself) === name ? { queue, shard } : null
}

function hasBraces(name: string): boolean {
  return name.includes('{') || name.includes('}')
}

/** The first slot of the window. Rounded up, because `redis-cli` begins the third of three masters at slot 10923, after two thirds. */
function firstSlot(shard: number): number {
  return Math.ceil((((shard % 3) + reversedBits(Math.floor(shard / 3))) / 3) * SLOTS)
}

/** The bits of a number in reverse order after the binary point: 0, 1/2, 1/4, 3/4, 1/8 … */
function reversedBits(number: number): number {
  let reversed = 0
  for (let [rest, place] = [number, 1 / 2]; rest > 0; rest >>= 1, place /= 2) reversed += (rest & 1) * place
  return reversed
}
