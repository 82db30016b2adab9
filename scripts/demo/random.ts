// Random numbers that are the same in every run.

/**
 * Mulberry32.
 * @returns in [0, 1)
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function pick<T>(random: () => number, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T
}

export function weighted<T extends string>(random: () => number, weights: readonly (readonly [T, number])[]): T {
  let rest = random() * weights.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [value, weight] of weights) if ((rest -= weight) < 0) return value
  throw new Error('the weights are empty')
}
