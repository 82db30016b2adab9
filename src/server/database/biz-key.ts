import { createHash } from 'node:crypto'
import type { Bytes } from './tables.js'

/** The header in which a message of the service has the key of its business. */
export const BIZ_KEY_HEADER = 'redelayed-biz-key'

/** What the column of a key holds: of a length that every database indexes. */
export function bizKeyDigest(bizKey: string): Bytes {
  return createHash('sha256').update(bizKey).digest().subarray(0, 16)
}
