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
  /** Starts in the lower half of its range, so that it does not wrap around in the life of a process. */
  #counter: number

  constructor(start = randomInt(2 ** (8 * COUNTER_BYTES - 1))) {
    this.#counter = start
  }

  /**
   * A new id for the old format, with the mark `d` before it: the bytes of a finite double, as Java reads them, that also
   * rise with each offer. The lowest byte comes first in them and in Redis's order, so the counter is big endian there;
   * exponent and sign are the last two bytes. The first byte is 0, because an entry that begins with a number below 7
   * cannot be mistaken for one of the new format, whatever its payload is.
   */
  nextOld(): Buffer {
    const counterAndRandom = this.next(COUNTER_BYTES + 1)
    const exponent = 0xe0 | ((counterAndRandom[COUNTER_BYTES] ?? 0) & 0x0f)
    return Buffer.from([0x64, 0, ...counterAndRandom.subarray(0, COUNTER_BYTES), exponent, 0x43])
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
