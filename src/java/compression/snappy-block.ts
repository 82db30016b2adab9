import { repeat } from './lz4-block.js'
import { emptyTable, exchange, matchLength } from './matches.js'

/** The block size of the reference compressor, for which two bytes hold every offset. */
const BLOCK = 1 << 16
const MIN_MATCH = 4
/** The best ratio of the format: 64 bytes for three. */
export const MAX_RATIO = 22

/** Compresses to a raw Snappy block: the length, then literals and copies. */
export function compress(input: Buffer): Buffer {
  const output = Buffer.allocUnsafe(32 + input.length + Math.ceil(input.length / 6))
  let to = 0
  for (let rest = input.length; ; rest >>>= 7) {
    output[to++] = rest > 127 ? (rest & 0x7f) | 0x80 : rest
    if (rest <= 127) break
  }

  function literal(from: number, until: number): void {
    const last = until - from - 1
    if (last < 0) return
    if (last < 60) output[to++] = last << 2
    else if (last < 256) {
      output[to++] = 60 << 2
      output[to++] = last
    } else {
      output[to++] = 61 << 2
      output[to++] = last & 0xff
      output[to++] = last >> 8
    }
    to += input.copy(output, to, from, until)
  }

  function copy(offset: number, length: number): void {
    for (let rest = length; rest > 0;) {
      // never leave a rest below 4, which no form of a copy can express
      const part = rest > 67 ? 64 : rest > 64 ? 60 : rest
      output[to++] = ((part - 1) << 2) | 2
      output[to++] = offset & 0xff
      output[to++] = offset >> 8
      rest -= part
    }
  }

  for (let start = 0; start < input.length; start += BLOCK) {
    const end = Math.min(start + BLOCK, input.length)
    const table = emptyTable(end - start)
    let literals = start
    let misses = 0
    for (let at = start; at + MIN_MATCH <= end;) {
      const candidate = exchange(table, input, at)
      const matched = candidate < start ? 0 : matchLength(input, candidate, at, end)
      if (matched < MIN_MATCH) {
        at += 1 + (misses++ >> 5)
        continue
      }
      literal(literals, at)
      copy(at - candidate, matched)
      at += matched
      literals = at
      misses = 0
    }
    literal(literals, end)
  }
  return output.subarray(0, to)
}

/** The length in the block's header, and where its content starts; undefined without a valid header. */
export function sizeOf(input: Buffer): { size: number; start: number } | undefined {
  let size = 0
  for (let start = 0; start < 5; start++) {
    const byte = input[start]
    if (byte === undefined) return undefined
    size += (byte & 0x7f) * 2 ** (7 * start)
    if (byte < 128) return size > 0xffff_ffff ? undefined : { size, start: start + 1 }
  }
  return undefined
}

/** The block's `size` bytes, or undefined when its content, from `start` on, does not contain exactly that many. */
export function decompress(input: Buffer, size: number, start: number): Buffer | undefined {
  const output = Buffer.allocUnsafe(size)
  let from = start
  let to = 0

  /** A number of some bytes, lowest first; NaN when the block ends within it. */
  function number(bytes: number): number {
    if (from + bytes > input.length) return NaN
    from += bytes
    return input.readUIntLE(from - bytes, bytes)
  }

  while (from < input.length) {
    const tag = input[from++] ?? 0
    const kind = tag & 3
    if (kind === 0) {
      const short = tag >> 2
      const length = (short < 60 ? short : number(short - 59)) + 1
      if (!(from + length <= input.length && to + length <= size)) return undefined
      input.copy(output, to, from, from + length)
      from += length
      to += length
      continue
    }
    const length = kind === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1
    const offset = kind === 1 ? ((tag >> 5) << 8) | number(1) : number(kind === 2 ? 2 : 4)
    if (!(offset > 0 && offset <= to && to + length <= size)) return undefined
    repeat(output, to, offset, length)
    to += length
  }
  return to === size ? output : undefined
}
