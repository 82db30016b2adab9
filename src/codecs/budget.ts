import { DecodeError } from '../errors.js'
import { Insertions } from './insertions.js'

/**
 * The most elements of a message: the encoded items of its arrays, lists and sets, and keys and values of its objects and
 * maps. Encoders refuse more, so that consumers can read every message.
 */
export const MAX_ELEMENTS = 1_000_000
/** The most memory of a message beside its elements, as a multiple of the largest payload. */
const GROWTH = 4
const LEAST_PAYLOAD = 16 * 1024 * 1024

/** The memory of an object in Node beside its content, rounded up: a few bytes of a message can create one. */
export const BYTES_OF = { buffer: 256, set: 256, map: 256, date: 96 } as const

/** The remaining budget of one message. Decoders claim before they allocate. */
export class Budget {
  /** The remaining elements. */
  elements = 0
  readonly insertions = new Insertions()
  #bytes = 0
  #granted = 0

  reset(): void {
    this.elements = MAX_ELEMENTS
    this.insertions.reset()
    this.#bytes = this.#granted = GROWTH * LEAST_PAYLOAD
  }

  /** Raises the bytes to the limit for payloads of this size. */
  allow(payloadBytes: number): void {
    const more = GROWTH * payloadBytes - this.#granted
    if (more <= 0) return
    this.#bytes += more
    this.#granted += more
  }

  /** Claims `count` more elements. */
  claim(codec: string, count: number): void {
    this.elements -= count
    if (this.elements < 0) throw new DecodeError(codec, `they hold more than ${MAX_ELEMENTS} elements`)
  }

  /** Claims memory for an object that is larger than its elements. */
  spend(codec: string, bytes: number): void {
    this.#bytes -= bytes
    if (this.#bytes < 0) throw new DecodeError(codec, `they become more than ${this.#granted} bytes in memory`)
  }
}

/** Decoding is synchronous, so only one message is decoded at a time. */
const budget = new Budget()
let depth = 0

/**
 * The budget of the message: the one that an outer decoder opened, such as a compression, or else a new one. The decoder that opens a
 * budget closes it, also after an error.
 */
export function openBudget(): Budget {
  if (depth++ === 0) budget.reset()
  return budget
}

export function closeBudget(): void {
  depth--
}
