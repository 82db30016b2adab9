/**
 * Values on their way to another thread: all bytes among them are one buffer, which changes hands. Each buffer of its own would be copied, a small
 * one of Node's together with the 8 KiB that it is a part of.
 */
export interface Packed {
  /** `null` in the place of bytes. */
  readonly values: unknown[]
  /** For each of these its place and its length, in turn. */
  readonly places: readonly number[]
  readonly bytes: Uint8Array<ArrayBuffer>
}

export function pack(given: readonly unknown[]): Packed {
  const places: number[] = []
  let size = 0
  const values = given.map((value, at) => {
    if (!(value instanceof Uint8Array)) return value
    places.push(at, value.length)
    size += value.length
    return null
  })
  const bytes = new Uint8Array(size)
  for (let n = 0, from = 0; n < places.length; n += 2) {
    bytes.set(given[places[n] ?? 0] as Uint8Array, from)
    from += places[n + 1] ?? 0
  }
  return { values, places, bytes }
}

/** The same values; the bytes are views of the one buffer. */
export function unpack({ values, places, bytes }: Packed): unknown[] {
  for (let n = 0, from = 0; n < places.length; n += 2) {
    const length = places[n + 1] ?? 0
    values[places[n] ?? 0] = Buffer.from(bytes.buffer, bytes.byteOffset + from, length)
    from += length
  }
  return values
}
