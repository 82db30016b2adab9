import { createHash } from 'node:crypto'
import { DecodeError, toRedelayed, type RedelayedError } from '../../errors.js'
import type { StreamEntry } from '../../store/reliable-change-store.js'
import type { TurnTime } from '../../timing/turn-time.js'
import { readEntry } from './change-entry.js'
import type { ChangeBatch } from './change.js'

/** What a script writes: milliseconds of the Redis clock, which have 13 digits until the year 2286, and few entries in each. */
const OF_CLOCK = /^\d{1,13}-\d{1,10}$/

/** Whether an id comes from a clock. One that a stranger has written can be beyond all times, and behind it nothing follows. */
export function isOfClock(id: string): boolean {
  return OF_CLOCK.test(id)
}

/** What an entry says; or why it cannot be read. */
export async function batchOf(
  { id, value }: StreamEntry,
  time: TurnTime,
): Promise<ChangeBatch | { readonly error: RedelayedError }> {
  try {
    if (value === null || !isOfClock(id)) throw new DecodeError('changes', 'it is no entry of this package')
    const { epoch, client, changes } = await readEntry(value, time)
    return { position: { epoch, id }, at: Number.parseInt(id, 10), client, changes }
  } catch (thrown) {
    return { error: toRedelayed(thrown) }
  }
}

/** So many bytes at each end of an entry make its digest: it can have 16 MiB. */
const EDGE = 2_048

/** As `reliable-read-changes.lua` makes it; `undefined` for an entry that is not of this package. */
export function digestOf({ value }: StreamEntry): string | undefined {
  if (value === null) return undefined
  const hash = createHash('sha1').update(`${value.length} `)
  return hash.update(value.subarray(0, EDGE)).update(value.subarray(-EDGE)).digest('hex')
}
