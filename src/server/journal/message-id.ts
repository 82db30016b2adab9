import { randomUUID } from 'node:crypto'

/**
 * A UUID of version 7: it begins with the time, so that the ids of messages rise and an index grows at its end. Its random bits are those of a UUID
 * of version 4, which Node draws many at once.
 */
export function drawId(now = Date.now()): string {
  const time = now.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
