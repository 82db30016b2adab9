import { DecodeError } from '../errors.js'

/**
 * The bytes of a pending entry, the same as member of the timeout ZSET and as element of the order LIST:
 * one byte with the length of the id, the id, the payload's length as 64-bit little endian, the payload.
 * Redisson since 3.21.1 writes an 8-byte id; an id of another length tells the transfer that the entry stands in no order
 * LIST. Before 3.21.1: an 8-byte double as id, the length, the payload.
 */
export const ORDERED_ID_BYTES = 8
export const UNORDERED_ID_BYTES = 5

const LENGTH_BYTES = 8

export function encodeEntry(id: Uint8Array, payload: Uint8Array): Buffer {
  const entry = Buffer.allocUnsafe(1 + id.length + LENGTH_BYTES + payload.length)
  entry[0] = id.length
  entry.set(id, 1)
  entry.writeUInt32LE(payload.length, 1 + id.length)
  entry.writeUInt32LE(0, 1 + id.length + 4) // a payload is at most 512 MiB
  entry.set(payload, 1 + id.length + LENGTH_BYTES)
  return entry
}

/** The payload of an entry in either format; the lengths are exact, so that one cannot be taken for the other. */
export function payloadOf(entry: Buffer): Buffer {
  const offset = payloadOffset(entry)
  if (offset === undefined) throw new DecodeError('entry', `${entry.length} bytes without a readable header`)
  return entry.subarray(offset)
}

/** The id of a readable entry; `null` for the old format, whose id does not tell one message from another for certain. */
export function entryId(entry: Buffer): Buffer | null {
  const idBytes = entry[0]
  if (idBytes !== ORDERED_ID_BYTES && idBytes !== UNORDERED_ID_BYTES) return null
  return payloadOffset(entry) === 1 + idBytes + LENGTH_BYTES ? entry.subarray(1, 1 + idBytes) : null
}

function payloadOffset(entry: Buffer): number | undefined {
  const idBytes = entry[0]
  if (idBytes === undefined) return undefined
  for (const offset of [1 + idBytes + LENGTH_BYTES, 8 + LENGTH_BYTES]) {
    if (entry.length < offset) continue
    if (entry.readBigUInt64LE(offset - LENGTH_BYTES) === BigInt(entry.length - offset)) return offset
  }
  return undefined
}
