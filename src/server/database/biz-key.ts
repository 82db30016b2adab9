import { createHash } from 'node:crypto'
import type { Bytes } from './tables.js'

/** The header with the business key of a message of the service. */
export const BIZ_KEY_HEADER = 'redelayed-biz-key'

/** The value of the column of a business key: short enough for the index of every database. */
export function bizKeyDigest(bizKey: string): Bytes {
  return createHash('sha256').update(bizKey).digest().subarray(0, 16)
}
