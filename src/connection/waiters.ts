import { copyOf, type RedelayedError } from '../errors.js'

/** One take that waits for elements of one key. */
export interface Waiter {
  readonly key: string
  /** Where the key lives in a cluster; keys of one slot can share a command. */
  slot: number
  /** The most elements it wants. */
  readonly max: number
  /** Set when it wants to wait no longer: an error to reject with, or `null` for an empty result. */
  ended?: RedelayedError | Error | null
  readonly resolve: (elements: Buffer[] | null) => void
  readonly reject: (error: Error) => void
}

/** The waiting takes of one connection, first come first served per key; keys take turns. */
export class Waiters {
  readonly #byKey = new Map<string, Waiter[]>()

  get keyCount(): number {
    return this.#byKey.size
  }

  /** How many different slots the keys lie in. */
  get groupCount(): number {
    return new Set(Array.from(this.#byKey.values(), (list) => list[0]?.slot)).size
  }

  has(key: string): boolean {
    return this.#byKey.has(key)
  }

  add(waiter: Waiter): void {
    const list = this.#byKey.get(waiter.key)
    if (list === undefined) this.#byKey.set(waiter.key, [waiter])
    else list.push(waiter)
  }

  /** How many elements are wanted of a key. */
  demand(key: string): number {
    return (this.#byKey.get(key) ?? []).reduce((sum, waiter) => sum + waiter.max, 0)
  }

  /** The keys of one slot: that of `preferred`, or of the key that has waited longest for its turn. They go to the back. */
  nextGroup(preferred: string | undefined): string[] {
    const first = preferred !== undefined && this.#byKey.has(preferred) ? preferred : this.#byKey.keys().next().value
    if (first === undefined) return []
    const slot = this.#byKey.get(first)?.[0]?.slot
    const keys: string[] = []
    for (const [key, list] of this.#byKey) if (list[0]?.slot === slot) keys.push(key)
    if (keys.length < this.#byKey.size) for (const key of keys) this.#toBack(key)
    return keys
  }

  /** Hands elements to the waiters of a key; those that have ended get one only if nobody else wants it. */
  deliver(key: string, elements: Buffer[]): void {
    const list = this.#byKey.get(key) ?? []
    const byUrgency = [
      ...list.filter((waiter) => waiter.ended === undefined),
      ...list.filter((waiter) => waiter.ended !== undefined),
    ]
    let given = 0
    for (const waiter of byUrgency) {
      if (given >= elements.length) break
      const share = elements.slice(given, given + waiter.max)
      given += share.length
      list.splice(list.indexOf(waiter), 1)
      waiter.resolve(share)
    }
    this.#byKey.delete(key)
    if (list.length > 0) this.#byKey.set(key, list)
  }

  settleEnded(key: string): void {
    const list = this.#byKey.get(key)
    if (list?.some((waiter) => waiter.ended !== undefined) !== true) return
    const staying = list.filter((waiter) => waiter.ended === undefined)
    if (staying.length > 0) this.#byKey.set(key, staying)
    else this.#byKey.delete(key)
    for (const waiter of list) {
      if (waiter.ended === null) waiter.resolve(null)
      else if (waiter.ended !== undefined) waiter.reject(waiter.ended)
    }
  }

  settleAllEnded(): void {
    for (const key of [...this.#byKey.keys()]) this.settleEnded(key)
  }

  endAll(error: RedelayedError): void {
    for (const key of this.#byKey.keys()) this.#end(key, error)
  }

  fail(key: string, error: RedelayedError): void {
    this.#end(key, error)
    this.settleEnded(key)
  }

  failAll(error: RedelayedError): void {
    for (const key of [...this.#byKey.keys()]) this.fail(key, error)
  }

  removeAll(keys: readonly string[]): Waiter[] {
    const removed = keys.flatMap((key) => this.#byKey.get(key) ?? [])
    for (const key of keys) this.#byKey.delete(key)
    return removed
  }

  #end(key: string, error: RedelayedError): void {
    for (const waiter of this.#byKey.get(key) ?? []) if (waiter.ended === undefined) waiter.ended = copyOf(error)
  }

  #toBack(key: string): void {
    const list = this.#byKey.get(key)
    if (list === undefined) return
    this.#byKey.delete(key)
    this.#byKey.set(key, list)
  }
}
