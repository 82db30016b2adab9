/**
 * Values for another thread: one transferable buffer, and the distinct texts. In an array, each value would be serialized by itself, and a
 * small Node buffer would be copied together with its pool of 8 KiB.
 */
export interface Packed {
  readonly count: number
  /** First eight bytes for each value, a number: the value, its length, or its place; then a byte for each, its kind; then the bytes. */
  readonly buffer: ArrayBuffer
  /** The texts, and all values that are neither numbers nor bytes. */
  readonly others: readonly unknown[]
}

const NULL = 0
const NUMBER = 1
const BYTES = 2
/** The same bytes as the first ones, such as the name of the queue in each row. */
const FIRST_BYTES = 3
const OTHER = 4
const SLOT = 8

export function pack(given: readonly unknown[]): Packed {
  const count = given.length
  const first = given.find((value) => value instanceof Uint8Array)
  let size = 0
  for (const value of given) if (value instanceof Uint8Array && (value !== first || size === 0)) size += value.length
  const buffer = new ArrayBuffer(count * (SLOT + 1) + size)
  const [slots, kinds, bytes] = [
    new Float64Array(buffer, 0, count),
    new Uint8Array(buffer, count * SLOT, count),
    new Uint8Array(buffer, count * (SLOT + 1)),
  ]
  const others: unknown[] = []
  const places = new Map<unknown, number>()
  let isFirst = true
  let from = 0
  for (let at = 0; at < count; at++) {
    const value = given[at]
    if (value === null) continue
    if (typeof value === 'number') {
      kinds[at] = NUMBER
      slots[at] = value
    } else if (value instanceof Uint8Array) {
      if (value === first && !isFirst) {
        kinds[at] = FIRST_BYTES
        continue
      }
      isFirst = false
      kinds[at] = BYTES
      slots[at] = value.length
      bytes.set(value, from)
      from += value.length
    } else {
      const place = places.get(value) ?? others.push(value) - 1
      places.set(value, place)
      kinds[at] = OTHER
      slots[at] = place
    }
  }
  return { count, buffer, others }
}

/** Restores the values; bytes are views of the one buffer. */
export function unpack({ count, buffer, others }: Packed): unknown[] {
  const slots = new Float64Array(buffer, 0, count)
  const kinds = new Uint8Array(buffer, count * SLOT, count)
  const values = new Array<unknown>(count)
  let first: Buffer | undefined
  let from = count * (SLOT + 1)
  for (let at = 0; at < count; at++) {
    const slot = slots[at] ?? 0
    const kind = kinds[at]
    if (kind === NULL) values[at] = null
    else if (kind === NUMBER) values[at] = slot
    else if (kind === FIRST_BYTES) values[at] = first
    else if (kind === OTHER) values[at] = others[slot]
    else {
      const bytes = Buffer.from(buffer, from, slot)
      values[at] = bytes
      first ??= bytes
      from += slot
    }
  }
  return values
}
