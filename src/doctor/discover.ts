import { bucketOfKey, nameOfKey, reliableNameOfKey, QUEUE_KEY_PATTERN } from '../keys.js'
import type { Server } from './access.js'
import { FoundBuckets } from './found-buckets.js'
import { UNLIMITED } from './time-limit.js'

const KEYS_PER_SCAN = '1000'

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
    do {
      isCut = limit.isOver
      if (isCut) break
      const page = await server.ask('SCAN', cursor, 'MATCH', QUEUE_KEY_PATTERN, 'COUNT', KEYS_PER_SCAN)
      const [next, keys] = page as [string, string[]]
      for (const key of keys) {
        const [bucket, reliableName] = [bucketOfKey(key), reliableNameOfKey(key)]
        const name = bucket?.name ?? nameOfKey(key)
        if (name !== null) delayed.add(name)
        if (bucket !== null) {
          const found = buckets.get(bucket.name) ?? new FoundBuckets()
          buckets.set(bucket.name, found)
          found.add(key, bucket.minute)
        }
        if (reliableName !== null) reliable.add(reliableName)
      }
      cursor = next
      onProgress(delayed.size + reliable.size)
    } while (cursor !== '0')
  }
  return { delayed: [...delayed].sort(), reliable: [...reliable].sort(), buckets, ...(isCut && { isCut }) }
}
