import { nameOfBucket, nameOfKey, reliableNameOfKey, QUEUE_KEY_PATTERN } from '../keys.js'
import type { Server } from './access.js'
import { UNLIMITED } from './time-limit.js'

const KEYS_PER_SCAN = '1000'

/** Sorted names of queues. */
export interface Discovered {
  readonly delayed: readonly string[]
  readonly reliable: readonly string[]
  /** Those of the delayed queues that have buckets of a wheel. */
  readonly withBuckets: ReadonlySet<string>
  /** The time was over before the end of the search. */
  readonly isCut?: true
}

/** Finds the names of all queues by SCAN, which blocks a server no longer than any other command. */
export async function discoverQueues(
  masters: readonly Server[],
  onProgress: (keys: number) => void,
  limit = UNLIMITED,
): Promise<Discovered> {
  const [delayed, reliable, withBuckets] = [new Set<string>(), new Set<string>(), new Set<string>()]
  let isCut = false
  for (const server of masters) {
    let cursor = '0'
    do {
      isCut = limit.isOver
      if (isCut) break
      const page = await server.ask('SCAN', cursor, 'MATCH', QUEUE_KEY_PATTERN, 'COUNT', KEYS_PER_SCAN)
      const [next, keys] = page as [string, string[]]
      for (const key of keys) {
        const [ofBucket, reliableName] = [nameOfBucket(key), reliableNameOfKey(key)]
        const name = ofBucket ?? nameOfKey(key)
        if (name !== null) delayed.add(name)
        if (ofBucket !== null) withBuckets.add(ofBucket)
        if (reliableName !== null) reliable.add(reliableName)
      }
      cursor = next
      onProgress(delayed.size + reliable.size)
    } while (cursor !== '0')
  }
  return { delayed: [...delayed].sort(), reliable: [...reliable].sort(), withBuckets, ...(isCut && { isCut }) }
}
