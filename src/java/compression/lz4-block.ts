import { emptyTable, exchange, matchLength } from './matches.js'

const MIN_MATCH = 4
/** The literals that the format requires at the end, so that a decompressor may copy in wide steps. */
const LAST_LITERALS = 5
const LAST_MATCH = 12
const MAX_OFFSET = 0xffff
/** One byte of a length stands for at most this many bytes. */
export const MAX_RATIO = 255

/** Compresses to a raw LZ4 block, without any frame. */
export function compress(input: Buffer): Buffer {
  const output = Buffer.allocUnsafe(input.length + Math.ceil(input.length / 255) + 16)
  const table = emptyTable(input.length)
  const lastMatch = input.length - LAST_MATCH
  const end = input.length - LAST_LITERALS
  let to = 0
  let literals = 0
  let at = 0
  let misses = 0

  function length(value: number): void {
    let rest = value
    for (; rest >= 255; rest -= 255) output[to++] = 255
    output[to++] = rest
  }

  /** Writes the literals from `literals` up to `until`, then a match, unless `matched` is 0. */
  function sequence(until: number, matched: number, offset: number): void {
    const count = until - literals
    const extra = matched - MIN_MATCH
    output[to++] = (Math.min(count, 15) << 4) | (matched === 0 ? 0 : Math.min(extra, 15))
    if (count >= 15) length(count - 15)
    to += input.copy(output, to, literals, until)
    if (matched === 0) return
    output[to++] = offset & 0xff
    output[to++] = offset >> 8
    if (extra >= 15) length(extra - 15)
  }

  while (at <= lastMatch) {
    const candidate = exchange(table, input, at)
    const matched = candidate < 0 || at - candidate > MAX_OFFSET ? 0 : matchLength(input, candidate, at, end)
    if (matched < MIN_MATCH) {
      at += 1 + (misses++ >> 6) // the longer nothing matches, the larger the steps
      continue
    }
    sequence(at, matched, at - candidate)
    at += matched
    literals = at
    misses = 0
  }
  sequence(input.length, 0, 0)
  return output.subarray(0, to)
}

/** The block's `size` bytes, or undefined when it does not contain exactly that many. */
export function decompress(input: Buffer, size: number): Buffer | undefined {
  const output = Buffer.allocUnsafe(size)
  let from = 0
  let to = 0

  /** A length that continues while its bytes are 255; NaN when the block ends within it. */
  function length(start: number): number {
    let value = start
    if (start < 15) return value
    for (let byte = 255; byte === 255; value += byte) {
      byte = input[from++] ?? NaN
    }
    return value
  }

  while (from < input.length) {
    const token = input[from++] ?? 0
    const literals = length(token >> 4)
    if (!(from + literals <= input.length && to + literals <= size)) return undefined
    input.copy(output, to, from, from + literals)
    from += literals
    to += literals
    if (from === input.length) return to === size && (token & 15) === 0 ? output : undefined
    if (from + 2 > input.length) return undefined
    const offset = (input[from] ?? 0) | ((input[from + 1] ?? 0) << 8)
    from += 2
    const matched = length(token & 15) + MIN_MATCH
    if (!(to + matched <= size) || offset === 0 || offset > to) return undefined
    repeat(output, to, offset, matched)
    to += matched
  }
  return undefined
}

/** Copies from `offset` bytes before; source and target may overlap. */
export function repeat(output: Buffer, to: number, offset: number, count: number): void {
  if (offset >= count) output.copyWithin(to, to - offset, to - offset + count)
  else for (let i = to; i < to + count; i++) output[i] = output[i - offset] ?? 0
}
