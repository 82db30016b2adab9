interface Sizes<E> {
  /** A method, so that a surplus of one element type is assignable to one of `unknown`. */
  bytesOf?(element: E): number
}

/** Elements that a consumer has popped beyond what its waiters wanted, the first popped first. */
export class Surplus<S, E> {
  #held: { readonly shard: S; readonly element: E }[] = []
  readonly #sizes: Sizes<E>

  constructor(sizes: Sizes<E>) {
    this.#sizes = sizes
  }

  get isEmpty(): boolean {
    return this.#held.length === 0
  }

  add(shard: S, elements: readonly E[]): void {
    for (const element of elements) this.#held.push({ shard, element })
  }

  /** Elements that were popped before all others. */
  addFirst(shard: S, elements: readonly E[]): void {
    this.#held.unshift(...elements.map((element) => ({ shard, element })))
  }

  /** Up to `max` elements; stops at `maxBytes`. */
  take(max: number, maxBytes: number): E[] {
    const elements: E[] = []
    for (let bytes = 0; elements.length < max && bytes < maxBytes;) {
      const next = this.#held[elements.length]
      if (next === undefined) break
      elements.push(next.element)
      bytes += this.#sizes.bytesOf?.(next.element) ?? 0
    }
    this.#held.splice(0, elements.length)
    return elements
  }

  /** All elements of a shard. */
  takeOf(shard: S): E[] {
    const own = this.#held.filter((held) => held.shard === shard)
    if (own.length > 0) this.#held = this.#held.filter((held) => held.shard !== shard)
    return own.map(({ element }) => element)
  }
}
