import { isUtf8 } from 'node:buffer'
import { DecodeError } from '../errors.js'
import { BYTES_OF, closeBudget, openBudget, type Budget } from './budget.js'
import { MAX_DEPTH } from './codec.js'

const NAME = 'msgpack'

/** The permitted extension types: timestamp (-1) and msgpackr's `undefined` (0); others would run decoder code. */
const TIMESTAMP = -1
const ALLOWED_EXTENSIONS = [TIMESTAMP, 0]
const MAX_NANOS = 999_999_999
const MAX_DATE = 8.64e15
/** The longest text that is checked here: for a short one a call of the platform takes longer. */
const SHORT_TEXT = 128
const NOT_ASCII = 0x8080_8080 | 0

// the kinds of values; containers come last
const PLAIN = 0
const TEXT = 1
const UNUSED = 2
const BINARY = 3
const EXTENSION = 4
const ARRAY = 5
const MAP = 6

/** By tag: the kind of value, and its fixed size or the number of bytes of its size. Sizes of containers are counts. */
const KINDS = new Uint8Array(256)
const FIXED = new Uint8Array(256)
const SIZED = new Uint8Array(256)

function following(kind: number, table: Uint8Array, first: number, sizes: readonly number[]): void {
  KINDS.fill(kind, first, first + sizes.length)
  table.set(sizes, first)
}

const upTo = (most: number): number[] => Array.from({ length: most + 1 }, (_, size) => size)
following(MAP, FIXED, 0x80, upTo(15))
following(ARRAY, FIXED, 0x90, upTo(15))
following(TEXT, FIXED, 0xa0, upTo(31))
following(PLAIN, FIXED, 0xc0, [0, 0, 0, 0]) // nil, never used, false, true
following(UNUSED, FIXED, 0xc1, [0])
following(BINARY, SIZED, 0xc4, [1, 2, 4])
following(EXTENSION, SIZED, 0xc7, [1, 2, 4])
following(PLAIN, FIXED, 0xca, [4, 8, 1, 2, 4, 8, 1, 2, 4, 8]) // floats, unsigned, signed
following(EXTENSION, FIXED, 0xd4, [1, 2, 4, 8, 16])
following(TEXT, SIZED, 0xd9, [1, 2, 4])
following(ARRAY, SIZED, 0xdc, [2, 4])
following(MAP, SIZED, 0xde, [2, 4])

/** msgpackr caches a view on the bytes that it decodes, and uses an existing one: so only one has to be created. */
type Viewed = Buffer & { dataView?: DataView }

/** The remaining values of the containers around the current one. Shared, because a check never begins within another. */
const open = new Uint32Array(MAX_DEPTH)

/**
 * Checks the structure of MessagePack bytes without building anything: that they hold exactly one value, that no length
 * exceeds what follows it, that nesting and the number of elements are bounded, and that texts and timestamps are valid.
 */
export function assertMsgpackBounds(bytes: Buffer): void {
  const budget = openBudget()
  try {
    walk(bytes, budget)
  } finally {
    closeBudget()
  }
}

