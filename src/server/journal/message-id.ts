import { randomUUID } from 'node:crypto'

let time = { ms: NaN, text: '' }

/**
 * A UUID of version 7: it begins with the time, so that the ids of messages rise and an index grows at its end. Its random bits are those
 * of a UUID of version 4, which Node draws many at once.
 */
export function drawId(now = Date.now()): string {
  if (time.ms !== now) {
    const hex = now.toString(16).padStart(12, '0')
    time = { ms: now, text: `${hex.slice(0, 8)}-${hex.slice(8)}-7` }
  }
  return time.text + randomUUID().slice(15)
}
