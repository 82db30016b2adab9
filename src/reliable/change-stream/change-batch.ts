import { createHash } from 'node:crypto'
import { DecodeError, toRedelayed, type RedelayedError } from '../../errors.js'
import type { StreamEntry } from '../../store/reliable-change-store.js'
import type { TurnTime } from '../../timing/turn-time.js'
import { readEntry } from './change-entry.js'
import type { ChangeBatch } from './change.js'

/** The ids of scripts: milliseconds of the Redis clock, which have 13 digits until the year 2286, and a small number. */
const OF_CLOCK = /^\d{1,13}-\d{1,10}$/

/** Whether an id comes from a clock. Another program can write an id beyond all times, which no later id follows. */
export function isOfClock(id: string): boolean {
  return OF_CLOCK.test(id)
}

/** Decodes an entry; returns an error if it cannot be read. */
export async function batchOf(
  { id, value }: StreamEntry,
  time: TurnTime,
): Promise<ChangeBatch | { readonly error: RedelayedError }> {
  try {
    if (value === null || !isOfClock(id)) throw new DecodeError('changes', 'it is not an entry of this package')
    const { epoch, client, changes } = await readEntry(value, time)
    return { position: { epoch, id }, at: Number.parseInt(id, 10), client, changes }
  } catch (thrown) {
    return { error: toRedelayed(thrown) }
  }
}

/** How many bytes at each end of an entry make its digest: an entry can have 16 MiB. */
const EDGE = 2_048

/** The digest, as `reliable-read-changes.lua` makes it; `undefined` for an entry that is not of this package. */
export function digestOf({ value }: StreamEntry): string | undefined {
  if (value === null) return undefined
  const hash = createHash('sha1').update(`${value.length} `)
  return hash.update(value.subarray(0, EDGE)).update(value.subarray(-EDGE)).digest('hex')
}
