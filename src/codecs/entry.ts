import { DecodeError } from '../errors.js'

/**
 * The bytes of a pending entry, the same as member of the timeout ZSET and as element of the order LIST:
 * one byte with the length of the id, the id, the payload's length as 64-bit little endian, the payload.
 * Redisson since 3.21.1 writes an 8-byte id; an entry with an id of any other length except 16 is not in
 * the order LIST. Before 3.21.1: an 8-byte double as id, the length, the payload.
 */
export const ORDERED_ID_BYTES = 8
export const UNORDERED_ID_BYTES = 5
/** Ids that cannot be guessed: the counter, and 88 or 64 random bits. */
export const UNGUESSABLE_ORDERED_ID_BYTES = 16
export const UNGUESSABLE_UNORDERED_ID_BYTES = 13
/** Ids of the wheel, which is never searched for a message by its bytes: the counter, and 40 or 80 random bits. */
export const WHEEL_ID_BYTES = 10
export const UNGUESSABLE_WHEEL_ID_BYTES = 15
const NAMED_ID_BYTES: readonly number[] = [
  ORDERED_ID_BYTES,
  UNORDERED_ID_BYTES,
  UNGUESSABLE_ORDERED_ID_BYTES,
  UNGUESSABLE_UNORDERED_ID_BYTES,
  WHEEL_ID_BYTES,
  UNGUESSABLE_WHEEL_ID_BYTES,
]
/** An id of the old format with a mark before it, a byte that is not in Redis. */
export const OLD_ID_BYTES = 9
const OLD_MARK = 0x64 // the `d` of `dLc0`

const LENGTH_BYTES = 8
const OLD_OFFSET = 8 + LENGTH_BYTES

/** Whether an entry with this id may be in a bucket of the wheel. */
export function isOfWheel(id: Uint8Array): boolean {
  return id.length === WHEEL_ID_BYTES || id.length === UNGUESSABLE_WHEEL_ID_BYTES
}

export function encodeEntry(id: Uint8Array, payload: Uint8Array): Buffer {
  if (id.length === OLD_ID_BYTES) return encodeOld(id, payload)
  const entry = Buffer.allocUnsafe(1 + id.length + LENGTH_BYTES + payload.length)
  entry[0] = id.length
  entry.set(id, 1)
  entry.writeUInt32LE(payload.length, 1 + id.length)
  entry.writeUInt32LE(0, 1 + id.length + 4) // a payload is at most 512 MiB
  entry.set(payload, 1 + id.length + LENGTH_BYTES)
  return entry
}

/** Builds an entry for Redisson before 3.21.1. */
function encodeOld(id: Uint8Array, payload: Uint8Array): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32LE(payload.length)
  return Buffer.concat([id.subarray(1), length, payload])
}

/** The first bytes of an entry: the id with its length before it, or the id alone in the old format. */
export function entryPrefix(id: Uint8Array): Buffer {
  return id.length === OLD_ID_BYTES ? Buffer.from(id.subarray(1)) : Buffer.from([id.length, ...id])
}

/** The payload of an entry in either format. */
export function payloadOf(entry: Buffer): Buffer {
  const layout = layoutOf(entry)
  if (layout === undefined) throw new DecodeError('entry', `${entry.length} bytes without a readable header`)
  return entry.subarray(layout.offset)
}

/** The id of an entry that this package can name in a ticket; `null` for others. An id of the old format has a mark before it. */
export function entryId(entry: Buffer): Buffer | null {
  const layout = layoutOf(entry)
  if (layout === undefined) return null
  if (layout.isOld) return Buffer.concat([Buffer.of(OLD_MARK), entry.subarray(0, 8)])
  const idBytes = entry[0] ?? 0
  return NAMED_ID_BYTES.includes(idBytes) ? entry.subarray(1, 1 + idBytes) : null
}

interface Layout {
  /** Where the payload starts. */
  readonly offset: number
  readonly isOld: boolean
}

/** With an id of 7 bytes the length would be where the old format has it, so such an entry is always of the old format. */
const NEVER_NEW = 7
/** Up to this many bytes of id, the length is too far ahead for a payload of the old format to look like it. */
const BEFORE_OLD_PAYLOADS = 10

/**
 * Lengths are exact. An entry in which both lengths fit is of the old format, unless its id is short: a payload can be made to look like
 * the end of a header, whereas a longer id has the length of the old format by chance only, one of 2^64 for random bits.
 */
function layoutOf(entry: Buffer): Layout | undefined {
  const idBytes = entry[0]
  if (idBytes === undefined) return undefined
  const offset = 1 + idBytes + LENGTH_BYTES
  const isNew = idBytes !== NEVER_NEW && fits(entry, offset)
  if (isNew && idBytes <= BEFORE_OLD_PAYLOADS) return { offset, isOld: false }
  if (fits(entry, OLD_OFFSET)) return { offset: OLD_OFFSET, isOld: true }
  return isNew ? { offset, isOld: false } : undefined
}

/** Whether the length before `offset` is that of the rest. */
function fits(entry: Buffer, offset: number): boolean {
  return entry.length >= offset && entry.readBigUInt64LE(offset - LENGTH_BYTES) === BigInt(entry.length - offset)
}
