import { InvalidTicketError, describe } from '../errors.js'
import {
  OLD_ID_BYTES,
  ORDERED_ID_BYTES,
  UNGUESSABLE_ORDERED_ID_BYTES,
  UNGUESSABLE_UNORDERED_ID_BYTES,
  UNGUESSABLE_WHEEL_ID_BYTES,
  UNORDERED_ID_BYTES,
  WHEEL_ID_BYTES,
} from './entry.js'
import { withoutShard } from './sharded-ticket.js'

/**
 * The result of `offer`: 20, 24, (old entries) 26, (`layout: 'wheel'`) 27 or (`unguessableTickets`) 31, 34 or 35 URL-safe characters that
 * name one pending message of one queue. It stays valid until the message is delivered, cancelled or rescheduled (which gives a new one).
 * Tickets of a sharded queue begin with the number of the shard and a dot.
 */
export type Ticket = string

export interface TicketContent {
  readonly id: Buffer
  /** Due time, epoch milliseconds by the Redis clock. */
  readonly due: number
}

const DUE_BYTES = 7
const CHECK_BYTES = 3
const ID_BYTES: readonly number[] = [
  UNORDERED_ID_BYTES,
  ORDERED_ID_BYTES,
  OLD_ID_BYTES,
  UNGUESSABLE_ORDERED_ID_BYTES,
  UNGUESSABLE_UNORDERED_ID_BYTES,
  WHEEL_ID_BYTES,
  UNGUESSABLE_WHEEL_ID_BYTES,
]

/** A shared buffer in which tickets are built: a bulk makes thousands. */
const scratch = Buffer.allocUnsafe(Math.max(...ID_BYTES) + DUE_BYTES + CHECK_BYTES)

/** base64url of the id, the due time as 56-bit big endian, and a checksum that includes the queue's name. */
export function encodeTicket(rawName: string, id: Uint8Array, due: number): Ticket {
  const checked = id.length + DUE_BYTES
  scratch.set(id, 0)
  const high = Math.floor(due / 2 ** 32)
  scratch[id.length] = high >>> 16
  scratch[id.length + 1] = high >>> 8
  scratch[id.length + 2] = high
  scratch.writeUInt32BE(due % 2 ** 32, id.length + 3)
  const check = checksum(rawName, scratch, checked)
  scratch[checked] = check >>> 16
  scratch[checked + 1] = check >>> 8
  scratch[checked + 2] = check
  return scratch.toString('base64url', 0, checked + CHECK_BYTES)
}

/** Throws if the text is not a ticket of the queue `rawName`. */
export function decodeTicket(rawName: string, queue: string, ticket: unknown): TicketContent {
  const bytes = ticketBytes(ticket, queue)
  const checked = bytes.length - CHECK_BYTES
  if (bytes.readUIntBE(checked, CHECK_BYTES) !== checksum(rawName, bytes, checked)) {
    throw new InvalidTicketError('this ticket was issued by another queue, or was damaged', { queue })
  }
  return { id: bytes.subarray(0, checked - DUE_BYTES), due: readDue(bytes) }
}

/**
 * The due time in a ticket, also one of a sharded queue, in epoch milliseconds by the Redis clock.
 *
 * @throws InvalidTicketError `ERR_INVALID_TICKET`: the text is not a ticket
 *
 * @example
 * ```ts
 * import { dueOf } from 'redelayed'
 *
 * const ticket = await delayed.offer('to ada', '5m')
 * console.log(new Date(dueOf(ticket)))
 * ```
 */
export function dueOf(ticket: Ticket): number {
  return readDue(ticketBytes(withoutShard(ticket)))
}

function readDue(bytes: Buffer): number {
  const at = bytes.length - CHECK_BYTES - DUE_BYTES
  return bytes.readUIntBE(at, 3) * 2 ** 32 + bytes.readUInt32BE(at + 3)
}

function ticketBytes(ticket: unknown, queue?: string): Buffer {
  if (typeof ticket === 'string') {
    const bytes = Buffer.from(ticket, 'base64url')
    const idBytes = bytes.length - DUE_BYTES - CHECK_BYTES
    const known = ID_BYTES.includes(idBytes)
    if (known && bytes.toString('base64url') === ticket) return bytes
  }
  throw new InvalidTicketError(`expected a ticket as returned by offer, got ${describe(ticket)}`, { queue })
}

/** FNV-1a over name and content, folded to 24 bits: against mistakes, not against forgery. */
function checksum(rawName: string, bytes: Uint8Array, length: number): number {
  let hash = hashOfName(rawName)
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193)
  return ((hash >>> 24) ^ hash) & 0xffffff
}

/** The last result is cached, because successive tickets are mostly of one queue. */
let lastName = ''
let lastHash = 0x811c9dc5

function hashOfName(rawName: string): number {
  if (rawName === lastName) return lastHash
  let hash = 0x811c9dc5
  for (let i = 0; i < rawName.length; i++) hash = Math.imul(hash ^ rawName.charCodeAt(i), 0x01000193)
  ;[lastName, lastHash] = [rawName, hash]
  return hash
}
