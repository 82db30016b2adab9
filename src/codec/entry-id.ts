import { randomFillSync } from 'node:crypto'

const RANDOM_BYTES = 4
const POOL_BYTES = 4096

/**
 * Makes the ids of pending entries. Redis orders members of one score by their bytes, so the first four bytes of the id,
 * big endian, rise with each offer of this process and messages of one millisecond keep their offer order; the rest is
 * random, so that processes do not collide.
 */
export class EntryIds {
  readonly #pool = Buffer.allocUnsafe(POOL_BYTES)
  #used = POOL_BYTES
  #counter = 0

  /** A new id of `length` bytes, at least five. */
  next(length: number): Buffer {
    const random = length - RANDOM_BYTES
    if (this.#used + random > POOL_BYTES) {
      randomFillSync(this.#pool)
      this.#used = 0
    }
    const id = Buffer.allocUnsafe(length)
    id.writeUInt32BE(this.#counter, 0)
    this.#counter = (this.#counter + 1) >>> 0
    this.#pool.copy(id, RANDOM_BYTES, this.#used, this.#used + random)
    this.#used += random
    return id
  }
}
