// Random numbers that are the same in every run.

/** Mulberry32. @param {number} seed @returns {() => number} in [0, 1) */
export function seededRandom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** @template T @param {() => number} random @param {readonly T[]} list @returns {T} */
export function pick(random, list) {
  return /** @type {T} */ (list[Math.floor(random() * list.length)])
}

/** @template {string} T @param {() => number} random @param {readonly (readonly [T, number])[]} weights @returns {T} */
export function weighted(random, weights) {
  let rest = random() * weights.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [value, weight] of weights) if ((rest -= weight) < 0) return value
  throw new Error('the weights are empty')
}
