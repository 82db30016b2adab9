import { MAX_ELEMENTS } from '../../codecs/budget.js'
import { MAX_DEPTH } from '../../codecs/codec.js'
import { formatPath } from '../../codecs/encodable.js'
import { EncodeError } from '../../errors.js'

/** The position of the writer in a value, for messages and for the limits of depth and elements. */
export class Position {
  readonly #codec: string
  /** The keys on the way to the value being written; only as many as the depth says are valid. */
  readonly #path: (string | number)[] = []
  #depth = 0
  #elements = 0

  constructor(codec: string) {
    this.#codec = codec
  }

  get isRoot(): boolean {
    return this.#depth === 0
  }

  get lastKey(): string | number {
    return this.#path[this.#depth - 1] ?? ''
  }

  enter(key: string | number): void {
    this.#path[this.#depth++] = key
  }

  leave(): void {
    this.#depth--
  }

  reset(): void {
    this.#depth = 0
    this.#elements = 0
  }

  /** Called for every array and object before its content. */
  nest(): void {
    if (this.#depth < MAX_DEPTH) return
    this.#depth = 8
    this.fail(`it nests deeper than ${MAX_DEPTH} levels or contains itself`)
  }

  /** Counts elements as they are on the wire, where the class of a value is two more. */
  claim(count: number): void {
    this.#elements += Math.max(1, count)
    if (this.#elements > MAX_ELEMENTS) this.fail(`the value has more than ${MAX_ELEMENTS} elements`)
  }

  fail(message: string): never {
    throw new EncodeError(this.#codec, formatPath(this.#path.slice(0, this.#depth)), message)
  }
}
