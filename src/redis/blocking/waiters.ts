import { copyOf, type RedelayedError } from '../../errors.js'

/** Only keys of one group can share a command; in a cluster a group is a slot. */
export type Group = number | string

/** One take that waits for elements of one key, or of the first of several keys that has any. */
export interface Waiter {
  readonly keys: readonly string[]
  /** All keys of a waiter are in one group. */
  group: Group
  /** The most elements that the take wants. */
  readonly max: number
  /** Set when the wait has to end: an error to reject with, or `null` for an empty result. */
  ended?: RedelayedError | Error | null
  readonly resolve: (elements: Buffer[] | null, key?: string) => void
  readonly reject: (error: Error) => void
}

/** The elements of a key that each of some waiters gets. */
export interface Served {
  readonly key: string
  readonly shares: ReadonlyMap<Waiter, Buffer[]>
}

/** The waiting takes of one connection, served in order per key; keys take turns. */
export class Waiters {
  readonly #byKey = new Map<string, Waiter[]>()

  get keyCount(): number {
    return this.#byKey.size
  }

  /** The number of groups of the keys. */
  get groupCount(): number {
    return new Set(Array.from(this.#byKey.values(), (list) => list[0]?.group)).size
  }

  has(key: string): boolean {
    return this.#byKey.has(key)
  }

  /** The key in these groups that has waited longest for its turn. */
  keyOf(groups: ReadonlySet<Group>): string | undefined {
    for (const [key, [first]] of this.#byKey) if (first !== undefined && groups.has(first.group)) return key
    return undefined
  }

  groupOf(key: string): Group | undefined {
    return this.#byKey.get(key)?.[0]?.group
  }

  add(waiter: Waiter): void {
    for (const key of waiter.keys) {
      const list = this.#byKey.get(key)
      if (list === undefined) this.#byKey.set(key, [waiter])
      else list.push(waiter)
    }
  }

  /** The number of elements to take from a key at once: all that the first waiter wants, and for several waiters at most `shared`. */
  demand(key: string, shared: number): number {
    let demand = 0
    for (const waiter of this.#byKey.get(key) ?? []) {
      if (demand > 0 && demand + waiter.max > shared) break
      demand += waiter.max
    }
    return demand
  }

  /** The keys of the group of `preferred`, or of the key that has waited longest for its turn. Moves them to the back. */
  nextGroup(preferred: string | undefined): string[] {
    const first = preferred !== undefined && this.#byKey.has(preferred) ? preferred : this.#byKey.keys().next().value
    if (first === undefined) return []
    const group = this.#byKey.get(first)?.[0]?.group
    const keys: string[] = []
    for (const [key, list] of this.#byKey) if (list[0]?.group === group) keys.push(key)
    if (keys.length < this.#byKey.size) for (const key of keys) this.#toBack(key)
    return keys
  }

  /**
   * Distributes elements among the waiters of a key and removes these waiters. An ended waiter gets an element only if no other waiter
   * wants it. The caller has to resolve the waiters.
   */
  serve(key: string, elements: Buffer[]): Served {
    const list = this.#byKey.get(key) ?? []
    const byUrgency = [
      ...list.filter((waiter) => waiter.ended === undefined),
      ...list.filter((waiter) => waiter.ended !== undefined),
    ]
    let given = 0
    const shares = new Map<Waiter, Buffer[]>()
    for (const waiter of byUrgency) {
      if (given >= elements.length) break
      const share = elements.slice(given, given + waiter.max)
      given += share.length
      shares.set(waiter, share)
    }
    this.#remove(shares)
    this.#toBack(key)
    return { key, shares }
  }

  settleEnded(key: string): void {
    const ended = new Set((this.#byKey.get(key) ?? []).filter((waiter) => waiter.ended !== undefined))
    if (ended.size === 0) return
    this.#remove(ended)
    for (const waiter of ended) {
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

  removeAll(keys: Iterable<string> = this.#byKey.keys()): Waiter[] {
    const removed = new Set([...keys].flatMap((key) => this.#byKey.get(key) ?? []))
    this.#remove(removed)
    return [...removed]
  }

  #end(key: string, error: RedelayedError): void {
    for (const waiter of this.#byKey.get(key) ?? []) if (waiter.ended === undefined) waiter.ended = copyOf(error)
  }

  /** Removes waiters from all their keys, in one pass over each list. */
  #remove(leaving: ReadonlyMap<Waiter, unknown> | ReadonlySet<Waiter>): void {
    const keys = new Set<string>()
    for (const waiter of leaving.keys()) for (const key of waiter.keys) keys.add(key)
    for (const key of keys) {
      const staying = (this.#byKey.get(key) ?? []).filter((waiter) => !leaving.has(waiter))
      if (staying.length > 0) this.#byKey.set(key, staying)
      else this.#byKey.delete(key)
    }
  }

  #toBack(key: string): void {
    const list = this.#byKey.get(key)
    if (list === undefined) return
    this.#byKey.delete(key)
    this.#byKey.set(key, list)
  }
}
