const MOST_BITS = 13
/** Compression is synchronous, so all calls can share one table. */
const table = new Int32Array(1 << MOST_BITS)

/** Positions + 1 of earlier bytes by a hash of four of them, no larger than a short input needs. */
export interface Table {
  readonly positions: Int32Array
  readonly shift: number
}

export function emptyTable(inputLength: number): Table {
  const bits = Math.min(Math.max(32 - Math.clz32(inputLength), 8), MOST_BITS)
  return { positions: table.fill(0, 0, 1 << bits), shift: 32 - bits }
}

/** Notes the position of the four bytes at `at`, and returns the last position with the same hash; -1 for none. */
export function exchange({ positions, shift }: Table, input: Buffer, at: number): number {
  const four =
    (input[at] ?? 0) | ((input[at + 1] ?? 0) << 8) | ((input[at + 2] ?? 0) << 16) | ((input[at + 3] ?? 0) << 24)
  const slot = Math.imul(four, 0x9e37_79b1) >>> shift
  const candidate = (positions[slot] ?? 0) - 1
  positions[slot] = at + 1
  return candidate
}

/** How many bytes from `at` are the same as those from `candidate`, up to `end`. */
export function matchLength(input: Buffer, candidate: number, at: number, end: number): number {
  let length = 0
  while (at + length < end && input[candidate + length] === input[at + length]) length++
  return length
}
