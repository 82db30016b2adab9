import { randomFillSync, randomInt } from 'node:crypto'

const COUNTER_BYTES = 5
const POOL_BYTES = 4096

/**
 * Makes the ids of pending entries. Redis orders members of one score by their bytes, so an id begins with a counter of five
 * bytes, big endian, that rises with each offer of this process: messages of one millisecond keep their offer order. The
 * counter starts at random and longer ids end with random bytes, so that processes do not collide.
 */
export class EntryIds {
  readonly #pool = Buffer.allocUnsafe(POOL_BYTES)
  #used = POOL_BYTES
  /** In the lower half of its range, so that it does not wrap around in the life of a process. */
  #counter: number

  constructor(start = randomInt(2 ** (8 * COUNTER_BYTES - 1))) {
    this.#counter = start
  }

  /** A new id of `length` bytes, at least five. */
  next(length: number): Buffer {
    const id = Buffer.allocUnsafe(length)
    const counter = this.#counter++
    id[0] = counter / 2 ** 32
    id.writeUInt32BE(counter % 2 ** 32, 1)
    const random = length - COUNTER_BYTES
    if (random > 0) {
      if (this.#used + random > POOL_BYTES) {
        randomFillSync(this.#pool)
        this.#used = 0
      }
      this.#pool.copy(id, COUNTER_BYTES, this.#used, this.#used + random)
      this.#used += random
    }
    return id
  }
}