/** One loop for everything: every message is checked, and a call per value would double the time. */
function walk(bytes: Viewed, budget: Budget): void {
  const view = (bytes.dataView ??= new DataView(bytes.buffer, bytes.byteOffset, bytes.length))
  const length = bytes.length
  let depth = 0
  let pending = 1
  let at = 0
  for (;;) {
    while (pending === 0) {
      if (depth === 0) {
        if (at !== length) throw new DecodeError(NAME, `${length - at} bytes follow the value`)
        return
      }
      pending = open[--depth] as number
    }
    pending--
    if (at >= length) ended(bytes)
    const tag = bytes[at++] as number
    const kind = KINDS[tag] as number
    let size = FIXED[tag] as number
    if (kind === PLAIN) {
      at += size
      if (at > length) ended(bytes)
      continue
    }
    for (let i = SIZED[tag] as number; i > 0; i--) size = size * 256 + (bytes[at++] ?? ended(bytes))
    if (kind === TEXT) {
      const start = at
      at += size
      if (at > length) ended(bytes)
      if (!isText(bytes, view, start, at)) throw new DecodeError(NAME, 'a text is not valid UTF-8')
    } else if (kind >= ARRAY) {
      const children = kind === MAP ? 2 * size : size
      if (children === 0) continue
      if (children > length - at) throw new DecodeError(NAME, `a length at ${at} exceeds the bytes that follow`)
      budget.claim(NAME, children)
      if (depth === MAX_DEPTH) throw new DecodeError(NAME, `it nests deeper than ${MAX_DEPTH} levels`)
      open[depth++] = pending
      pending = children
    } else {
      if (kind === UNUSED) throw new DecodeError(NAME, `byte 0xc1 at ${at - 1} starts no value`)
      const start = kind === EXTENSION ? at + 1 : at
      at = start + size
      if (at > length) ended(bytes)
      if (kind === BINARY) budget.spend(NAME, BYTES_OF.buffer + size)
      else extension(bytes, start, size, budget)
    }
  }
}

/** Whether the bytes are UTF-8. Most texts are short and ASCII, which the highest bits of a few words show. */
function isText(bytes: Buffer, view: DataView, start: number, end: number): boolean {
  const size = end - start
  let all = 0
  if (size < 4) for (let i = start; i < end; i++) all |= bytes[i] as number
  else if (size <= 8) all = view.getInt32(start) | view.getInt32(end - 4)
  else if (size <= 16) {
    all = view.getInt32(start) | view.getInt32(start + 4) | view.getInt32(end - 8) | view.getInt32(end - 4)
  } else if (size > SHORT_TEXT) return isUtf8(bytes.subarray(start, end))
  else {
    for (let i = start; i < end - 8; i += 8) all |= view.getInt32(i) | view.getInt32(i + 4)
    all |= view.getInt32(end - 8) | view.getInt32(end - 4)
  }
  return (all & NOT_ASCII) === 0 || isShortUtf8(bytes, view, start, end)
}

/** Table 3-7 of the Unicode standard: the second byte excludes overlong forms, surrogates and code points above U+10FFFF. */
function isShortUtf8(bytes: Buffer, view: DataView, start: number, end: number): boolean {
  for (let at = start; at < end;) {
    while (at + 4 <= end && (view.getInt32(at) & NOT_ASCII) === 0) at += 4
    if (at === end) return true
    const first = bytes[at++] as number
    if (first < 0x80) continue
    if (first < 0xc2 || first > 0xf4) return false
    const next = at + (first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3)
    if (next > end) return false
    const second = bytes[at++] as number
    const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
    const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
    if (second < least || second > most) return false
    for (; at < next; at++) if (((bytes[at] as number) & 0xc0) !== 0x80) return false
  }
  return true
}

function ended(bytes: Buffer): never {
  throw new DecodeError(NAME, `they end after ${bytes.length} bytes, within a value`)
}

function extension(bytes: Buffer, start: number, size: number, budget: Budget): void {
  const type = bytes.readInt8(start - 1)
  if (!ALLOWED_EXTENSIONS.includes(type)) throw new DecodeError(NAME, `extension type ${type} is not supported`)
  if (type !== TIMESTAMP) return
  budget.spend(NAME, BYTES_OF.date)
  if (!isTimestamp(bytes, start, size)) throw new DecodeError(NAME, `a timestamp at ${start} is not a valid date`)
}

/** Whether a `Date` can hold the timestamp: of 4, 8 or 12 bytes, with nanoseconds below a second. */
function isTimestamp(bytes: Buffer, at: number, size: number): boolean {
  if (size === 4) return true
  if (size === 8) return bytes.readUInt32BE(at) >>> 2 <= MAX_NANOS
  if (size !== 12 || bytes.readUInt32BE(at) > MAX_NANOS) return false
  const milliseconds = Number(bytes.readBigInt64BE(at + 4)) * 1000 + Math.floor(bytes.readUInt32BE(at) / 1e6)
  return Math.abs(milliseconds) <= MAX_DATE
}
