import { DecodeError, InvalidArgumentError, inWords } from '../errors.js'

/** Texts by name that a message has beside its payload. */
export type Headers = Readonly<Record<string, string>>

/** The header with the name of the task that a message is for. */
export const TASK_HEADER = 'task'

/** The record of a message, stored under its id; the scripts write the meta data. */
export interface MessageRecord {
  readonly headers: Headers
  readonly payload: Buffer
  /** When the message expires, epoch milliseconds; `null` for never. */
  readonly expiresAt: number | null
  /** The message's own delivery limit; `null` for none. */
  readonly deliveryLimit: number | null
  readonly group?: string | undefined
}

/** The most bytes of all headers of a message. */
export const MAX_HEADER_BYTES = 64 * 1024
const NO_HEADERS: Headers = Object.freeze({})
const NOTHING = Buffer.alloc(0)

export function checkHeaders(headers: unknown): Headers {
  if (headers === undefined) return NO_HEADERS
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw new InvalidArgumentError('headers', 'an object with texts', headers)
  }
  for (const name of Object.keys(headers)) {
    const value = (headers as Record<string, unknown>)[name]
    if (typeof value !== 'string') throw new InvalidArgumentError(`headers.${name}`, 'a text', value)
  }
  return headers as Headers
}

/** JSON, because headers are few and short, and people who look into Redis can read them. */
export function encodeHeaders(given: unknown): Buffer {
  const headers = checkHeaders(given)
  if (Object.keys(headers).length === 0) return NOTHING
  const bytes = Buffer.from(JSON.stringify(headers))
  if (bytes.length > MAX_HEADER_BYTES) {
    throw new InvalidArgumentError(
      'headers',
      `at most ${MAX_HEADER_BYTES} bytes together`,
      inWords(`${bytes.length} bytes`),
    )
  }
  return bytes
}

/** A message with encoded headers as the scripts write it; see `readRecord`. */
export function writeRecord({
  headerBytes,
  payload,
  expiresAt,
  deliveryLimit,
  group = '',
}: Omit<MessageRecord, 'headers'> & { readonly headerBytes: Buffer }): Buffer {
  const hasMeta = expiresAt !== null || deliveryLimit !== null || headerBytes.length > 0 || group !== ''
  const numbers = [expiresAt ?? '', deliveryLimit ?? '', headerBytes.length]
  const groupBytes = Buffer.from(group)
  if (group !== '') numbers.push(groupBytes.length)
  const meta = Buffer.from(hasMeta ? numbers.join(',') : '')
  return Buffer.concat([Buffer.from([meta.length]), meta, groupBytes, headerBytes, payload])
}

/**
 * A byte with the length of the meta data, these as `<expires>,<delivery limit>,<bytes of headers>` (or nothing; with a group `,` and its
 * bytes follow), the group, the headers, the payload.
 */
export function readRecord(record: Buffer): MessageRecord {
  const numbersEnd = 1 + (record[0] ?? 0)
  if (numbersEnd === 1)
    return { headers: NO_HEADERS, payload: record.subarray(1), expiresAt: null, deliveryLimit: null }
  const meta = /^(\d*),(\d*),(\d+)(?:,(\d+))?$/.exec(record.toString('latin1', 1, numbersEnd))
  const numbers = meta?.slice(1).map((text: string | undefined) => Number(text ?? 0)) ?? []
  const metaEnd = numbersEnd + Number(meta?.[4] ?? 0)
  const headersEnd = metaEnd + Number(meta?.[3])
  // restoring the message would refuse numbers that no script writes
  if (meta === null || headersEnd > record.length || !numbers.every(Number.isSafeInteger))
    throw new DecodeError('record', 'without readable meta data')
  return {
    headers: headersEnd === metaEnd ? NO_HEADERS : decodeHeaders(record.subarray(metaEnd, headersEnd)),
    payload: record.subarray(headersEnd),
    expiresAt: numberOrNull(meta[1]),
    deliveryLimit: numberOrNull(meta[2]),
    ...(metaEnd > numbersEnd && { group: record.toString('utf8', numbersEnd, metaEnd) }),
  }
}

function decodeHeaders(bytes: Buffer): Headers {
  let parsed: unknown
  try {
    parsed = bytes.length <= MAX_HEADER_BYTES ? JSON.parse(bytes.toString()) : undefined
  } catch {
    parsed = undefined
  }
  if (typeof parsed !== 'object' || parsed === null) throw new DecodeError('record', 'without readable headers')
  // without a prototype, so that a header can have any name
  const headers = Object.create(null) as Record<string, string>
  for (const [name, value] of Object.entries(parsed)) if (typeof value === 'string') headers[name] = value
  return Object.freeze(headers)
}

function numberOrNull(text: string | undefined): number | null {
  return text === undefined || text === '' ? null : Number(text)
}
