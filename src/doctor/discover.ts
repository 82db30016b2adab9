import { bucketOfKey, nameOfKey, reliableNameOfKey, QUEUE_KEY_PATTERN } from '../keys.js'
import type { Server } from './access.js'
import { FoundBuckets } from './found-buckets.js'
import { UNLIMITED } from './time-limit.js'

/** The keys that one SCAN looks at: few at first, because names can have any size, and Redis answers no other call while it copies them. */
const FIRST_KEYS = 100
const LEAST_KEYS = 10
const MOST_KEYS = 1_000
const BYTES_PER_SCAN = 1_024 * 1_024

/** Sorted names of queues. */
export interface Discovered {
  readonly delayed: readonly string[]
  readonly reliable: readonly string[]
  /** The buckets of those of the delayed queues that have any. */
  readonly buckets: ReadonlyMap<string, FoundBuckets>
  /** The time was over before the end of the search. */
  readonly isCut?: true
}

/** Finds the names of all queues by SCAN, which blocks a server no longer than any other command. */
export async function discoverQueues(
  masters: readonly Server[],
  onProgress: (keys: number) => void,
  limit = UNLIMITED,
): Promise<Discovered> {
  const [delayed, reliable, buckets] = [new Set<string>(), new Set<string>(), new Map<string, FoundBuckets>()]
  let isCut = false
  for (const server of masters) {
    let cursor = '0'
    let count = FIRST_KEYS
    do {
      isCut = limit.isOver
      if (isCut) break
      const page = await server.askBytes('SCAN', cursor, 'MATCH', QUEUE_KEY_PATTERN, 'COUNT', String(count))
      const [next, keys] = page as [Buffer, Buffer[]]
      for (const raw of keys) {
        const key = raw.toString()
        const [bucket, reliableName] = [bucketOfKey(key), reliableNameOfKey(key)]
        const name = bucket?.name ?? nameOfKey(key)
        if (name !== null) delayed.add(name)
        if (bucket !== null) {
          const found = buckets.get(bucket.name) ?? new FoundBuckets()
          buckets.set(bucket.name, found)
          found.add(raw, bucket.minute)
        }
        if (reliableName !== null) reliable.add(reliableName)
      }
      const bytes = keys.reduce((sum, { length }) => sum + length, 1)
      count = Math.max(LEAST_KEYS, Math.min(MOST_KEYS, 2 * count, Math.floor((count * BYTES_PER_SCAN) / bytes)))
      cursor = String(next)
      onProgress(delayed.size + reliable.size)
    } while (cursor !== '0')
  }
  return { delayed: [...delayed].sort(), reliable: [...reliable].sort(), buckets, ...(isCut && { isCut }) }
}
