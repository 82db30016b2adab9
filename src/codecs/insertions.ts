import { DecodeError } from '../errors.js'

/** The elements of a slice. Smaller collections are not measured: at worst they take about a millisecond each. */
export const SLICE = 1024
/** The time that slow slices may take in any message. */
const FREE_MS = 100
/** A slice is slow if it takes this many times as long as a slice of the smallest set: honest sets of doubles reach about a half of it. */
const SLOW = 64
/** The slow slices allowed in any message, because the set grows; garbage collection may slow one more in every `ONE_OF`. */
const FEW = 5
const ONE_OF = 64
/** The time for the characters of text keys, which V8 reads to hash them. */
const MS_PER_CHARACTER = 1e-5

/**
 * Fills the sets and maps of one message. V8 hashes numbers without a seed, so that numbers chosen for it make every insertion
 * visit all elements before it. Such insertions are detected by their time, which needs no knowledge of the hash.
 */
export class Insertions {
  /** Milliseconds of each slice that was measured. */
  #costs: number[] = []
  #sum = 0

  reset(): void {
    if (this.#sum === 0) return
    this.#costs = []
    this.#sum = 0
  }

  fillSet(codec: string, set: Set<unknown>, items: readonly unknown[]): void {
    const add = (from: number, end: number): void => {
      for (let i = from; i < end; i++) set.add(items[i])
    }
    this.#fill(codec, items, add)
  }

  fillMap(codec: string, map: Map<unknown, unknown>, keys: readonly unknown[], values: readonly unknown[]): void {
    const add = (from: number, end: number): void => {
      for (let i = from; i < end; i++) map.set(keys[i], values[i])
    }
    this.#fill(codec, keys, add)
  }

  #fill(codec: string, keys: readonly unknown[], add: (from: number, end: number) => void): void {
    if (keys.length <= SLICE) return add(0, keys.length)
    let cpu = cpuTime()
    for (let from = 0; from < keys.length; from += SLICE) {
      const end = Math.min(from + SLICE, keys.length)
      const start = performance.now()
      add(from, end)
      const elapsed = performance.now() - start
      const before = cpu
      cpu = cpuTime()
      // elapsed time includes other processes, CPU time other threads
      const cost = Math.min(elapsed, cpu - before) - MS_PER_CHARACTER * characters(keys, from, end)
      this.#costs.push(cost)
      this.#sum += Math.max(cost, 0)
      if (this.#sum > FREE_MS) this.#check(codec)
    }
  }

  /** Compares with an honest slice, inserted now, so that a slow or loaded machine slows down both. */
  #check(codec: string): void {
    const bar = SLOW * honestSlice()
    const slow = this.#costs.filter((cost) => cost > bar)
    if (slow.length < FEW + this.#costs.length / ONE_OF) return
    const took = slow.reduce((sum, cost) => sum + cost, 0)
    if (took <= FREE_MS + bar * this.#costs.length) return
    throw new DecodeError(codec, 'they hold a set or map of numbers that collide, which takes too long to build')
  }
}

/** The CPU time of this process in milliseconds. */
function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

function honestSlice(): number {
  let least = Infinity
  for (let round = 0; round < 4; round++) {
    const set = new Set<unknown>()
    const start = performance.now()
    for (let i = 0; i < SLICE; i++) set.add(i)
    least = Math.min(least, performance.now() - start)
  }
  return least
}

function characters(keys: readonly unknown[], from: number, end: number): number {
  let sum = 0
  for (let i = from; i < end; i++) {
    const key = keys[i]
    if (typeof key === 'string') sum += key.length
  }
  return sum
}
