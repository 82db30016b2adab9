import { queueKeys } from '../keys.js'
import { asArray, asBytes } from '../store/replies.js'
import type { Sender } from '../store/sender.js'

/** The most bytes read of one list, except for a larger first element. */
export const MOST_BYTES = 8 * 1_024 * 1_024
/** The elements of the first command: few, because each can have 16 MiB; the next reads more if these were small. */
const FIRST_PAGE = 4
const MOST_PAGE = 16
const SMALL = 4_096
const MOST_MS = 2_000

/** Reads the first elements, at most `limit`, within a moment and within `MOST_BYTES`, except for a larger first one. */
export async function firstWithin<T>(
  read: (from: number, count: number) => Promise<readonly T[]>,
  sizeOf: (element: T) => number,
  limit: number,
): Promise<T[]> {
  const found: T[] = []
  const until = performance.now() + MOST_MS
  let [bytes, page] = [0, FIRST_PAGE]
  while (found.length < limit && (found.length === 0 || performance.now() < until)) {
    const count = Math.min(page, limit - found.length)
    const some = await read(found.length, count)
    let largest = 0
    for (const element of some) {
      const size = sizeOf(element)
      if (found.length > 0 && bytes + size > MOST_BYTES) return found
      found.push(element)
      bytes += size
      largest = Math.max(largest, size)
    }
    if (some.length < count) break
    page = largest <= SMALL ? Math.min(2 * page, MOST_PAGE) : FIRST_PAGE
  }
  return found
}

/** How many of the first `limit` elements of a delayed queue's list fit; at least one. */
export async function countWithin(
  sender: Sender,
  queue: string,
  list: 'timeouts' | 'destination' | 'quarantine',
  limit: number,
): Promise<number> {
  const [command, key] = [list === 'timeouts' ? 'ZRANGE' : 'LRANGE', queueKeys(queue)[list]]
  const read = async (from: number, most: number): Promise<Buffer[]> => {
    const args = [key, String(from), String(from + most - 1)]
    return asArray(await sender.call(command, args, { resend: 'reads' })).map(asBytes)
  }
  return Math.max(1, (await firstWithin(read, ({ length }) => length, limit)).length)
}
